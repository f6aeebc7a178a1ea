"""A user who allowed one tool call is asked again for the next one."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import name_of_call
from wedgehog.harness.record.events.turn import PermissionAsked
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import ToolUse

ONCE_OR_FOR_EVER = {"allow_once", "allow_always"}


@invariant("asked_each_time", level="strict")
def asked_each_time(history: History) -> Iterator[Verdict]:
    """A user who allowed a call of a tool only once is asked before the next call of that tool runs.

    A user who chooses "once" where "always" is offered too wants to decide about the next call as well. Judged where
    each request for permission offers both and names its call, and until the user allows something for ever.

    Fix: Let "once" allow the call that it answers, and store nothing of it. Keep what is allowed for the session apart.
    """
    questions = list(history.of(PermissionAsked))
    if not questions or not all(it.tokens and set(it.offered) >= ONCE_OR_FOR_EVER for it in questions):
        return
    named = {token: it for it in questions for token in it.tokens}
    allowed: dict[str, tuple[ToolUse, PermissionAsked]] = {}
    for use in history.tool_uses:
        asked = named.get(use.token)
        if asked is not None and asked.chosen == "allow_always":
            return
        if use.started and asked is None and use.offered.name in allowed:
            first, answer = allowed[use.offered.name]
            says = f"{name_of_call(use)} ran, and its user was not asked: {name_of_call(first)} was allowed only once"
            yield fail(says, (answer, use.started[0]))
        elif asked is not None and asked.chosen == "allow_once":
            if use.offered.name in allowed:
                yield passed(because=f"its user was asked again for {name_of_call(use)}")
            allowed.setdefault(use.offered.name, (use, asked))
