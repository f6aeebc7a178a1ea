"""The system text stays in the requests of a session."""

from collections.abc import Iterator, Sequence

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import main_calls_of, requests
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Call

LEAST = 2
"""So many steps in a row must have the system text first, and so many must lack it then."""


@invariant("system_kept")
def system_kept(history: History) -> Iterator[Verdict]:
    """A session whose requests had a system text has one in its later requests too.

    What an agent is told to be, and to leave alone, stands there. Where old messages are dropped from the front, or a
    summary takes the place of all messages, the system text may go with them: the model still answers, but as if it had
    never been told anything. Judged on the requests of the conversation to one model, with the same tools. Each of at
    least two steps had a system text, and two steps in a row have none: a single request without one may be another
    question, such as a check of the answer.

    Fix: Keep the system text apart from the messages, and put it in front of them for each request, after they were
    shortened or replaced by a summary.
    """
    calls = [call for turn in history.turns for call in main_calls_of(turn) if call.arrived.system_chars is not None]
    for alike in _groups(calls):
        had = next((number for number, call in enumerate(alike) if not call.arrived.system_chars), len(alike))
        lost = alike[had:]
        lasting = next((number for number, call in enumerate(lost) if call.arrived.system_chars), len(lost))
        if _steps(alike[:had]) < LEAST:
            continue
        if _steps(lost[:lasting]) < LEAST:
            yield passed(because=f"each of {_steps(alike)} steps has a system text, or no two in a row are without one")
        else:
            says = f"the system text is gone: request {alike[had - 1].number} has one of "
            says += (
                f"{alike[had - 1].arrived.system_chars} characters, and from request {lost[0].number} on there is none"
            )
            yield fail(says, requests((alike[had - 1], *lost[:LEAST])))


def _groups(calls: Sequence[Call]) -> list[list[Call]]:
    """The requests to each model, with the same tools."""
    found: dict[tuple[str, tuple[str, ...]], list[Call]] = {}
    for call in calls:
        found.setdefault((call.arrived.model, call.arrived.tools), []).append(call)
    return list(found.values())


def _steps(calls: Sequence[Call]) -> int:
    return len({(call.arrived.turn, call.arrived.step) for call in calls})
