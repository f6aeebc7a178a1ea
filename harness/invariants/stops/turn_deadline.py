"""A turn ends in time, with an answer or an error."""

from wedgehog.harness.invariants.overload import stopped_too_late, too_late, unless_starved
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import reached_out, short_time, together
from wedgehog.harness.record.chat_refusals import refused_last
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.turn import DeadlineHit, GaveUp, HangSeen, StartMissed
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of, told_of, told_words
from wedgehog.harness.record.verdict import Verdict, inconclusive, nothing, passed
from wedgehog.harness.record.views import Turn

AS_WRITTEN = 1e-6
"""Two equal durations of a scenario may differ by this share when both are divided by its time scale."""


@invariant("turn_deadline")
def turn_deadline(history: History, *, turn_s: float = 120) -> Verdict:
    """A turn ends within `turn_s` of its first request, and an agent whose front end waits that long is not silent.

    Each retry has its own time-out, and the user waits for their sum (incident endless-loop). If a fault struck a
    database in the turn, the time before the first request counts too, without its usual start-up. The time that the
    agent always takes to end after its user had the answer does not count. An aborted turn is judged only if it never
    ended by itself: it is red if it still ran at the deadline, half of `turn_s` or more after the abort. If the front
    end itself gives up, silence until then counts only if it waited at least `turn_s`.

    Fix: Set a time-out for silence (no byte for some seconds), and one deadline for the turn above all retries.
    When it passes, end the turn with an error. End a turn that is stopped at once, whatever it waits for. If the agent
    promises an end later than this, write its time in the spec: `limits: {turn_s: 300}`.
    """
    found = together(_judge(history, turn, turn_s) for turn in history.turns)
    if found.status != "pass":
        return found
    return passed(_slowest(history, turn_s))


def _slowest(history: History, turn_s: float) -> str:
    """Of the turns that their user did not stop; short times in milliseconds."""
    judged = [turn for turn in history.turns if turn.stopped is None]
    if not judged:
        return f"each turn was stopped by its user, {turn_s:.1f} s allowed"
    longest = max(judged, key=lambda turn: _took_s(history, turn))
    took_s = _took_s(history, longest)
    which = "the slowest turn" if len(judged) == len(history.turns) else "the slowest turn that was not stopped"
    exit_s = (longest.duration_s or 0.0) - took_s
    without = (
        f" without the {exit_s * 1000:.0f} ms that it always takes to end after its answer" if exit_s >= 0.01 else ""
    )
    grace = " and one second of grace" if took_s > turn_s else ""
    return f"{which} took {short_time(took_s)}{without}, {turn_s:.1f} s allowed{grace}"


def _judge(history: History, turn: Turn, turn_s: float) -> Verdict:
    if turn.aborted is not None or turn.end is None:
        return _never_stopped(history, turn, turn_s)
    if turn.gave_up is not None:
        return _gave_up(history, turn, turn.gave_up, turn_s)
    if turn.start_missed is not None:
        return _never_asked(history, turn, turn.start_missed)
    if turn.deadline is not None:
        return _deadline(history, turn, turn.deadline, turn_s)
    took_s = _took_s(history, turn)
    if turn.killed is not None:  # the time from the kill to its end does not count
        took_s = max(0.0, turn.killed.at_s - turn.start_s)
    took_s -= history.frozen_s(turn.start_s, turn.end.at_s)
    over_s = took_s - history.stretched(turn_s)
    if over_s > 0:
        says = f"{turn} took {took_s:.1f} s, {turn_s:.1f} s allowed"
        # Where a fault delayed its first request, its time begins with its message.
        delayed = turn.kept_away or turn.held_up
        since_s = turn.stimulus.at_s if delayed and turn.stimulus is not None else turn.start_s
        return too_late(history, says, (turn.end,), over_s=over_s, since_s=since_s, until_s=turn.end.at_s)
    return passed()


def _took_s(history: History, turn: Turn) -> float:
    """Of an answered turn without the time that the agent always takes to end after it: the user has the answer."""
    took_s = turn.duration_s or 0.0
    if outcome_of(turn, history).kind != "answered":
        return took_s
    return took_s - min(history.run.exit_s, turn.exit_s)


def _gave_up(history: History, turn: Turn, stop: GaveUp, turn_s: float) -> Verdict:
    waited_s = stop.at_s - turn.start_s if stop.after_s is None else stop.after_s
    if outcome_of(turn, history).kind == "answered" or waited_s < turn_s * (1 - AS_WRITTEN):
        return passed()
    says = f"{turn}: the front end waited {waited_s:.1f} s without an answer and gave up, {turn_s:.1f} s allowed"
    return unless_starved(history, says, (stop,), turn.start_s, stop.at_s)


def _never_asked(history: History, turn: Turn, missed: StartMissed) -> Verdict:
    """Red where the agent reached the model before, in this run or from another session in its control run.

    A fault that kept its requests away, in this turn or an earlier one, is healed by now: an agent that still asks
    nothing and says nothing hangs. So does one that gave up the message when its chat refused a note, or the sign that
    it writes.
    """
    waited, seen = _hang(history, turn)
    says = f"{turn}: it sent no model request within {missed.bound_s:.1f} s{waited}"
    evidence = (missed, *seen)
    in_chat = any(it.turn == turn.number and it.link == "chat" and it.id < missed.id for it in history.of(FaultFired))
    if in_chat or reached_out(history, missed):
        return stopped_too_late(history, says, evidence, missed)
    return inconclusive(says, evidence)


def _deadline(history: History, turn: Turn, hit: DeadlineHit, turn_s: float) -> Verdict:
    bound_s = hit.bound_s
    waited, seen = _hang(history, turn)
    evidence = (hit, *seen)
    if hit.too_many or bound_s < turn_s * (1 - AS_WRITTEN):
        after = hit.too_many or f"{bound_s:.1f} s"
        return inconclusive(f"{turn} was stopped after {after}, before {turn_s:.1f} s{waited}", evidence)
    says = f"{turn} {_so_far(history, turn)} within {bound_s:.1f} s{_given_up(turn, hit)}{waited}"
    return stopped_too_late(history, says, evidence, hit)


def _never_stopped(history: History, turn: Turn, turn_s: float) -> Verdict:
    """An agent that its user has stopped, and that has to be killed."""
    stop, hit = turn.aborted, turn.deadline
    if stop is None or hit is None or hit.too_many or hit.id < stop.id:
        return nothing()
    went_on_s = hit.at_s - stop.at_s - history.frozen_s(stop.at_s, hit.at_s)
    if went_on_s < turn_s / 2:
        return nothing()
    waited, seen = _hang(history, turn)
    return stopped_too_late(
        history, f"{turn} did not end in {went_on_s:.1f} s after its abort{waited}", (stop, hit, *seen), hit
    )


def _so_far(history: History, turn: Turn) -> str:
    if outcome_of(turn, history).kind == "answered":
        return "had answered, but did not end"
    if refused := refused_last(turn, history):
        return f"gave no answer and no error (the chat refused what it sent: {refused})"
    told = told_of(turn)
    words = f"the {told}" if told is not None else told_words(turn, history)
    if words and turn.end is not None and turn.end.appends and not (turn.end.answer or turn.end.error):
        return f"told {words} to its log only, and gave its user no answer and no error"
    return f"reported {words}, but neither answered nor gave up" if words else "gave no answer and no error"


def _given_up(turn: Turn, hit: DeadlineHit) -> str:
    """How many of its requests the agent gave up by itself, and after which time: it is slow, and does not hang."""
    times = [call.hung_up.at_s - call.at_s for call in turn.main_calls if call.hung_up and call.hung_up.id < hit.id]
    if not times:
        return ""
    requests = "1 request was given up" if len(times) == 1 else f"{len(times)} requests were given up"
    return f", in which {requests} after {'up to ' if len(times) > 1 else ''}{short_time(max(times))}"


def _hang(history: History, turn: Turn) -> tuple[str, tuple[HangSeen, ...]]:
    """What the agent waited for, as a part of the sentence."""
    seen = next((hang for hang in history.of(HangSeen) if hang.turn == turn.number), None)
    return (f": {seen.says}", (seen,)) if seen else ("", ())
