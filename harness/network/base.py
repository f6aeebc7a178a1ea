"""The interface of a network: links, targets on them, armed faults and the proof that a fault took effect.

```python
async with network as net:
    link = await net.open_link("llm", upstream=("127.0.0.1", 8000), resets=False)
    # the fake provider holds a reply before its first byte, on the connection whose remote address is `conn`
    strike = await link.strike(Cut("fin"), Downstream(conn, at=carried + head + 120))
    # the fake provider continues to write
    proof = await strike.fired(timeout_s=5)      # None: armed, but not reached
    await strike.heal()
```
"""

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Literal, Protocol, Self

from wedgehog.harness.faults.base import WireFault

Address = tuple[str, int]
NetworkName = Literal["toxiproxy", "embedded", "sim"]


@dataclass(frozen=True, slots=True)
class Downstream:
    """Bytes to the agent: absolute byte `at` of the connection whose remote address at the fake provider is `conn`."""

    conn: Address
    at: int


@dataclass(frozen=True, slots=True)
class Upstream:
    """Bytes to the fake provider: byte `at` of the next request, which must use a new connection."""

    at: int


@dataclass(frozen=True, slots=True)
class WholeLink:
    """Every open and future connection of the link; on `conn`, which is idle now, the first `at` bytes still arrive."""

    conn: Address | None = None
    at: int = 0


Target = Downstream | Upstream | WholeLink


@dataclass(frozen=True, slots=True)
class Proof:
    """Proof that a fault took effect: how many bytes passed (None for a fault that counts no bytes), and its source."""

    bytes: int | None
    how: str


def _unproved() -> "asyncio.Future[Proof | None]":
    return asyncio.get_running_loop().create_future()


@dataclass(eq=False)
class Strike(ABC):
    """A fault that is armed on a link. The caller first waits for the proof, then heals it.

    `hit` gets the first proof, or None when there can be none any more.
    """

    hit: "asyncio.Future[Proof | None]" = field(default_factory=_unproved, init=False)

    async def fired(self, timeout_s: float) -> Proof | None:
        """Wait for the proof that it took effect; None after `timeout_s`. May be called again.

        Raises NetworkError if the network died.
        """
        done, _ = await asyncio.wait([self.hit], timeout=timeout_s)
        return self.hit.result() if done else None

    def settle(self, proof: Proof | None) -> None:
        """Set the result, unless it is set."""
        if not self.hit.done():
            self.hit.set_result(proof)

    @abstractmethod
    async def heal(self) -> None:
        """Remove the fault; a stall that is still open ends with FIN. A second call has no effect."""


class NetworkError(Exception):
    """Base class of all network errors.

    NetworkError
    ├── LinkBusyError              the fault can't be armed now without an effect on another connection
    ├── ConnectionGoneError        the fault can't be armed, because its connection has ended
    ├── NoServerError              Toxiproxy is required and not available
    └── ToxiproxyError             an error of the server's API
        ├── ToxiproxyGoneError     no response: the server was stopped, or it died
        ├── ToxiproxyRefusedError  the server returned an error
        └── BadToxicError          a toxic with wrong attributes: our own mistake
    """


class LinkBusyError(NetworkError):
    """The fault can't be armed now without an effect on another connection of the link."""


class ConnectionGoneError(NetworkError):
    """The connection on which the fault should be armed has ended: its client hung up."""


class Link(Protocol):
    """A named hop from `address` (the agent's side) to an upstream, on which faults can be armed."""

    name: str
    address: Address

    async def admit(self, conn: Address, carried: int) -> None:
        """Wait until the fake provider may write on `conn`, which has carried `carried` bytes.

        The fake provider calls it before each reply and at each stop. A limit that is armed for one connection
        applies to all, so the others wait here until the limit has been reached.
        """

    async def strike(self, fault: WireFault, target: Target, /) -> Strike:
        """Arm `fault`; after this returns it takes effect exactly at the target.

        For `Downstream` the fake provider must hold that connection: anywhere before the target for faults with
        `begins == "before"`, exactly at it for `begins == "at_target"`. Raises NetworkError; ConnectionGoneError if
        that connection has ended.
        """

    async def close(self) -> None:
        """Heal, close the listener and every connection."""


class Network(Protocol):
    """Opens links. An async context manager; leaving it closes them all."""

    name: NetworkName

    async def open_link(self, name: str, upstream: Address, resets: bool, requests: bool = False) -> Link:
        """A new link to `upstream`; `resets` allows RST faults on it, `requests` allows faults on requests."""

    async def alive(self) -> bool:
        """Return whether the network still works."""

    async def __aenter__(self) -> Self:
        """Start."""

    async def __aexit__(self, *exc_info: object) -> None:
        """Close every link."""
