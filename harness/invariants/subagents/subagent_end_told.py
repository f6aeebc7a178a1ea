"""The end of a subagent in the background reaches the model of its parent."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.subagents.background_subagents import background_subagents
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed


@invariant("subagent_end_told", level="strict")
def subagent_end_told(history: History) -> Iterator[Verdict]:
    """The model is told that a subagent in the background has failed, or was ended with the agent's process.

    A model that knows only that it began waits for it, or tells its user that the work goes on. Judged as
    `subagent_returns` is; after a kill of the agent, where a later request carries the result of the call that began
    the subagent.

    Fix: Put the error of a failed subagent into the next request of its parent's conversation. When a session is
    continued, say which of its subagents were ended with the process before.
    """
    for it in background_subagents(history):
        if it.how not in ("failed", "cut off") or not it.chances or (it.died and not it.remembered):
            continue
        if it.told or it.may_be_asked_for:
            yield passed(because=f"the model hears of the end of {it.name}, or may ask for it")
        else:
            yield fail(it.unheard, (it.last.arrived, it.end, it.chances[-1]))
