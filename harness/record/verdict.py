"""The result of a check: pass, fail, inconclusive or error, with the ids of the events that prove it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from wedgehog.harness.record.events.base import Event

Status = Literal["pass", "fail", "inconclusive", "error", "nothing"]
"""`nothing`: the history holds nothing for this check to judge."""

Level = Literal["safe", "strict"]
"""`safe`: no lie, no waste, and it recovers. `strict`: also what a team wants of an agent that it ships."""

Reason = Literal[
    "faults",
    "harm",
    "harness",
    "limit",
    "messages",
    "overload",
    "permission",
    "record",
    "script",
    "start",
    "subagents",
    "validator",
]
"""What makes a run count for nothing, beside its invariants."""

NOTHING_TO_JUDGE = "nothing to judge"

WORST_FIRST: tuple[Status, ...] = ("error", "fail", "inconclusive", "pass", "nothing")


@dataclass(frozen=True, slots=True)
class Violation:
    """One violation of an invariant: its sentence, and the ids of the events that prove it."""

    says: str
    evidence: tuple[int, ...] = ()
    like: str = ""
    """Of several that are told as one: the sentence of the first of them."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of one invariant; `says` is one sentence for a person."""

    status: Status
    says: str = ""
    evidence: tuple[int, ...] = ()
    name: str = ""
    overload: bool = False
    """Whether a busy machine is the reason: on a quiet one it might be judged."""
    fix: str = ""
    """Of a violation: how to fix it."""
    because: str = ""
    """Of a pass: what shows that the invariant holds. It is no remark."""
    more: tuple[Violation, ...] = ()
    """Of a violation: what else violates the invariant."""

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The verdict's own sentence and evidence, then the further ones."""
        return (Violation(self.says, self.evidence), *self.more)

    @property
    def all_evidence(self) -> tuple[int, ...]:
        """The evidence of all its violations, each event once."""
        return tuple(dict.fromkeys(event for violation in self.violations for event in violation.evidence))

    def named(self, name: str) -> "Verdict":
        """The same verdict with the name of its invariant."""
        return replace(self, name=name)

    def for_reason(self, reason: Reason) -> "Verdict":
        """The same verdict, which is of no invariant, with the name of its reason."""
        return replace(self, name=reason)


def _ids(events: "Iterable[Event]") -> tuple[int, ...]:
    return tuple(event.id for event in events)


def passed(says: str = "", *, because: str = "") -> Verdict:
    """The invariant holds; `says` may be a remark, `because` is what shows that it holds."""
    return Verdict("pass", says, because=because)


def nothing(says: str = NOTHING_TO_JUDGE) -> Verdict:
    """The history holds nothing to judge."""
    return Verdict("nothing", says)


def fail(says: str, evidence: "Iterable[Event]") -> Verdict:
    """The invariant is violated; these events prove it."""
    return Verdict("fail", says, _ids(evidence))


def inconclusive(says: str, evidence: "Iterable[Event]" = (), *, overload: bool = False) -> Verdict:
    """The invariant cannot be judged; `says` is the reason."""
    return Verdict("inconclusive", says, _ids(evidence), overload=overload)


def error(says: str, evidence: "Iterable[Event]" = ()) -> Verdict:
    """The harness failed, not the agent."""
    return Verdict("error", says, _ids(evidence))


def worst(verdicts: Iterable[Verdict]) -> Status:
    """The worst status: error > fail > inconclusive > pass > nothing; `nothing` if there is no verdict."""
    statuses = {verdict.status for verdict in verdicts}
    return next((status for status in WORST_FIRST if status in statuses), "nothing")
