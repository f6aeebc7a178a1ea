"""Whether an agent that does not say when it has finished may still add to what it has shown."""

from wedgehog.harness.agents.context import AgentContext

LONGEST_DRAFT_S = 30.0
"""After this time without new words, a request or command that began before them no longer keeps the turn open: the
agent may have given it up, and not closed it. A reply that was no answer keeps it open for the same time. Divided by
the time scale."""
GROWS_S = 3.0
"""A message that shows the beginning of a whole answer is changed within this time. Divided by the time scale."""


def may_go_on(context: AgentContext, message: str, shown: str, last_s: float) -> bool:
    """Whether it waits for its model, a command or its next try, or shows only a part of its answer.

    It showed `shown` last, at `last_s`.
    """
    now, longest_s = context.clock.now(), LONGEST_DRAFT_S / context.time_scale
    since_s = context.work.since_s(message, shown)
    if since_s is not None:
        return since_s > last_s or now - last_s < longest_s
    begun_s = context.work.begun_s(message, shown)
    if begun_s is not None:
        return context.could_work_s(max(begun_s, last_s)) < GROWS_S / context.time_scale
    left_off_s = context.work.left_off_s(message, shown, last_s)
    return left_off_s is not None and now - max(left_off_s, last_s) < longest_s
