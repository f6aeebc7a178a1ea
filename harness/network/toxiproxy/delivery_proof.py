"""The kernel's byte counts of one Toxiproxy link, and how they prove that a fault took effect.

```
 agent ◀──(1)── toxiproxy ◀──(2)── fake           each arrow is a pair of sockets of this machine
```

Neither the kernel nor Toxiproxy maps the sockets at (1) to the connections at (2). While a limit is armed, the fake
provider holds every other connection of the link, so only the faulty connection's socket at (1) changes its count.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from wedgehog.harness.network.base import Address, Proof
from wedgehog.harness.network.proxied_connection import ProxiedConnection
from wedgehog.harness.network.tcp_diag import SocketCount, TcpDiag


@dataclass(frozen=True, slots=True)
class Sockets:
    """A snapshot of a link: sockets to agents by cookie, to the upstream by local address, and the upstream's own."""

    agents: dict[int, SocketCount]
    proxied: dict[Address, SocketCount]
    fakes: dict[Address, SocketCount]

    @property
    def open(self) -> set[int]:
        """Cookies of the sockets that the server has not closed; it updates its count before it closes a socket."""
        return {it.cookie for it in (*self.agents.values(), *self.proxied.values()) if it.open}

    def quiet(self, conns: Collection[Address], stalled: Collection[int]) -> bool:
        """Return whether all that the fake provider wrote on `conns` has been forwarded to agents."""
        written = [self._written(conn) for conn in conns if conn in self.proxied]
        passed = Counter(it.sent for it in self.agents.values() if it.cookie not in stalled)
        due = Counter(count for count in written if count)
        return all(passed[count] >= times for count, times in due.items()) and not any(
            self.fakes[conn].unsent for conn in conns if conn in self.fakes
        )

    def still(self, stalled: Collection[int]) -> bool:
        """Return whether all that agents sent has been forwarded to the upstream."""
        came = Counter(it.received for it in self.agents.values() if it.open and it.cookie not in stalled)
        sent = Counter(it.sent for it in self.proxied.values())
        waits = any(it.unread for it in self.agents.values() if it.cookie not in stalled)
        return not waits and all(sent[count] >= times for count, times in came.items() if count)

    def _written(self, conn: Address) -> int:
        """The bytes that the upstream sent if it is on this machine, else those that reached the proxy."""
        return self.fakes[conn].sent if conn in self.fakes else self.proxied[conn].received


class LinkSockets(NamedTuple):
    """The sockets of one link; agents connect to `listen`."""

    diag: TcpDiag
    listen: Address
    upstream: Address

    def look(self) -> Sockets:
        """Take a snapshot."""
        listen, upstream = self.listen[1], self.upstream[1]
        found = self.diag.sockets([listen, upstream], [upstream])
        return Sockets(
            {it.cookie: it for it in found if it.local[1] == listen},
            {it.local: it for it in found if it.remote[1] == upstream},
            {it.remote: it for it in found if it.local[1] == upstream},
        )


class SocketGone(NamedTuple):
    """A socket closed before its count was read. If the server's count grew by `expected`, the bytes arrived."""

    expected: int


DeliveryFinding = Proof | SocketGone | None


@dataclass(frozen=True, slots=True)
class DownstreamWatch:
    """Checks for `at` bytes to the agent on the connection whose remote address at the fake provider is `conn`."""

    conn: Address
    at: int
    stalls: bool
    before: Sockets

    @property
    def base(self) -> int:
        """The bytes that the connection had carried when the fault was armed."""
        return self.before.proxied[self.conn].received if self.conn in self.before.proxied else 0

    def see(self, now: Sockets) -> DeliveryFinding:
        """Return what the snapshot proves; None: nothing yet."""
        for cookie in filter(self.suspects, self.before.agents):
            finding = self._suspect(now.agents.get(cookie), now)
            if finding is not None:
                return finding
        return None

    def over(self, now: Sockets) -> bool:
        """Return whether the connection has ended at the proxy, so that no more bytes can arrive."""
        own = now.proxied.get(self.conn)
        return own is None or not own.open

    def overran(self, now: Sockets) -> bool:
        """Return whether a stalled connection passed more bytes than it should."""
        moved = [it for cookie, it in now.agents.items() if self.suspects(cookie) and it.sent > self.at]
        return self.stalls and bool(moved)

    def _suspect(self, it: SocketCount | None, now: Sockets) -> DeliveryFinding:
        if it is None or it.closed_first:
            if it is not None and it.sent == self.at:
                return Proof(self.at, f"kernel counts: {self.at} bytes were sent on, then FIN")
            return None if self.stalls else SocketGone(self._expected(now))
        if not self.stalls or it.sent != self.at:
            return None
        if not self.passes_nothing:
            arrived = Proof(self.at, f"kernel counts: {self.at} bytes were sent on and have arrived")
            return None if it.unacked else arrived
        own = now.proxied.get(self.conn)
        swallowed = own is not None and own.received > self.base and not own.unread
        return Proof(self.at, "kernel counts: the proxy received bytes and forwarded none") if swallowed else None

    def suspects(self, cookie: int) -> bool:
        """Return whether this socket to an agent can be the faulty one: it had carried as much as the connection."""
        it = self.before.agents.get(cookie)
        return it is not None and it.open and it.sent == self.base

    def _expected(self, now: Sockets) -> int:
        """The bytes of the faulty connection, and of idle connections that closed since the snapshot."""
        ended = [it.sent for it in self.before.agents.values() if it.open and it.cookie not in now.open]
        return self.at + sum(ended) - self.base

    @property
    def passes_nothing(self) -> bool:
        """Return whether no byte may pass, so that no count changes."""
        return self.at <= self.base


@dataclass(slots=True)
class UpstreamWatch:
    """Checks for `at` bytes to the fake provider on the connection that the request gate released."""

    at: int
    stalls: bool
    before: Sockets
    connection: ProxiedConnection
    reached_proxy: bool = False

    def see(self, now: Sockets) -> DeliveryFinding:
        """Return what the snapshot proves; None: nothing yet."""
        came = [it for it in self.own(now) if it.received - it.unread >= max(1, self.at)]
        self.reached_proxy = self.reached_proxy or bool(came)
        old = self.before.proxied
        if not self.stalls:
            # The server counts the bytes of connections that were open when the fault was armed and have closed since.
            ended = (it.sent for it in old.values() if it.open and it.cookie not in now.open)
            return SocketGone(self.at + sum(ended))
        fresh = [it for conn, it in now.proxied.items() if conn not in old or old[conn].sent == 0]
        if not came or all(it.sent != self.at for it in fresh):
            return None
        return Proof(
            self.at,
            f"kernel counts: of {came[0].received} bytes that the agent sent {self.at} were forwarded",
        )

    def over(self, now: Sockets) -> bool:
        """Return whether the request passed completely, because it was shorter, or its connection has ended."""
        return self.connection.over or self.connection.down.carried > 0

    def overran(self, now: Sockets) -> bool:
        """Return False: the counts do not show it."""
        return False

    def own(self, now: Sockets) -> list[SocketCount]:
        """Return the connection's socket at the proxy."""
        return [it for it in now.agents.values() if it.remote == self.connection.peer]

    @property
    def passes_nothing(self) -> bool:
        """Return whether no byte may pass, so that no count changes."""
        return self.at == 0

    @property
    def swallowed(self) -> bool:
        """Return whether the proxy took bytes of the request, or closed the connection on which they came.

        It never counts the bytes of a long request: its reader still waits for the limiter that has stopped.
        """
        return self.reached_proxy or (self.connection.up.carried > 0 and self.connection.upstream_hung_up)


Watch = DownstreamWatch | UpstreamWatch
