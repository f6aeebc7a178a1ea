"""A script can trust the exit code of a turn."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import disk_was_full, ends, over
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Turn


@invariant("exit_code_tells", level="strict")
def exit_code_tells(history: History) -> Iterator[Verdict]:
    """The exit code (of a command) or status (of a service) is 0 or 200 exactly if the message was answered.

    A script or a pipeline reads only this. An error with exit code 0 counts there as success. Judged in turns that end
    by themselves with an answer or an error that a person can see; after a stop either code is right. If the last reply
    broke off after all its words, an agent that streams cannot know that they were all: it may call its turn an error.
    So it may if it shows the answer and the disk is full, so that it cannot store it. The exit code of a command is
    judged too where the agent stopped at a limit of its own, after a reply that asked for one more tool or said
    nothing: a script cannot read its words. A service that answers with server-sent events or lines of JSON has sent
    its status before it knows the outcome; there it is not judged. A bot in a chat has none.

    Fix: Exit with a code above 0, or answer with a status of 400 or more, if the turn ended in an error; exit with
    0 only after an answer.
    """
    for turn in history.turns:
        says = _wrong(turn, _ended(turn, history), disk_was_full(history, turn))
        if says is None:
            continue
        fits = passed(because=f"{turn}: its exit code or status fits its outcome")
        yield fail(f"{turn}: {says}", ends(turn)) if says else fits


def _broke_off(turn: Turn) -> bool:
    return bool(turn.main_calls) and not turn.main_calls[-1].ok


def _ended(turn: Turn, history: History) -> str:
    """`answered`, `unanswered`, or empty if a person can see neither."""
    kind = outcome_of(turn, history).kind
    if kind == "answered":
        return kind
    at_limit = kind == "stopped at its limit" and history.run.carries_nonces and _is_unfinished(turn)
    return "unanswered" if kind == "surfaced" or at_limit else ""


def _is_unfinished(turn: Turn) -> bool:
    """Whether a command ended after a reply that asked for one more tool, or that said nothing."""
    last = turn.main_calls[-1].ended if turn.main_calls else None
    if turn.end is None or turn.end.exit_code is None or last is None or last.stop == "refusal":
        return False
    return bool(last.tool_calls) or not last.text_delivered.strip()


def _wrong(turn: Turn, ended: str, not_stored: bool) -> str | None:
    """What is wrong with the exit code, empty if nothing is, None if there is nothing to judge."""
    end = turn.end
    if end is None or over(turn) is not None or not ended:
        return None
    if end.exit_code is not None:
        fine, shown = end.exit_code == 0, f"exit code {end.exit_code}"
    elif end.status is not None and not end.streamed:
        fine, shown = end.status < 400, f"HTTP {end.status}"
    else:
        return None
    if ended == "answered":
        return "" if fine or not_stored or _broke_off(turn) else f"the message was answered, with {shown}"
    return f"the message was not answered, and a script reads {shown}" if fine else ""
