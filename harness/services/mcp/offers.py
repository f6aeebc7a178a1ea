"""Match MCP calls to the model's tool calls by name and arguments: an MCP call does not carry the model's call id."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wedgehog.fake_llm.script.roles import is_named


@dataclass
class _Offer:
    token: str
    name: str
    args: Mapping[str, Any] | None
    taken: bool = False


@dataclass
class Offers:
    """The tool calls that the model has made, in order.

    >>> offers = Offers()
    >>> offers.add("wq1x1x1", "mcp__host__weather", {"city": "Paris"})
    >>> offers.match("weather", {"city": "Paris"}), offers.match("weather", {"city": "Paris"})
    ('wq1x1x1', 'wq1x1x1')

    The second one is a repeat: the agent makes a call twice that the model made once.
    """

    _offers: list[_Offer] = field(default_factory=list)

    def add(self, token: str, name: str, args: Mapping[str, Any] | None) -> None:
        """Add a call of the model, once per token; `args` is None where the arguments were cut."""
        if all(offer.token != token for offer in self._offers):
            self._offers.append(_Offer(token, name, args))

    def match(self, name: str, args: Mapping[str, Any]) -> str:
        """Take the matching call and return its token, else empty."""
        found = self._best(name, args)
        if found is None:
            return ""
        found.taken = True
        return found.token

    def next_match(self, name: str, args: Mapping[str, Any]) -> str:
        """The token that `match` would return; the call counts as not executed."""
        found = self._best(name, args)
        return found.token if found else ""

    def _best(self, name: str, args: Mapping[str, Any]) -> _Offer | None:
        """The matching call: equal arguments first, then not executed, then executed last."""
        named = [offer for offer in self._offers if is_named(offer.name, name)]
        same = [offer for offer in named if offer.args == args]
        offers = same or named
        return next((offer for offer in offers if not offer.taken), offers[-1] if offers else None)
