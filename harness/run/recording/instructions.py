"""What a request still has of what its agent was told: of the project's rules, and of its first system text."""

import re
from dataclasses import dataclass, field
from functools import lru_cache

from wedgehog.fake_llm.conversation import Conversation

LEAST_CHARS = 20
"""A shorter piece of a system text may stand in any other one."""
_ENDS = re.compile(r"\n+|(?<=[.!?])\s+")
_Kind = tuple[str, tuple[str, ...]]
"""The model of a request, and its tools."""


@dataclass
class Instructions:
    """Compares the requests of a run; `rules` is a sentence of the project's rules, empty if there are none."""

    rules: str = ""
    _first: dict[_Kind, frozenset[str]] = field(default_factory=dict)

    def has_rules(self, talk: Conversation) -> bool | None:
        """Whether the rules stand in its system text or its messages, whatever the line ends; None without rules."""
        return self.rules in " ".join(talk.text.split()) if self.rules else None

    def share_of_system(self, talk: Conversation) -> float | None:
        """Which share of the first system text of such requests stands in this one's; None if that was too short."""
        kind = talk.model, tuple(tool.name for tool in talk.tools)
        mine = pieces_of(talk.system)
        first = self._first.setdefault(kind, mine)
        return round(len(first & mine) / len(first), 3) if first else None


@lru_cache(maxsize=8)
def pieces_of(text: str) -> frozenset[str]:
    """Its lines and sentences, without short ones. Most requests of a run have the same text."""
    pieces = (" ".join(piece.split()) for piece in _ENDS.split(text))
    return frozenset(piece for piece in pieces if len(piece) >= LEAST_CHARS)
