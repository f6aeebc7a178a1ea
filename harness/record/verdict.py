"""What a check says of a history: pass, fail, inconclusive or error, with the ids of the events that prove it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from wedgehog.harness.record.event import Event

Status = Literal["pass", "fail", "inconclusive", "error", "nothing"]
"""`nothing`: the history held nothing for this check to judge (shown as a dash)."""

WORST_FIRST: tuple[Status, ...] = ("error", "fail", "inconclusive", "pass", "nothing")


@dataclass(frozen=True, slots=True)
class Verdict:
    """One invariant's verdict; `says` is one sentence for a person."""

    status: Status
    says: str = ""
    evidence: tuple[int, ...] = ()
    name: str = ""

    def named(self, name: str) -> "Verdict":
        """The same verdict under an invariant's name."""
        return replace(self, name=name)


def _ids(events: Iterable[Event]) -> tuple[int, ...]:
    return tuple(event.id for event in events)


def passed(says: str = "") -> Verdict:
    """It held (`says` may hold a remark)."""
    return Verdict("pass", says)


def nothing(says: str = "nothing to judge") -> Verdict:
    """There was nothing to judge."""
    return Verdict("nothing", says)


def fail(says: str, evidence: Iterable[Event]) -> Verdict:
    """It was violated, as these events prove."""
    return Verdict("fail", says, _ids(evidence))


def inconclusive(says: str, evidence: Iterable[Event] = ()) -> Verdict:
    """It can't be told, and this is why."""
    return Verdict("inconclusive", says, _ids(evidence))


def error(says: str, evidence: Iterable[Event] = ()) -> Verdict:
    """The harness failed, not the agent."""
    return Verdict("error", says, _ids(evidence))


def worst(verdicts: Iterable[Verdict]) -> Status:
    """The worst status wins: error > fail > inconclusive > pass; of nothing, `nothing`."""
    statuses = {verdict.status for verdict in verdicts}
    return next((status for status in WORST_FIRST if status in statuses), "nothing")
