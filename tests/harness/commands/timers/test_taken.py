"""What a run's record tells of an agent's timers."""

from wedgehog.harness.commands.timers.probe import PROBES, TOTAL
from wedgehog.harness.commands.timers.taken import Taken, TimedAttempt, taken
from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.call import HungUp, ReplyEnded, RequestArrived, RequestRefused
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.run import LagSeen, RunStarted
from wedgehog.harness.record.events.turn import DeadlineHit, StimulusGiven, TurnEnded
from wedgehog.harness.record.history import History

IDLE, UPLOAD, REFUSED = (next(it for it in PROBES if it.name == name) for name in ("idle", "upload", "429"))


STRUCK = FaultFired(
    fault=0, name="stall", link="llm", turn=1, step=1, attempt=1, call=1, proof="byte 200", at_s=1.05
)  # fmt: skip


def arrived(call: int, at_s: float, **more: object) -> Event:
    words = {"conn": call, "wire": "anthropic", "path": "/v1/messages", "model": "m", "stream": True, "turn": 1}
    return RequestArrived(call=call, step=1, attempt=call, at_s=at_s, **{**words, **more})  # type: ignore[arg-type]


def over(at_s: float, error: str = "timed out", **more: object) -> Event:
    said = {"ended": "by itself", "answer": "", "exit_code": 1, "status": None, "raised": None}
    return TurnEnded(turn=1, at_s=at_s, error=error, **{**said, **more})  # type: ignore[arg-type]


def of(*events: Event, probe: object = IDLE) -> Taken:
    """The probe whose run was this, after a message at 1 s."""
    history = History()
    history.add(RunStarted(scenario="s", agent="a", network="n", time_scale=1, started="", start_up_s=2.0, at_s=0))
    history.add(StimulusGiven(turn=1, stimulus="user", marker="m", nonce="n", text="Hi", at_s=1))
    for event in (STRUCK, *events):
        history.add(event)
    return taken(probe, history.seal())  # type: ignore[arg-type]


def test_each_attempt_lasts_until_the_agent_hangs_up():
    """And the waits lie between them."""
    it = of(arrived(1, 3), HungUp(call=1, at_s=7), arrived(2, 8), HungUp(call=2, at_s=12), over(12.1))
    assert it.lasted_s == (4.0, 4.0) and it.waits_s == (1.0,)
    assert it.total_s is not None and abs(it.total_s - 9.1) < 1e-9
    assert (it.outcome, it.outlived, it.overlaps, it.about) == ("surfaced", False, False, False)
    assert "timed out" in it.said


def test_a_hang_up_that_our_deadline_caused_is_no_timers():
    """The attempt was never given up, and there was no end."""
    it = of(arrived(1, 3), DeadlineHit(turn=1, bound_s=60, at_s=63), HungUp(call=1, at_s=63.01), over(63.2, ""))
    assert it.total_s is None and it.lasted_s == () and it.outcome == "silent" and not it.outlived


def test_a_request_that_is_open_after_the_end_has_outlived_its_turn():
    """A service may hang up later; the end of a process comes at once."""
    late = of(arrived(1, 3), over(7), HungUp(call=1, at_s=11))
    assert late.outlived
    soon = of(arrived(1, 3), over(7), HungUp(call=1, at_s=7.1))
    assert not soon.outlived and soon.lasted_s and abs(soon.lasted_s[0] - 4.1) < 1e-9


def test_a_request_that_arrives_when_the_turn_is_over_is_no_attempt():
    """Our healing lets a held upload through, after its agent has reported its error."""
    it = of(arrived(1, 3), HungUp(call=1, at_s=7), arrived(2, 8), HungUp(call=2, at_s=12), over(12.1), arrived(3, 12.2))
    assert len(it.attempts) == 2 and not it.outlived


def test_an_attempt_beside_another_one_overlaps_it():
    """The one before was still open."""
    it = of(arrived(1, 3), arrived(2, 5), HungUp(call=1, at_s=9), HungUp(call=2, at_s=11), over(11))
    assert it.overlaps


def at(*waits: float) -> Taken:
    """Refused at once, with these waits between the attempts."""
    times = [sum(waits[:n]) for n in range(len(waits) + 1)]
    return Taken(REFUSED, tuple(TimedAttempt(s, s) for s in times), 60.0)


def test_retries_that_are_retried_come_in_rounds():
    """As they were measured of a real agent: five attempts with a back-off, and all of them again."""
    real = at(0.24, 0.38, 0.74, 1.58, 0.3, 0.26, 0.37, 0.86, 1.62, 0.48, 0.21, 0.48, 0.84, 1.53)
    assert real.round_size == 5
    assert at(0.5, 0.8, 2.2, 0.5, 0.9, 4.1, 0.5, 0.9, 8.0, 0.4, 0.9).round_size == 3, "and another one's"
    assert at(0.5, 1.0, 2.0, 4.0, 8.0).round_size is None, "one back-off"
    assert at(1.0, 1.0, 1.0, 1.0, 1.0).round_size is None, "no back-off at all"
    assert at(0.5, 1.0, 2.0).round_size is None and at().round_size is None
    assert at(0.2, 0.8, 0.2, 0.2, 3.0).round_size is None, "the second round is another one"
    assert at(0.2, 0.8, 5.0, 0.2, 0.8, 5.0).round_size is None, "a seventh attempt belongs to no round"


def test_a_busy_machine_makes_no_overlap():
    """A hang-up that is seen late was on time, as far as anybody can tell."""
    late = (arrived(1, 3), arrived(2, 7.1), HungUp(call=1, at_s=8), HungUp(call=2, at_s=11), over(11))
    assert of(*late).overlaps
    assert not of(*late, LagSeen(worst_s=1.0, at_s=12)).overlaps


def test_refused_requests_are_over_at_once():
    """Only the waits count."""
    refused = [
        RequestRefused(call=n, status=429, error="", message="", pairing=False, scripted=True, at_s=s)
        for n, s in ((1, 3.0), (2, 5.0))
    ]
    it = of(arrived(1, 3), refused[0], arrived(2, 5), refused[1], over(5.2), probe=REFUSED)
    assert it.waits_s == (2.0,) and it.repeats_only


def test_uploads_that_never_arrived_are_known_by_the_fault():
    """Each that was stopped is one attempt; the time runs from the first."""
    stopped = [
        FaultFired(fault=0, name="stall", link="llm", turn=1, step=1, attempt=n, call=None, proof="p", at_s=s)
        for n, s in ((1, 3.5), (2, 6.0))
    ]
    it = of(*stopped, over(8.5), probe=UPLOAD)
    assert [attempt.began_s for attempt in it.attempts] == [3.5, 6.0] and it.about
    assert it.total_s == 5.0 and not it.overlaps and not it.outlived
    again = of(stopped[0], arrived(1, 6), HungUp(call=1, at_s=7), over(8.5), probe=UPLOAD)
    assert [attempt.began_s for attempt in again.attempts] == [3.5, 6.0] and again.about, "the second one got through"
    assert again.total_s == 5.0


def test_nothing_seen_is_counted_from_when_the_first_request_was_due():
    """A closed port sees no connects: the time counts from the message and includes the agent's start."""
    fired = FaultFired(fault=0, name="refuse", link="llm", turn=1, step=1, attempt=1, call=None, proof="p", at_s=1.1)
    it = of(fired, over(7))
    assert it.attempts == () and it.about and it.total_s == 4.0


def test_background_calls_are_no_attempts():
    """A title is asked for beside the first one."""
    whole = ReplyEnded(
        call=2, how="complete", stop="end", output_tokens=1, tokens_delivered=1, body_bytes=1, bytes_delivered=1,
        blocks_delivered=1, at_s=3.5,
    )  # fmt: skip
    it = of(arrived(1, 3), arrived(2, 3.2, background="title"), whole, HungUp(call=1, at_s=7), over(7))
    assert len(it.attempts) == 1


def test_a_reply_in_one_piece_is_no_endless_one():
    """It was over at once, so nothing was learned of what ends one that goes on."""
    reply = {"call": 1, "stop": "end", "output_tokens": 1, "tokens_delivered": 1, "body_bytes": 1}
    whole = ReplyEnded(**reply, how="complete", bytes_delivered=1, blocks_delivered=1, at_s=3.1)  # type: ignore[arg-type]
    assert of(arrived(1, 3), whole, over(3.2, "", answer="and so on"), probe=TOTAL).skipped.startswith(
        "it does not stream"
    )
    assert not of(arrived(1, 3), HungUp(call=1, at_s=7), over(7), probe=TOTAL).skipped


def test_a_fault_that_never_struck_measures_nothing():
    """An agent that fails for another reason has shown no timer."""
    history = History()
    history.add(StimulusGiven(turn=1, stimulus="user", marker="m", nonce="n", text="Hi", at_s=1))
    history.add(over(7, "no config"))
    assert taken(IDLE, history.seal()).skipped == "the agent did not reach the fault"


def test_a_run_that_broke_off_is_no_measure():
    """It says so."""
    assert taken(IDLE, History().seal()).skipped == "the run was interrupted"
