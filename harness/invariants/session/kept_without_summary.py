"""Where the model gives no summary, no turn is dropped unless the user or the model is told."""

from collections.abc import Iterator, Sequence

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import compacts, over, refused_as_too_long_before, requests
from wedgehog.harness.record.history import History
from wedgehog.harness.record.loss_words import lines_of_left_out
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Call, Turn


@invariant("kept_without_summary", level="strict")
def kept_without_summary(history: History) -> Iterator[Verdict]:
    """If the model gives no words for a summary, no turn is dropped unless the user or the model is told.

    An empty summary that takes the place of all messages is the end of the conversation, and nothing shows it: the
    model answers as if nothing had been said. Judged between two accepted requests of a conversation, if the agent
    asked for a summary between them, and neither that request nor another one beside the conversation got words. The
    second one has the messages of the turns that the first one had, or it tells the model, or the agent tells its user,
    that something was left out. Not judged after a stop or a kill, and after a refusal for the length.

    Fix: Check that a summary has words before it replaces anything. If it has none, keep the messages and try again
    later, or leave out the oldest ones and say so in their place.
    """
    before: Call | None = None
    beside: list[Call] = []
    for call in history.calls:
        if not call.main:
            beside.append(call)
        elif call.paid:
            if before is not None:
                yield from _judge(history, before, beside, call)
            before, beside = call, []


def _judge(history: History, before: Call, beside: Sequence[Call], after: Call) -> Iterator[Verdict]:
    """Judge two requests of the conversation, with those that came between them."""
    asked = [it for it in beside if compacts(it)]
    if not asked or any(map(_got_words, beside)) or not _may_be_judged(history, before, after):
        return
    lost = sorted({*before.arrived.turns_seen} - {*after.arrived.turns_seen})
    if not lost:
        yield passed(because=f"request {after.number} has what request {asked[-1].number} was to sum up")
    elif _is_told(history, before, after):
        yield passed(because=f"user or model is told what is missing in request {after.number}")
    else:
        yield _forgotten(lost, asked, after)


def _forgotten(lost: Sequence[int], asked: Sequence[Call], after: Call) -> Verdict:
    turns = f"turn {lost[0]}" if len(lost) == 1 else f"turns {', '.join(map(str, lost))}"
    says = f"request {asked[-1].number} for a summary got no words, and request {after.number} no longer has {turns}"
    return fail(f"{says}: neither its user nor its model is told", requests([asked[-1], after]))


def _got_words(call: Call) -> bool:
    return call.ended is not None and bool(call.ended.text_delivered.strip())


def _may_be_judged(history: History, before: Call, after: Call) -> bool:
    """Whether the requests show messages as they are, and nothing but the missing summary explains what is gone."""
    shown = before.arrived.turn in before.arrived.turns_seen and after.arrived.loss_notices is not None
    ended = any(over(turn) is not None for turn in _turns(history, before, after))
    return shown and not ended and not refused_as_too_long_before(history, after)


def _turns(history: History, before: Call, after: Call) -> list[Turn]:
    return [it for it in history.turns if before.arrived.turn <= it.number <= after.arrived.turn]


def _is_told(history: History, before: Call, after: Call) -> bool:
    """Whether the second request, or what its user reads, has a line on what is missing that was not there before."""
    if {*(after.arrived.loss_notices or ())} - {*(before.arrived.loss_notices or ())}:
        return True
    turns = _turns(history, before, after)
    earlier = {line for it in history.turns if it not in turns for line in _lines(it)}
    return any(_lines(turn) - earlier for turn in turns)


def _lines(turn: Turn) -> set[str]:
    end = turn.end
    if end is None:
        return set()
    said = "\n".join(call.ended.text_delivered for call in turn.calls if call.ended is not None)
    shown = f"{end.answer}\n{end.error}\n{end.stdout}\n{end.stderr}"
    return {line for line in lines_of_left_out(shown) if line not in said}
