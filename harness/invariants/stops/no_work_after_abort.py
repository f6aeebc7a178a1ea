"""After its user has stopped a turn, none of the turn's tools begins, and no command runs to its end."""

from collections.abc import Iterator

from wedgehog.harness.invariants.overload import too_late
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import name_of_call
from wedgehog.harness.invariants.subagents.background_subagents import in_the_background
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.events.turn import AbortSent
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, passed
from wedgehog.harness.record.views import ToolUse, Turn

OF_A_SIGNAL = 128
"""From this exit code on a command was ended by a signal."""


@invariant("no_work_after_abort", unscaled=("grace_s",))
def no_work_after_abort(history: History, *, grace_s: float = 3) -> Iterator[Verdict]:
    """More than `grace_s` after an abort no tool call of the turn begins, and no command of its shell ends by itself.

    A user who stops a turn believes that nothing more changes. Ctrl-C goes to the whole process group, as at a
    terminal, so a command that goes on has been put out of its reach by the agent, which then must end it. What a
    command leaves in the background may go on, and so may a call that a tool server has begun. Not judged where the
    stop was only a closed connection to a service, and where subagents work in the background: agents differ in what
    these mean.

    Fix: On a stop, end the process group of each command that runs, and drop the calls that wait for their turn. Look
    before each call whether the turn still goes on.
    """
    for turn in history.turns:
        if turn.aborted is not None and not turn.aborted.hangs_up and not any(in_the_background(history)):
            yield from _judge(history, turn, turn.aborted, grace_s)


def _judge(history: History, turn: Turn, abort: AbortSent, grace_s: float) -> Iterator[Verdict]:
    uses = [use for use in turn.tool_uses if any(call.ended is use.reply for call in turn.main_calls)]
    allowed_s = history.stretched(grace_s) + history.frozen_s(abort.at_s, float("inf"))
    late = [(it, went_on) for it, went_on in _work_after(uses, abort) if it.at_s > abort.at_s + allowed_s]
    for seen, went_on in late:
        span = {"over_s": seen.at_s - abort.at_s - allowed_s, "since_s": abort.at_s, "until_s": seen.at_s}
        yield too_late(
            history, f"{turn}: {went_on} {seen.at_s - abort.at_s:.1f} s after the abort", (abort, seen), **span
        )
    if uses and not late:
        yield passed(because=f"{turn}: no tool call went on for more than {allowed_s:.1f} s after the abort")


def _work_after(uses: list[ToolUse], abort: AbortSent) -> Iterator[tuple[BeaconSeen, str]]:
    for use in {use.token: use for use in uses}.values():
        for start in use.started:
            if start.id > abort.id:
                yield start, f"{name_of_call(use)} began"
        began = any(not start.background for start in use.started)
        for done in use.done if use.offered.traced and began else ():
            if done.id > abort.id and not done.background and (done.exit_code or 0) < OF_A_SIGNAL:
                yield done, f"{name_of_call(use)} ran on, and ended by itself"
