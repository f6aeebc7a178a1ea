"""What a search finds, and how it tells of it while it goes on."""

from dataclasses import dataclass, field
from typing import Protocol

from wedgehog.harness.search.corpus import Finding
from wedgehog.harness.search.player import Played


class Watcher(Protocol):
    """Shows how far a search is."""

    def tries(self, what: str) -> None:
        """A scenario is played now."""
        ...

    def found(self, finding: Finding) -> None:
        """A new failure was seen, or one that an earlier search found is still there."""
        ...

    def gone(self, name: str) -> None:
        """A scenario that an earlier search found passes now."""
        ...


@dataclass
class Found:
    """The results of a search."""

    tried: int = 0
    unclear: list[Played] = field(default_factory=list)
    skipped: int = 0
    unsteady: list[Played] = field(default_factory=list)
    """Failures that a second try did not show."""
    findings: list[Finding] = field(default_factory=list)
    untried: list[Finding] = field(default_factory=list)
    """Failures for whose second try the budget did not suffice."""
    gone: list[str] = field(default_factory=list)
    greatest: list[Played] = field(default_factory=list)
