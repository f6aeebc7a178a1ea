"""A result that lacks the end of what its command printed says so."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import name_of_call
from wedgehog.harness.invariants.tool_results import outputs_told
from wedgehog.harness.record.events.call import ToolResult
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed

MARKS_OF_A_CUT = frozenset(("part", "elsewhere", "failed", "stopped", "foreign"))
"""Signs of a result that may say that it is not all."""


@invariant("cut_told", level="strict")
def cut_told(history: History) -> Iterator[Verdict]:
    """The result of a command has the end of its output, or a mark that the output was cut.

    A model that reads only the beginning believes that it is all: a list seems complete, and an error at the end of a
    log is not seen. Judged on commands that ended well within 2 s, if the result begins as the command's output does
    and lacks its last line. Any mark is enough: "...", a bracket, "truncated", "more", "lines", the name of a file.

    Fix: Where you cut the output of a tool, say so at the cut: how much is missing, and how to read it. Keep its last
    lines too, because errors stand there.
    """
    for use, following, carried in outputs_told(history):
        if carried and all(map(_is_cut_silently, carried)):
            says = f"the result of {name_of_call(use)} was cut to {carried[0].chars} characters"
            yield fail(f"{says}, and nothing in it says so", (use.done[0], following))
        elif any(it.signs is not None for it in carried):
            yield passed(because=f"the result of {name_of_call(use)} shows no cut without a word")


def _is_cut_silently(result: ToolResult) -> bool:
    known = result.signs_known and not result.is_error
    lacks_its_end = result.prints_first is True and not result.printed
    return known and lacks_its_end and MARKS_OF_A_CUT.isdisjoint(result.signs or ())
