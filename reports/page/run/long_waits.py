"""Where the harness waited longer than a bound says, and how a service worked on after its front end gave up."""

from collections.abc import Iterator

from wedgehog.harness.record.history import History
from wedgehog.harness.record.left_working import asks_on, calls_after_it_left, longest_pause_s
from wedgehog.reports.words import many, seconds

REST = "the rest is for delays of the harness itself (1 s at least) and for waits for a processor."


def granted(history: History) -> Iterator[str]:
    """Sentences on first requests, and on deadlines."""
    yield from _starts(history)
    yield from _deadlines(history)


def _starts(history: History) -> Iterator[str]:
    """How long the harness waited for a first request, if that is more than its bound."""
    missed = [(turn, turn.start_missed) for turn in history.turns if turn.start_missed is not None]
    waits = [it.at_s - turn.stimulus.at_s for turn, it in missed if turn.stimulus is not None]
    if not waits or max(waits) <= missed[0][1].bound_s:
        return
    shortest, longest = seconds(min(waits)), seconds(max(waits))
    span = longest if shortest == longest else f"{shortest} to {longest}"
    yield (
        f"The harness stopped waiting for a first request {span} after the message, in {many(len(waits), 'turn')}: "
        f"the bound is {missed[0][1].bound_s:g} s, {REST}"
    )


def _deadlines(history: History) -> Iterator[str]:
    """How long after the first request each turn was stopped, if that is more than its bound."""
    for turn in history.turns:
        hit = turn.deadline
        if hit is not None and not hit.too_many and hit.at_s - turn.start_s > hit.bound_s:
            after = seconds(hit.at_s - turn.start_s)
            yield f"The harness stopped {turn} {after} after its first request: the bound is {hit.bound_s:g} s, {REST}"


def worked_on(history: History) -> Iterator[str]:
    """How many calls came after it left, and what ended them."""
    ends_s = history.events[-1].at_s if history.events else 0.0
    for turn in history.turns:
        after = calls_after_it_left(turn)
        if not after:
            continue
        last = after[-1]
        said = f"After its front end gave up, {turn} went on with {many(len(after), 'more call')}"
        if asks_on(turn, ends_s) and last.ended is not None:
            before, pause = seconds(ends_s - last.ended.at_s), seconds(longest_pause_s(turn))
            yield (
                f"{said}. The last reply, to call {last.number}, asked for a tool again {before} before the recording "
                f"ended, and its pauses lasted up to {pause}: so the recording ended the loop, no known limit."
            )
        else:
            yield f"{said}, the last one call {last.number}."
