"""The hosts that an agent believes to talk to, in a network of its own, and our links behind them.

           the agent's own network                        │ ours
agent ──▶ 127.64.0.1:443  (api.anthropic.com)      ──TLS──┼──▶ link llm ──▶ fake
      ──▶ 127.0.0.1:4711  (any link, as it is)     ───────┼──▶ the same
      ──▶ 127.0.0.1:53    (who is evil.example?)   ───────┼──▶ nobody; an event names it
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from wedgehog.harness.network.base import Address
from wedgehog.harness.sandbox.hosts.ca import CertificateAuthority, why_no_authority
from wedgehog.harness.sandbox.hosts.dns_stub import PORT, NameServer
from wedgehog.harness.sandbox.hosts.tls_proxy import TlsProxy
from wedgehog.harness.sandbox.namespaces import Enter, PrivateNetwork, why_no_network

HTTPS = 443
UNDECLARED, DISTRUST = "not among the spec's hosts", "the agent does not take our certificate"
RefusedListener = Callable[[str, str], None]
LOOKUPS = "hosts: files dns\n"
RESOLV = "nameserver 127.0.0.1\nsearch .\noptions timeout:2 attempts:2\n"
OWN = ("localhost", "localhost.localdomain")
LAID = {
    "hosts": "/etc/hosts",
    "resolv.conf": "/etc/resolv.conf",
    "nsswitch.conf": "/etc/nsswitch.conf",
    "nothing": "/var/run/nscd",
}
"""What lies over the system's files. A cache of names (nscd) would answer before our name server is asked."""


def why_no_hosts() -> str:
    """Why no agent can have hosts of its own here; empty where it can. Tried once."""
    return why_no_network() or why_no_authority()


class PrivateHosts:
    """One run's. Opened with its agent, and closed after it."""

    def __init__(
        self, hosts: Mapping[str, str], links: Mapping[str, Address], folder: Path, refused: RefusedListener
    ) -> None:
        """`hosts`: the link behind each name; `refused(name, why)` hears of each other name that is asked for, once."""
        self._hosts, self._links, self._folder, self._refused = hosts, links, folder / "hosts", refused
        self._seen: set[str] = set()
        self._authority = CertificateAuthority(self._folder)
        self._network = PrivateNetwork(
            {self._folder / name: Path(target) for name, target in LAID.items() if Path(target).exists()}
        )
        self._stack = contextlib.AsyncExitStack()

    @property
    def addresses(self) -> dict[str, str]:
        """Where each declared host is, for the agent."""
        return {host: f"127.64.0.{number}" for number, host in enumerate(self._hosts, start=1)}

    @property
    def doors(self) -> dict[Address, str]:
        """The link behind each declared host's address."""
        return {(address, HTTPS): self._hosts[host] for host, address in self.addresses.items()}

    @property
    def env(self) -> Mapping[str, str]:
        """What the agent's environment must hold."""
        return self._authority.env

    def argv(self, command: Sequence[str], cwd: Path) -> list[str]:
        """What to start, so that it becomes `command` in this network."""
        return self._network.argv(command, cwd)

    async def open(self, mark: str, enter: Enter = lambda argv, cwd: argv) -> None:
        """Make it all. Errors: NoNetwork."""
        self._write()
        self._stack.push_async_callback(self._network.close)
        try:
            await self._network.open(mark, enter)
            for host, address in self.addresses.items():
                tls = await asyncio.to_thread(self._authority.vouch, host)
                listening = await self._network.socket("stream", (address, HTTPS))
                await self._stack.enter_async_context(self._door(host, listening, tls))
            for link in set(self._links.values()):
                await self._stack.enter_async_context(TlsProxy(await self._network.socket("stream", link), link))
            await self._serve_names()
        except BaseException:
            await self._stack.aclose()
            raise

    async def close(self) -> None:
        """Hang up on everybody."""
        await self._stack.aclose()

    def _write(self) -> None:
        (self._folder / "nothing").mkdir(parents=True)
        named = {"127.0.0.1": (*OWN, socket.gethostname()), "::1": OWN[:1]}
        lines = [f"{address} {' '.join(names)}\n" for address, names in named.items()]
        lines += [f"{address} {host}\n" for host, address in self.addresses.items()]
        for name, text in {"hosts": "".join(lines), "resolv.conf": RESOLV, "nsswitch.conf": LOOKUPS}.items():
            (self._folder / name).write_text(text, encoding="utf-8")
        self._authority.publish()

    def _door(self, host: str, listening: socket.socket, tls: ssl.SSLContext) -> TlsProxy:
        upstream = self._links[self._hosts[host]]
        return TlsProxy(listening, upstream, tls, lambda alert: self._tell(host, f"{DISTRUST} ({alert})"))

    async def _serve_names(self) -> None:
        loop = asyncio.get_running_loop()
        asked = await self._network.socket("datagram", ("127.0.0.1", PORT))
        asked.setblocking(False)
        known = {**self.addresses, **dict.fromkeys((*OWN, socket.gethostname().lower()), "127.0.0.1")}
        transport, _ = await loop.create_datagram_endpoint(lambda: NameServer(known, self._tell), sock=asked)
        self._stack.callback(transport.close)

    def _tell(self, name: str, why: str = UNDECLARED) -> None:
        if name not in self._seen:
            self._seen.add(name)
            self._refused(name, why)
