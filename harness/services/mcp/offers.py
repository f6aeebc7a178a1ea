"""Which of the model's tool calls is this? An MCP call carries no id of the model's, only a name and arguments."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


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

    The second one is a repeat: the agent does again what the model asked for once.
    """

    _offers: list[_Offer] = field(default_factory=list)

    def add(self, token: str, name: str, args: Mapping[str, Any] | None) -> None:
        """The model makes this call (again, where its request was sent again); None: its arguments were cut."""
        if all(offer.token != token for offer in self._offers):
            self._offers.append(_Offer(token, name, args))

    def match(self, name: str, args: Mapping[str, Any]) -> str:
        """The token of the call that this is, or empty where the model made none.

        The first that was not made yet, with these arguments if there is one; else the last one made, again.
        """
        named = [offer for offer in self._offers if offer.name.endswith(name)]
        same = [offer for offer in named if offer.args == args]
        for offers in (same, named):
            fresh = next((offer for offer in offers if not offer.taken), None)
            again = next((offer for offer in reversed(offers) if offer.taken), None)
            if found := fresh or again:
                found.taken = True
                return found.token
        return ""
