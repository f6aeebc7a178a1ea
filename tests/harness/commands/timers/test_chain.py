"""The chain of timers in words, and what is found wrong with it."""

from pathlib import Path

import pytest

from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.agents.spec_keys import Timeout
from wedgehog.harness.commands.timers.chain import Measured, findings, lines
from wedgehog.harness.commands.timers.probe import PROBES, TOTAL, Probe
from wedgehog.harness.commands.timers.take import knobs
from wedgehog.harness.commands.timers.taken import Taken, TimedAttempt, Turned

BY_NAME = {probe.name: probe for probe in PROBES}


def agent(*timers: Timeout) -> AgentSpec:
    """One that claims these timers."""
    return AgentSpec(name="a", wire="anthropic", command=("x", "{message}"), timeouts=timers)


def came_to(name: str, *times: tuple[float, float | None], total_s: float | None = None, **more: object) -> Taken:
    """A probe with attempts from and to these times."""
    outcome = "silent" if total_s is None else "surfaced"
    attempts = tuple(TimedAttempt(*time) for time in times)
    return Taken(BY_NAME[name], attempts, total_s, **{"outcome": outcome, **more})  # type: ignore[arg-type]


def measured(*takens: Taken, timers: tuple[Timeout, ...] = (), turned: tuple[Turned, ...] = ()) -> Measured:
    """With a look-out of a minute."""
    return Measured(agent(*timers), 60.0, takens, turned)


@pytest.mark.parametrize(
    ("it", "said"),
    [
        (came_to("headers", (1, 5), total_s=4.0), "4.0 s, then an error"),
        (
            came_to("headers", (0, 4), (4.5, 8.5), (9.5, 13.6), total_s=13.6),
            "4.0 s x 3 attempts, waits 0.5 and 1.0 s, 13.6 s in all, then an error",
        ),
        (
            came_to("idle", (0, 4), (4.5, 8.5), (9, 10), total_s=10.0),
            "4.0, 4.0 and 1.0 s x 3 attempts, waits 0.5 and 0.5 s, 10.0 s in all, then an error",
        ),
        (came_to("idle", (0, None)), "no end within 60 s"),
        (came_to("idle", (0, 30), (31, None)), "no end within 60 s; until then 30.0 s x 2 attempts, wait 1.0 s"),
        (came_to("refused", total_s=7.04, about=True), "about 7.0 s, then an error"),
        (
            came_to("upload", (0, None), (2.5, None), total_s=5.0, about=True),
            "2 attempts, 2.5 s apart, 5.0 s in all, then an error",
        ),
        (
            came_to("429", (0, 0), (1, 1), (3, 3), total_s=3.1),
            "3 attempts, waits 1.0 and 2.0 s, 3.1 s in all, then an error",
        ),
        (came_to("500", (0, 0), total_s=0.1), "1 attempt, then an error"),
        (
            came_to("headers", (0, 6), (3, 6), total_s=6.0),
            "6.0 and 3.0 s x 2 attempts, 3.0 s apart, 6.0 s in all, then an error",
        ),
        (
            came_to("500", *((s, s) for s in (0, 0.25, 1, 1.3, 1.55, 2.3)), total_s=2.4),
            "6 attempts (2 rounds of 3, waits 0.2 and 0.8 s, and 0.3 s between them), 2.4 s in all, then an error",
        ),
        (came_to("body", (0, 3), total_s=3.0, outcome="hidden"), "3.0 s, then an end without a message"),
        (Taken(BY_NAME["pings"], skipped="it does not stream"), "not measured: it does not stream"),
    ],
)
def test_a_probe_is_told_in_one_line(it: Taken, said: str):
    """Each attempt, the waits, all of it, and the end."""
    assert list(lines(measured(it))) == [f"  {it.probe.name}: {said}"]


def test_what_the_total_ends_has_no_timer_of_its_own():
    """One attempt as long as the total; several are inside of it, and an earlier end is one's own."""
    total = came_to("total", (0, 10), total_s=10.0)
    alone = came_to("headers", (0, 10.1), total_s=10.1)
    within = came_to("idle", (0, 4), (4.5, 8.5), (9, 10), total_s=10.0)
    own = came_to("body", (0, 4), total_s=4.0)
    first, *rest = lines(measured(total, alone, within, own))
    assert first == "total: 10.0 s, then an error"
    assert rest[0] == "  headers: 10.1 s (no timer of its own: the total of 10.0 s ends it), then an error"
    assert "inside the total of 10.0 s" in rest[1]
    assert rest[2] == "  body: 4.0 s, then an error"


def test_an_agent_that_does_not_stream_has_its_total_in_the_trickle():
    """A reply in one piece cannot be endless; bytes can."""
    total = Taken(TOTAL, skipped="it does not stream")
    trickle = came_to("trickle", (0, 10), total_s=10.0)
    first, alone, own = lines(measured(total, came_to("headers", (0, 10), total_s=10.0), trickle))
    assert first == "total: not measured: it does not stream"
    assert alone.endswith("(no timer of its own: the total of 10.0 s ends it), then an error")
    assert own == "  trickle: 10.0 s, then an error"
    assert "total" not in list(lines(measured(total, trickle, came_to("500", (0, 0), total_s=10.0))))[-1]


@pytest.mark.parametrize("outermost", ["total", "trickle"])
def test_tries_that_take_as_long_together_as_others_are_inside_of_no_total(outermost: str):
    """Three seconds a call and two calls: 6.5 s is the sum of them, and no timer."""
    twice = ((0.0, 3.0), (3.5, 6.5))
    it = measured(*(came_to(name, *twice, total_s=6.5) for name in (outermost, "headers")))
    assert it.total_s is None
    assert [line.partition(": ")[2] for line in lines(it)] == [
        "3.0 s x 2 attempts, wait 0.5 s, 6.5 s in all, then an error"
    ] * 2


def test_a_total_shows_where_it_cuts_the_last_try_short():
    """The others lasted longer; one that was left open beside the next one shows nothing."""
    cut = came_to("total", (0, 4), (4.5, 8.5), (9, 10), total_s=10.0)
    assert measured(cut).total_s == 10.0
    assert measured(came_to("total", (0, 6), (3, 6), total_s=6.0)).total_s is None


def test_a_timer_that_says_so_is_named():
    """By its own words, where the probe ended."""
    idle = Timeout(name="idle", s=4, says="idle timeout")
    it = came_to("idle", (0, 4), total_s=4.0, said="LLM idle timeout (4s)")
    assert list(lines(measured(it, timers=(idle,)))) == ["  idle: 4.0 s, then an error [idle]"]
    endless = came_to("idle", (0, None), said="LLM idle timeout (4s)")
    assert "[idle]" not in next(lines(measured(endless, timers=(idle,))))


def test_a_claim_of_which_nothing_was_seen_is_named():
    """With what ended instead; one that is longer than anybody looked is not called broken."""
    seen = came_to("headers", (0, 30), total_s=30.0)
    found = list(findings(measured(seen, timers=(Timeout(name="connect", s=10), Timeout(name="all", s=600)))))
    assert found == [
        "'connect' (10 s) has no effect here: nothing ended at 10 s (headers 30.0 s)",
        "'all' (600 s) was not reached: each stall was observed for 60 s only",
    ]
    assert not list(findings(measured(seen, timers=(Timeout(name="headers", s=30),))))
    spoke = came_to("headers", (0, 12), total_s=12.0, said="connect timed out")
    assert not list(findings(measured(spoke, timers=(Timeout(name="connect", s=10, says="connect timed out"),))))


def test_a_refused_request_is_no_timers_end():
    """An agent that is done with a 500 after ten seconds has waited, and no timer of ten seconds fired."""
    it = came_to("500", (0, 0), (3, 3), (10, 10), total_s=10.0)
    (found,) = findings(measured(it, timers=(Timeout(name="connect", s=10),)))
    assert "'connect' (10 s) has no effect here" in found


@pytest.mark.parametrize(
    "it",
    [
        came_to("429", (0, 0), (2, 2), (4, 4), total_s=4.0),
        came_to("idle", (0, 4), (6, 10), total_s=10.0),
        came_to("upload", (0, None), (2, None), total_s=4.5, about=True),
        came_to("idle", (0, None), (2, None), total_s=4.5, outlived=True),
    ],
)
def test_a_claim_may_show_between_the_attempts(it: Taken):
    """As the wait for the next one, or as the patience after which it began."""
    assert "has no effect" not in "".join(findings(measured(it, timers=(Timeout(name="backoff", s=2),))))


def test_a_knob_moves_what_it_is_for_or_nothing():
    """Judged by half of what it was turned by: the noise of a busy machine is less."""
    knob = Timeout(name="idle", s=4)
    before = (came_to("total", (0, 30), total_s=30.0), came_to("idle", (0, 4), total_s=4.0))
    same = (came_to("total", (0, 30.9), total_s=30.9), came_to("idle", (0, 4.9), total_s=4.9))
    moved = (before[0], came_to("idle", (0, 8.2), total_s=8.2))
    dead = measured(*before, timers=(knob,), turned=(Turned(knob, 8.0, same),))
    assert list(findings(dead)) == ["knob 'idle' has no effect: turned from 4 to 8 s, total, idle stay"]
    live = measured(*before, timers=(knob,), turned=(Turned(knob, 8.0, moved),))
    assert not list(findings(live))
    assert list(lines(live))[-1] == "knob 'idle', turned from 4 to 8 s, moves idle"
    gone = measured(*before, timers=(knob,), turned=(Turned(knob, 8.0, (came_to("idle", (0, None)),)),))
    assert not list(findings(gone)), "it ended, and now it does not"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (came_to("pings", (0, 5), total_s=5.0), came_to("pings", (0, 9), total_s=9.0)),
        (came_to("pings", (0, 5), total_s=5.0), came_to("pings", (0, 6.5), total_s=6.5)),  # another timer came first
        (
            came_to("429", (0, 0), (1, 1), (2, 2), total_s=60.0),
            came_to("429", (0, 0), (6, 6), (12, 12), total_s=60.0),
        ),
        (
            came_to("upload", (0, None), (5, None), total_s=60.0, about=True),
            came_to("upload", (0, None), (10, None), total_s=60.0, about=True),
        ),
        (
            came_to("idle", (0, 4), (4.5, 8.5), (9, 10), total_s=10.0),
            came_to("idle", (0, 4), (4.5, 8.5), (9, 13), total_s=13.0),
        ),
        (
            came_to("429", (0, 0), (1, 1), (3, 3), (7, 7), total_s=7.0),
            came_to("429", (0, 0), (1, 1), (3, 3), (7, 7), (8, 8), total_s=8.0),
        ),
        (came_to("refused", total_s=2.0, about=True), came_to("refused", total_s=7.0, about=True)),
        (came_to("refused", total_s=2.0, about=True), came_to("refused", about=True)),
        (
            came_to("pings", (0, 5), total_s=5.0, said="no content"),
            came_to("pings", (0, 5.5), total_s=5.5, said="total"),
        ),
    ],
)
def test_a_knob_may_move_an_end_a_wait_or_the_number_of_tries(before: Taken, after: Taken):
    """And the words with which an end names it."""
    knob = Timeout(name="k", s=5, says="no content")
    it = measured(before, timers=(knob,), turned=(Turned(knob, 10.0, (after,)),))
    assert list(lines(it))[-1] == f"knob 'k', turned from 5 to 10 s, moves {before.probe.name}"
    assert not [found for found in findings(it) if "knob" in found]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # waits that are drawn by lot
        (
            came_to("429", (0, 0), (8, 8), (16, 16), total_s=16.0),
            came_to("429", (0, 0), (6, 6), (13, 13), total_s=13.0),
        ),
        # how long a process takes to end
        (came_to("429", (0, 0), total_s=0.1), came_to("429", (0, 0), total_s=1.0)),
        # whether one more try fits into what ends them all
        (
            came_to("429", *((s, s) for s in range(5)), total_s=5.0),
            came_to("429", *((s, s) for s in range(6)), total_s=5.1),
        ),
    ],
)
def test_chance_is_no_knob(before: Taken, after: Taken):
    """Two runs of one agent differ by as much."""
    knob = Timeout(name="k", s=5)
    it = measured(before, timers=(knob,), turned=(Turned(knob, 6.0, (after,)),))
    assert list(findings(it)) == ["knob 'k' has no effect: turned from 5 to 6 s, 429 stay"]


def test_no_knob_is_without_effect_on_what_was_not_looked_at_again():
    """It may have moved just that."""
    knob = Timeout(name="k", s=5)
    idle, pings = came_to("idle", (0, 2), total_s=2.0), came_to("pings", (0, 5), total_s=5.0)
    broken = Taken(BY_NAME["pings"], skipped="the run was interrupted")
    for again in ((idle,), (idle, broken)):
        (found,) = findings(measured(idle, pings, timers=(knob,), turned=(Turned(knob, 10.0, again),)))
        assert found == "knob 'k', turned from 5 to 10 s, moves none of the compared probes: idle; unclear: pings"
    (found,) = findings(measured(idle, broken, timers=(knob,), turned=(Turned(knob, 10.0, (idle, pings)),)))
    assert found == "knob 'k' has no effect: turned from 5 to 10 s, idle stay", "pings: nothing to compare it with"


def test_an_end_without_a_request_may_be_a_slow_start():
    """It counts from when one was due, so a small difference says nothing, neither for the knob nor against it."""
    knob = Timeout(name="k", s=5)
    idle, refused = came_to("idle", (0, 2), total_s=2.0), came_to("refused", total_s=2.1, about=True)

    def said(total_s: float) -> str:
        again = (idle, came_to("refused", total_s=total_s, about=True))
        it = measured(idle, refused, timers=(knob,), turned=(Turned(knob, 10.0, again),))
        return "".join(found for found in (*lines(it), *findings(it)) if found.startswith("knob"))

    assert said(4.5) == "knob 'k', turned from 5 to 10 s, moves none of the compared probes: idle; unclear: refused"
    assert said(2.6) == "knob 'k' has no effect: turned from 5 to 10 s, idle, refused stay"
    assert said(5.6) == "knob 'k', turned from 5 to 10 s, moves refused"


@pytest.mark.parametrize(
    ("timer", "to_s"),
    [
        (Timeout(name="k", s=20), 3.0),
        (Timeout(name="k", s=4), 8.0),
        (Timeout(name="k", s=0.2), 1.2),
        (Timeout(name="k", s=5, inside="total"), 2.5),
        (Timeout(name="k", s=2, inside="total"), 4.0),
    ],
)
def test_a_knob_is_turned_to_where_it_can_be_seen(timer: Timeout, to_s: float):
    """By a second at least, and not past the timer around it."""
    total = Timeout(name="total", s=9)
    command = ("x", "{message}", "{k_s}")
    it = AgentSpec(name="a", wire="anthropic", command=command, timeouts=(total, timer))
    assert knobs(it) == [(timer, to_s)]


def test_an_inner_timer_that_is_longer_than_its_outer_one_can_never_fire():
    """As the spec claims them."""
    timers = (Timeout(name="total", s=10), Timeout(name="idle", s=30, inside="total"))
    seen = came_to("total", (0, 10), total_s=10.0)
    found = list(findings(measured(seen, timers=timers)))
    assert "'idle' (30 s) outlives 'total' (10 s), which contains it: it can never fire" in found


def test_attempts_that_do_not_fit_are_named():
    """An outer timer ends the last attempt, so only two of three tries are complete."""
    it = came_to("idle", (0, 4), (4.5, 8.5), (9, 10), total_s=10.0)
    (found,) = findings(measured(it))
    assert found == "idle: 3 attempts do not fit into 10.0 s: the last one was ended after 1.0 s"


def test_a_try_beside_another_one_that_was_left_open_was_not_cut_short():
    """Given up after 3 s each, and the first request open until the end: it outlives, and both of them fit."""
    for times in (((0, 6), (3, 6)), ((0, None), (3, 6), (6, 7)), ((0, 6), (6.2, 9.2), (9.2, None), (12.2, 13))):
        it = came_to("idle", *times, total_s=13.0)
        assert [found for found in findings(measured(it)) if "open" in found]
        assert "do not fit" not in "".join(findings(measured(it)))
    left = came_to("idle", (0, 4), (4, 5), (5, None), total_s=8.0, outlived=True)
    assert "do not fit" not in "".join(findings(measured(left)))


@pytest.mark.parametrize(
    ("it", "said"),
    [
        (
            came_to("idle", (0, 8), (4, 12), total_s=12.0),
            "idle: the next attempt began while the one before it was open",
        ),
        (
            came_to("idle", (0, None), (4, 8), total_s=8.0),
            "idle: the next attempt began while the one before it was open",
        ),
        (
            came_to("body", (0, None), total_s=4.0, outlived=True),
            "body: its request was still open when the turn was over",
        ),
    ],
)
def test_a_request_whose_turn_is_over_is_named(it: Taken, said: str):
    """It is paid for, and brings nothing."""
    assert [found for found in findings(measured(it)) if found.startswith(said)]


def test_uploads_of_which_only_the_beginning_is_known_overlap_nothing():
    """Nobody saw their ends."""
    it = came_to("upload", (0, None), (2.5, None), total_s=5.0, about=True)
    assert not list(findings(measured(it)))


def test_stalls_without_an_end_and_pings_are_named():
    """What ends a silent reply need not end one with keep-alives."""
    found = list(findings(measured(came_to("idle", (0, 4), total_s=4.0), came_to("pings", (0, None)))))
    assert found[0] == "no end within 60 s: pings"
    assert found[1].startswith("keep-alives keep it waiting")


def test_every_probe_is_a_scenario_that_anybody_can_play(tmp_path: Path):
    """Checked as a user's own file is; the endless reply outlasts a turn, also one that a busy machine stretches."""
    from wedgehog.harness.campaign.selection import check_invariant
    from wedgehog.harness.run.deadline import LONGEST_STRETCH_S
    from wedgehog.harness.scenario.scenario_file import load_scenario

    def read(probe: Probe) -> object:
        return load_scenario(probe.write(tmp_path, 60.0), check_invariant).scenario

    assert [getattr(read(probe), "name", "") for probe in PROBES] == [probe.scenario for probe in PROBES]
    for look_out_s in (3.0, 60.0):
        text = TOTAL.write(tmp_path, look_out_s).read_text()
        assert text.count("and so on") * 0.5 >= 2 * look_out_s + LONGEST_STRETCH_S
