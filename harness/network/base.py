"""What a network offers to those who strike: links with an address each, spots on them, and proof that it hit.

```python
async with network as net:
    link = await net.open_link("llm", upstream=("127.0.0.1", 8000), resets=False)
    # the fake holds a reply before its first byte, on the connection whose remote address is `conn`
    strike = await link.strike(Cut("fin"), Downstream(conn, at=carried + head + 120))
    # the fake goes on writing
    proof = await strike.fired(timeout_s=5)      # None: armed, but never reached
    await strike.heal()
```
"""

from dataclasses import dataclass
from typing import Literal, Protocol, Self

from wedgehog.harness.faults.base import WireFault

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Downstream:
    """Towards the agent, at absolute byte `at` of the connection whose remote address the fake knows as `conn`."""

    conn: Address
    at: int


@dataclass(frozen=True, slots=True)
class Upstream:
    """Towards the fake, at byte `at` of the next request, which must come on a fresh connection."""

    at: int


@dataclass(frozen=True, slots=True)
class WholeLink:
    """Every connection of the link, open or to come.

    Nobody writes on `conn` now, and its first `at` bytes arrive unharmed.
    """

    conn: Address | None = None
    at: int = 0


Target = Downstream | Upstream | WholeLink


@dataclass(frozen=True, slots=True)
class Proof:
    """That a fault really struck: how many bytes passed (None where it is not about bytes), and how we know."""

    bytes: int | None
    how: str


class NetworkError(Exception):
    """Root of what can go wrong in a network.

    NetworkError
    ├── LinkBusyError              the fault can't be armed now without harm to another connection
    ├── NoServer              Toxiproxy was asked for and can't be had
    └── ToxiproxyError        the server's API
        ├── ToxiproxyGone     no answer: it was stopped, or it died
        ├── ToxiproxyRefused  it answered with an error
        └── BadToxic          a toxic that its kind doesn't know: our own mistake
    """


class LinkBusyError(NetworkError):
    """The fault can't be armed now without harm to another connection of the link."""


class Strike(Protocol):
    """One armed fault. Whoever armed it asks for proof and heals it, in that order."""

    async def fired(self, timeout_s: float) -> Proof | None:
        """Wait until the fault has hit; None if it has not by then. May be asked again."""

    async def heal(self) -> None:
        """Take the fault away; a stall that is still open ends with FIN. Healing twice is harmless."""


class Link(Protocol):
    """A named hop from `address` (the agent's side) to an upstream, that can be harmed."""

    name: str
    address: Address

    async def admit(self, conn: Address, carried: int) -> None:
        """Wait until bytes of `conn`, which carried `carried` so far, may be written.

        Called by the fake's gate before every reply and at every stop. A limit that is armed for one connection
        would cut all others short, so those wait here until it has been reached.
        """

    async def strike(self, fault: WireFault, spot: Target) -> Strike:
        """Arm `fault`; when this returns it will hit the spot exactly.

        For `Downstream` the fake must be holding that connection: anywhere before the spot for faults with
        `begins == "before"`, exactly at it for `begins == "at_spot"`. Raises NetworkError.
        """

    async def close(self) -> None:
        """Heal, close the listener and every connection."""


class Network(Protocol):
    """Opens links. An async context manager; leaving it closes them all."""

    name: Literal["toxiproxy", "embedded"]

    async def open_link(self, name: str, upstream: Address, resets: bool, requests: bool = False) -> Link:
        """A new link to `upstream`; `resets` and `requests` say that an RST, or a request, may be struck on it."""

    async def alive(self) -> bool:
        """Whether the network still works."""

    async def __aenter__(self) -> Self:
        """Start."""

    async def __aexit__(self, *exc_info: object) -> None:
        """Close every link."""
