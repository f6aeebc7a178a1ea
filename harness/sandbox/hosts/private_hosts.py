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
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from wedgehog.harness.faults.process_fault import BadCertificateKind, HostHarm
from wedgehog.harness.network.base import Address
from wedgehog.harness.sandbox.hosts.dns_stub import PORT, NameServer
from wedgehog.harness.sandbox.hosts.tls_proxy import TlsProxy
from wedgehog.harness.sandbox.namespaces import Enter, PrivateNetwork, network_unavailable_reason

if TYPE_CHECKING:
    from trustme import CA, LeafCert

HTTPS = 443
UNDECLARED, DISTRUST = "not among the spec's hosts", "the agent does not accept our certificate"
RefusedListener = Callable[[str, str], None]


class CertificateListener(Protocol):
    """Called when a handshake with a bad certificate is over."""

    def __call__(self, host: str, kind: BadCertificateKind, *, accepted: bool) -> None:
        """Whether the agent accepted it."""


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
        return self._context(self._authority.issue_cert(host))

    def issue_bad(self, host: str, kind: BadCertificateKind) -> ssl.SSLContext:
        """The same with a certificate that no client may accept for `host`."""
        if kind == "expired":
            now = datetime.now(UTC)
            first, last = now - timedelta(days=90), now - timedelta(days=1)
            return self._context(self._authority.issue_cert(host, not_before=first, not_after=last))
        if kind == "wrong_name":
            return self._context(self._authority.issue_cert(f"not-{host}"))
        return self._context(_new_authority("unknown").issue_cert(host))

    def _context(self, certificate: "LeafCert") -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.set_alpn_protocols(["http/1.1"])
        with certificate.private_key_and_cert_chain_pem.tempfile(str(self._folder)) as pem:
            context.load_cert_chain(pem)
        return context

    @cached_property
    def _authority(self) -> "CA":
        return _new_authority("Wedgehog, for one run")


def _new_authority(organization: str) -> "CA":
    from trustme import CA  # imported here because it takes a tenth of a second and few agents need it

    return CA(organization_name=organization)


class PrivateHosts:
    """The private hosts of one run. Opened before its agent and closed after it."""

    def __init__(
        self,
        hosts: Mapping[str, str],
        links: Mapping[str, Address],
        folder: Path,
        refused: RefusedListener,
        shown: CertificateListener | None = None,
        *,
        ask_for_names: bool = False,
    ) -> None:
        """`hosts`: link by host name. `refused(name, why)` is called once for each name that gets no connection.

        With `ask_for_names` /etc/hosts has no declared host, so that each lookup asks our name server.
        """
        self._hosts, self._links, self._folder, self._refused = hosts, links, folder / "hosts", refused
        self._shown_to, self._ask_for_names = shown, ask_for_names
        self._proxies: dict[str, TlsProxy] = {}
        self._names: NameServer | None = None
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
                self._proxies[host] = await self._stack.enter_async_context(self._proxy(host, listening, tls))
            for link in set(self._links.values()):
                await self._stack.enter_async_context(TlsProxy(await self._network.socket("stream", link), link))
            await self._serve_names()
        except BaseException:
            await self._stack.aclose()
            raise

    async def harm(self, link: str, harm: HostHarm, met: Callable[[str], None]) -> None:
        """Harm the hosts behind a link; `met` gets the proof each time the agent meets it."""
        for host in self._behind(link):
            if harm.lookup is not None and self._names is not None:
                self._names.harms[host] = (harm, met)
            if harm.certificate is not None:
                bad = await asyncio.to_thread(self._authority.issue_bad, host, harm.certificate)
                self._proxies[host].show_instead(bad, partial(self._shown, host, harm.certificate, met))

    def heal(self, link: str) -> None:
        """Remove the harm."""
        for host in self._behind(link):
            self._proxies[host].show_instead(None)
            if self._names is not None:
                self._names.harms.pop(host, None)

    def _behind(self, link: str) -> list[str]:
        return [host for host, its in self._hosts.items() if its == link]

    def _shown(self, host: str, kind: BadCertificateKind, met: Callable[[str], None], refusal: str | None) -> None:
        """A handshake with a bad certificate is over: refused with these words, or accepted."""
        met(f"{host} showed the agent a certificate: {kind.replace('_', ' ')}; {refusal or 'the agent accepted it'}")
        if self._shown_to is not None:
            self._shown_to(host, kind, accepted=refusal is None)

    async def close(self) -> None:
        """Close every connection, and the network."""
        await self._stack.aclose()

    def _write(self) -> None:
        (self._folder / "nothing").mkdir(parents=True)
        named = {"127.0.0.1": (*OWN, socket.gethostname()), "::1": OWN[:1]}
        lines = [f"{address} {' '.join(names)}\n" for address, names in named.items()]
        if not self._ask_for_names:
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
        names = self._names = NameServer(known, self._tell)
        transport, _ = await loop.create_datagram_endpoint(lambda: names, sock=udp)
        self._stack.callback(transport.close)

    def _tell(self, name: str, why: str = UNDECLARED) -> None:
        if name not in self._seen:
            self._seen.add(name)
            self._refused(name, why)
