"""What the kernel knows about one Toxiproxy link, and how that becomes proof that a fault has hit.

```
 agent ◀──(1)── toxiproxy ◀──(2)── fake           every arrow is a pair of sockets of this machine
```

Which socket at (1) belongs to which connection at (2) nobody says. It shows: while a limit is armed, every other
connection of the link is held by the fake, so the only socket at (1) that moves is the struck one.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from wedgehog.harness.network.base import Address, Proof
from wedgehog.harness.network.proxied_connection import ProxiedConnection
from wedgehog.harness.network.tcp_diag import SocketCount, TcpDiag


@dataclass(frozen=True, slots=True)
class Sockets:
    """One look at a link: sockets to agents by cookie, to the upstream by local address, and the upstream's own."""

    agents: dict[int, SocketCount]
    proxied: dict[Address, SocketCount]
    fakes: dict[Address, SocketCount]

    @property
    def open(self) -> set[int]:
        """Cookies of the server's sockets that it has not closed; before it closes one it counts what that carried."""
        return {it.cookie for it in (*self.agents.values(), *self.proxied.values()) if it.open}

    def quiet(self, conns: Collection[Address], stalled: Collection[int]) -> bool:
        """Whether all that the fake has written on `conns` has been sent on to agents."""
        written = [self._written(conn) for conn in conns if conn in self.proxied]
        passed = Counter(it.sent for it in self.agents.values() if it.cookie not in stalled)
        due = Counter(count for count in written if count)
        return all(passed[count] >= times for count, times in due.items()) and not any(
            self.fakes[conn].unsent for conn in conns if conn in self.fakes
        )

    def still(self, stalled: Collection[int]) -> bool:
        """Whether all that has come from agents has been sent on to the upstream."""
        came = Counter(it.received for it in self.agents.values() if it.open and it.cookie not in stalled)
        sent = Counter(it.sent for it in self.proxied.values())
        waits = any(it.unread for it in self.agents.values() if it.cookie not in stalled)
        return not waits and all(sent[count] >= times for count, times in came.items() if count)

    def _written(self, conn: Address) -> int:
        """The fake's own count where the fake is on this machine, else what has reached the proxy."""
        return self.fakes[conn].sent if conn in self.fakes else self.proxied[conn].received


class LinkSockets:
    """Looks at the sockets of one link."""

    def __init__(self, kernel: TcpDiag, listen: Address, upstream: Address) -> None:
        """`listen` is the agents' side."""
        self.kernel, self.listen, self.upstream = kernel, listen, upstream

    def look(self) -> Sockets:
        """The sockets as they are now."""
        agents = self.kernel.sockets(local_port=self.listen[1])
        proxied = self.kernel.sockets(remote_port=self.upstream[1])
        fakes = self.kernel.sockets(local_port=self.upstream[1])
        return Sockets(
            {it.cookie: it for it in agents},
            {it.local: it for it in proxied},
            {it.remote: it for it in fakes},
        )


@dataclass(frozen=True, slots=True)
class SocketGone:
    """A socket has gone before its count could be seen: only the server's own count can tell whether it got there."""

    expected: int  # how much the server's count of ended connections must have grown


DeliveryFinding = Proof | SocketGone | None


@dataclass(frozen=True, slots=True)
class DownstreamWatch:
    """Waits for `at` bytes towards the agent on the connection that the fake knows as `conn`."""

    conn: Address
    at: int
    stalls: bool
    before: Sockets

    @property
    def base(self) -> int:
        """What the connection had carried when the fault was armed."""
        return self.before.proxied[self.conn].received if self.conn in self.before.proxied else 0

    def see(self, now: Sockets) -> DeliveryFinding:
        """What the sockets prove by now."""
        for cookie in filter(self.suspects, self.before.agents):
            finding = self._suspect(now.agents.get(cookie), now)
            if finding is not None:
                return finding
        return None

    def over(self, now: Sockets) -> bool:
        """Whether the connection has ended at the proxy, so that nothing more can come."""
        own = now.proxied.get(self.conn)
        return own is None or not own.open

    def overran(self, now: Sockets) -> bool:
        """Whether a stalled connection went on after all."""
        moved = [it for cookie, it in now.agents.items() if self.suspects(cookie) and it.sent > self.at]
        return self.stalls and bool(moved)

    def _suspect(self, it: SocketCount | None, now: Sockets) -> DeliveryFinding:
        if it is None or it.left:
            if it is not None and it.sent == self.at:
                return Proof(self.at, f"kernel: {self.at} bytes sent to the agent's socket, then FIN")
            return None if self.stalls else SocketGone(self._expected(now))
        if not self.stalls or it.sent != self.at:
            return None
        if not self.swallows:
            arrived = Proof(self.at, f"kernel: {self.at} bytes sent to the agent's socket and acknowledged")
            return None if it.unacked else arrived
        own = now.proxied.get(self.conn)
        swallowed = own is not None and own.received > self.base and not own.unread
        return Proof(self.at, "kernel: the proxy has taken bytes and passed none") if swallowed else None

    def suspects(self, cookie: int) -> bool:
        """Whether this socket towards an agent may be the struck one: it had carried as much as the connection."""
        it = self.before.agents.get(cookie)
        return it is not None and it.open and it.sent == self.base

    def _expected(self, now: Sockets) -> int:
        """The struck connection's bytes, and those of idle ones that were closed in the meantime."""
        ended = [it.sent for it in self.before.agents.values() if it.open and it.cookie not in now.open]
        return self.at + sum(ended) - self.base

    @property
    def swallows(self) -> bool:
        """Whether nothing may pass at all, so that no count will move."""
        return self.at <= self.base


@dataclass(slots=True)
class UpstreamWatch:
    """Waits for `at` bytes towards the fake on the connection that the turnstile has let through."""

    at: int
    stalls: bool
    before: Sockets
    passage: ProxiedConnection
    knocked: bool = False  # its bytes have been seen at the proxy

    def see(self, now: Sockets) -> DeliveryFinding:
        """What the sockets prove by now."""
        came = [it for it in self.own(now) if it.received >= max(1, self.at) and not (it.unread and not self.at)]
        self.knocked = self.knocked or bool(came)
        if self.stalls:
            passed = [it for conn, it in now.proxied.items() if self._new(conn) and it.sent == self.at]
            says = f"kernel: the agent sent {came[0].received} bytes, {self.at} of them went on" if came else ""
            return Proof(self.at, says) if came and passed else None
        return SocketGone(self.at + self._ended_since(now))

    def over(self, now: Sockets) -> bool:
        """Whether the request got through whole, because it was shorter, or its connection has ended."""
        return self.passage.over or self.passage.down.carried > 0

    def overran(self, now: Sockets) -> bool:
        """Whether a stalled request went on after all."""
        return False

    def own(self, now: Sockets) -> list[SocketCount]:
        """The connection's socket at the proxy."""
        return [it for it in now.agents.values() if it.remote == self.passage.peer]

    @property
    def swallows(self) -> bool:
        """Whether nothing may pass at all, so that no count will move."""
        return self.at == 0

    def _ended_since(self, now: Sockets) -> int:
        """What connections had brought that were open when we armed, such as the one of the reply before."""
        return sum(it.sent for it in self.before.proxied.values() if it.open and it.cookie not in now.open)

    def _new(self, conn: Address) -> bool:
        """Whether it had carried nothing."""
        old = self.before.proxied.get(conn)
        return old is None or old.sent == 0


Watch = DownstreamWatch | UpstreamWatch
