"""The chain of timers in words, and what is found wrong with it."""

from pathlib import Path

import pytest

from wedgehog.harness.agents.spec import AgentSpec, Timeout
from wedgehog.harness.timers.chain import Measured, Turned, findings, lines
from wedgehog.harness.timers.probe import PROBES, TOTAL, Probe
from wedgehog.harness.timers.taken import Attempt, Taken

BY_NAME = {probe.name: probe for probe in PROBES}


def agent(*timers: Timeout) -> AgentSpec:
    """One that claims these timers."""
    return AgentSpec(name="a", wire="anthropic", command=("x", "{message}"), timeouts=timers)


def came_to(name: str, *times: tuple[float, float | None], total_s: float | None = None, **more: object) -> Taken:
    """A probe with attempts from and to these times."""
    outcome = "silent" if total_s is None else "surfaced"
    attempts = tuple(Attempt(*time) for time in times)
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
            came_to("500", *((s, s) for s in (0, 0.25, 1, 1.3, 1.55, 2.3)), total_s=2.4),
            "6 attempts (2 rounds of 3, waits 0.2 and 0.8 s, and 0.3 s between them), 2.4 s in all, then an error",
        ),
        (came_to("body", (0, 3), total_s=3.0, outcome="hidden"), "3.0 s, then an end without a word"),
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
    """A reply in one piece cannot go on and on; bytes can."""
    total = Taken(TOTAL, skipped="it does not stream")
    trickle = came_to("trickle", (0, 10), total_s=10.0)
    first, alone, own = lines(measured(total, came_to("headers", (0, 10), total_s=10.0), trickle))
    assert first == "total: not measured: it does not stream"
    assert alone.endswith("(no timer of its own: the total of 10.0 s ends it), then an error")
    assert own == "  trickle: 10.0 s, then an error"
    assert "total" not in list(lines(measured(total, trickle, came_to("500", (0, 0), total_s=10.0))))[-1]


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
        "'all' (600 s) was not reached: nobody looked longer than 60 s",
    ]
    assert not list(findings(measured(seen, timers=(Timeout(name="headers", s=30),))))
    spoke = came_to("headers", (0, 12), total_s=12.0, said="connect timed out")
    assert not list(findings(measured(spoke, timers=(Timeout(name="connect", s=10, says="connect timed out"),))))


def test_a_refused_request_is_no_timers_end():
    """An agent that is done with a 500 after ten seconds has waited, and no timer of ten seconds fired."""
    it = came_to("500", (0, 0), (10, 10), total_s=10.0)
    (found,) = findings(measured(it, timers=(Timeout(name="connect", s=10),)))
    assert "'connect' (10 s) has no effect here" in found


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


def test_an_inner_timer_that_is_longer_than_its_outer_one_can_never_fire():
    """As the spec claims them."""
    timers = (Timeout(name="total", s=10), Timeout(name="idle", s=30, inside="total"))
    seen = came_to("total", (0, 10), total_s=10.0)
    found = list(findings(measured(seen, timers=timers)))
    assert "'idle' (30 s) outlives 'total' (10 s), inside of which it is: it can never fire" in found


def test_attempts_that_do_not_fit_are_named():
    """The last one is ended from outside, so whoever counts on three tries has two."""
    it = came_to("idle", (0, 4), (4.5, 8.5), (9, 10), total_s=10.0)
    (found,) = findings(measured(it))
    assert found == "idle: 3 attempts do not fit into 10.0 s: the last one was ended after 1.0 s"


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
def test_a_request_that_nobody_waits_for_any_more_is_named(it: Taken, said: str):
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
    """Checked as a user's own file is; the endless reply outlasts the look-out time."""
    from wedgehog.harness.scenario import load_scenario
    from wedgehog.harness.selection import check_invariant

    def read(probe: Probe) -> object:
        return load_scenario(probe.write(tmp_path, 60.0), check_invariant).scenario

    assert [getattr(read(probe), "name", "") for probe in PROBES] == [probe.scenario for probe in PROBES]
    text = TOTAL.write(tmp_path, 60.0).read_text()
    assert text.count("and so on") * 0.5 >= 2 * 60
