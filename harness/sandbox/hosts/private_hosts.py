"""The https hosts that an agent sees in its private network, and our links behind them.

        the agent's private network                        │ the harness
agent ──▶ 127.64.0.1:443  (api.anthropic.com)      ──TLS──┼──▶ link llm ──▶ fake
      ──▶ 127.0.0.1:4711  (any link, plain)        ───────┼──▶ the same link
      ──▶ 127.0.0.1:53    (where is evil.example?) ───────┼──▶ no such name; an event records it
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from wedgehog.harness.network.base import Address
from wedgehog.harness.sandbox.hosts.dns_stub import PORT, NameServer
from wedgehog.harness.sandbox.hosts.tls_proxy import TlsProxy
from wedgehog.harness.sandbox.namespaces import Enter, PrivateNetwork, network_unavailable_reason

if TYPE_CHECKING:
    from trustme import CA

HTTPS = 443
UNDECLARED, DISTRUST = "not among the spec's hosts", "the agent does not accept our certificate"
RefusedListener = Callable[[str, str], None]
LOOKUPS = "hosts: files dns\n"
RESOLV = "nameserver 127.0.0.1\nsearch .\noptions timeout:2 attempts:2\n"
OWN = ("localhost", "localhost.localdomain")
MOUNTS = {
    "hosts": "/etc/hosts",
    "resolv.conf": "/etc/resolv.conf",
    "nsswitch.conf": "/etc/nsswitch.conf",
    "nothing": "/var/run/nscd",
}
"""Our files over the system's. nscd is covered because its cache would answer before our name server."""


VARIABLES = ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""The variables by which Node, OpenSSL (with it Python, Go, Ruby), requests and curl load one more authority."""


def hosts_unavailable_reason() -> str | None:
    """Why this system cannot give an agent private hosts; None if it can. Tried once."""
    trustme = None if find_spec("trustme") else "certificates need the trustme package: pip install 'wedgehog[hosts]'"
    return network_unavailable_reason() or trustme


class CertificateAuthority:
    """The authority of one run, made on first use. Its key stays in memory; a host's is a file while it is read."""

    def __init__(self, folder: Path) -> None:
        """Its certificate will be `ca.pem` in `folder`."""
        self._folder = folder
        self.certificate = folder.absolute() / "ca.pem"

    @property
    def env(self) -> dict[str, str]:
        """The environment that makes an agent trust it."""
        return dict.fromkeys(VARIABLES, str(self.certificate))

    def publish(self) -> None:
        """Write its certificate to `certificate`."""
        self._authority.cert_pem.write_to_path(self.certificate)

    def issue(self, host: str) -> ssl.SSLContext:
        """A server context with a certificate for `host`, for HTTP/1.1."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.set_alpn_protocols(["http/1.1"])
        with self._authority.issue_cert(host).private_key_and_cert_chain_pem.tempfile(str(self._folder)) as pem:
            context.load_cert_chain(pem)
        return context

    @cached_property
    def _authority(self) -> "CA":
        from trustme import CA  # imported here because it takes a tenth of a second and few agents need it

        return CA(organization_name="Wedgehog, for one run")


class PrivateHosts:
    """The private hosts of one run. Opened before its agent and closed after it."""

    def __init__(
        self, hosts: Mapping[str, str], links: Mapping[str, Address], folder: Path, refused: RefusedListener
    ) -> None:
        """`hosts`: link by host name. `refused(name, why)` is called once for each name that gets no connection."""
        self._hosts, self._links, self._folder, self._refused = hosts, links, folder / "hosts", refused
        self._seen: set[str] = set()
        self._authority = CertificateAuthority(self._folder)
        self._network = PrivateNetwork(
            {self._folder / name: Path(target) for name, target in MOUNTS.items() if Path(target).exists()}
        )
        self._stack = contextlib.AsyncExitStack()

    @property
    def addresses(self) -> dict[str, str]:
        """The address of each declared host, inside the network."""
        return {host: f"127.64.0.{number}" for number, host in enumerate(self._hosts, start=1)}

    @property
    def links_by_address(self) -> dict[Address, str]:
        """The link behind each declared host's address."""
        return {(address, HTTPS): self._hosts[host] for host, address in self.addresses.items()}

    @property
    def env(self) -> Mapping[str, str]:
        """The environment that the agent needs to trust our certificates."""
        return self._authority.env

    def argv(self, command: Sequence[str], cwd: Path) -> list[str]:
        """The command line that runs `command` in this network."""
        return self._network.argv(command, cwd)

    async def open(self, mark: str, enter: Enter = lambda argv, cwd: argv) -> None:
        """Create the network, its proxies and its name server. Errors: NoNetworkError."""
        self._write()
        self._stack.push_async_callback(self._network.close)
        try:
            await self._network.open(mark, enter)
            for host, address in self.addresses.items():
                tls = await asyncio.to_thread(self._authority.issue, host)
                listening = await self._network.socket("stream", (address, HTTPS))
                await self._stack.enter_async_context(self._proxy(host, listening, tls))
            for link in set(self._links.values()):
                await self._stack.enter_async_context(TlsProxy(await self._network.socket("stream", link), link))
            await self._serve_names()
        except BaseException:
            await self._stack.aclose()
            raise

    async def close(self) -> None:
        """Close every connection, and the network."""
        await self._stack.aclose()

    def _write(self) -> None:
        (self._folder / "nothing").mkdir(parents=True)
        named = {"127.0.0.1": (*OWN, socket.gethostname()), "::1": OWN[:1]}
        lines = [f"{address} {' '.join(names)}\n" for address, names in named.items()]
        lines += [f"{address} {host}\n" for host, address in self.addresses.items()]
        for name, text in {"hosts": "".join(lines), "resolv.conf": RESOLV, "nsswitch.conf": LOOKUPS}.items():
            (self._folder / name).write_text(text, encoding="utf-8")
        self._authority.publish()

    def _proxy(self, host: str, listening: socket.socket, tls: ssl.SSLContext) -> TlsProxy:
        upstream = self._links[self._hosts[host]]
        return TlsProxy(listening, upstream, tls, lambda alert: self._tell(host, f"{DISTRUST} ({alert})"))

    async def _serve_names(self) -> None:
        loop = asyncio.get_running_loop()
        udp = await self._network.socket("datagram", ("127.0.0.1", PORT))
        udp.setblocking(False)
        known = {**self.addresses, **dict.fromkeys((*OWN, socket.gethostname().lower()), "127.0.0.1")}
        transport, _ = await loop.create_datagram_endpoint(lambda: NameServer(known, self._tell), sock=udp)
        self._stack.callback(transport.close)

    def _tell(self, name: str, why: str = UNDECLARED) -> None:
        if name not in self._seen:
            self._seen.add(name)
            self._refused(name, why)
