"""What the page says of a service that works on after its front end gave up."""

from collections.abc import Iterator

from wedgehog.harness.record.history import History
from wedgehog.harness.record.left_working import asks_on, calls_after_it_left, longest_pause_s
from wedgehog.reports.words import many, seconds


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
