"""What an agent was told stays in its requests after its conversation was shortened."""

from collections.abc import Callable, Iterator, Sequence
from itertools import dropwhile, takewhile

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import compacts, main_calls_of, requests
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Call

LEAST = 2
"""So many steps in a row must lack what was there before."""
ANOTHER = 0.2
"""A system text with less of the first one than this is another one."""


@invariant("instructions_kept", level="strict")
def instructions_kept(history: History) -> Iterator[Verdict]:
    """The project's rules stay in the requests of a session, and a summary does not replace the system text.

    Rules such as those of AGENTS.md hold for the whole session. Where they are a message like any other, they go with
    the old messages, and a summary need not have them: the model works on as if they did not exist. Judged where the
    scenario has `rules`, and a request of the conversation had them: an agent that reads no such file is not judged.

    The system text says what the agent is. After a summary some agents go on with that of another one of them. Judged
    on the requests of the conversation to one model, with the same tools, before and after a request for a summary:
    less than a fifth of the lines and sentences of the first system text are left.

    Two steps in a row must lack what was there before: a single request may be another question.

    Fix: Put the rules and the system text in front of each request, after its messages were shortened or replaced.
    Store which agent a session belongs to, and name it where you add messages to the session.
    """
    calls = [call for turn in history.turns for call in main_calls_of(turn)]
    ruled = [call for call in calls if call.arrived.rules_seen is not None]
    yield from _lasts(ruled, "the project's rules", lambda call: bool(call.arrived.rules_seen))
    summed_up = min((call.arrived.id for call in history.calls if compacts(call)), default=None)
    if summed_up is None:
        return
    for alike in _groups(calls):
        if alike[0].arrived.id < summed_up < alike[-1].arrived.id:
            yield from _lasts(alike, "the first system text", _has_its_system)


def _has_its_system(call: Call) -> bool:
    """Or another text of its own kind; where there is none any more, `system_kept` says so."""
    shared = call.arrived.system_shared
    return shared is None or shared >= ANOTHER or call.arrived.system_chars == 0


def _lasts(calls: Sequence[Call], what: str, has: Callable[[Call], bool]) -> Iterator[Verdict]:
    """Whether all requests from the first one that `has` it on have it, or all but single steps."""
    left = list(dropwhile(lambda call: not has(call), calls))
    steps = _steps(left)
    while left:
        with_it = list(takewhile(has, left))
        without = list(takewhile(lambda call: not has(call), left[len(with_it) :]))
        left = left[len(with_it) + len(without) :]
        if _steps(without) >= LEAST:
            lost = f"request {with_it[-1].number} has {what}"
            says = f"{lost}, and from request {without[0].number} on {_steps(without)} steps in a row do not"
            yield fail(says, requests((with_it[-1], *without[:LEAST])))
            return
    if steps:
        yield passed(because=f"{what}: no two of {steps} steps in a row are without")


def _groups(calls: Sequence[Call]) -> list[list[Call]]:
    """The requests to each model, with the same tools, whose system text was compared."""
    found: dict[tuple[str, tuple[str, ...]], list[Call]] = {}
    for call in calls:
        if call.arrived.system_shared is not None:
            found.setdefault((call.arrived.model, call.arrived.tools), []).append(call)
    return list(found.values())


def _steps(calls: Sequence[Call]) -> int:
    return len({(call.arrived.turn, call.arrived.step) for call in calls})
