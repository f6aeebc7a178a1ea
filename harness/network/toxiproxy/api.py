"""The client of a Toxiproxy server, on top of the library `toxiproxy-python`.

The library has no deadlines, cannot update a toxic, has no useful errors, uses HTTP_PROXY even on loopback, and sends
an unknown attribute, which the server ignores. Here each call has a deadline, each failure is a `ToxiproxyError` with
the server's message, and the attributes of a toxic are checked before it is sent.
"""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import requests
import toxiproxy
import toxiproxy.api

from wedgehog.harness.faults.base import Toxic
from wedgehog.harness.network.base import Address, NetworkError
from wedgehog.harness.network.ports import HOST, free_port

T = TypeVar("T")

# The toxics that we use, and their attributes.
KINDS = {
    "limit_data": {"bytes"},
    "slow_close": {"delay"},
    "reset_peer": {"timeout"},
    "slicer": {"average_size", "size_variation", "delay"},
    "latency": {"latency", "jitter"},
    "bandwidth": {"rate"},
    "timeout": {"timeout"},
}
COUNTERS = "toxiproxy_proxy_received_bytes_total{", "toxiproxy_proxy_sent_bytes_total{"
PORTS_TRIED = 20
PORT_TAKEN = "address already in use"
# The library stores the server's address in a class, so calls to different servers must not overlap.
_one_at_a_time = threading.Lock()


class ToxiproxyError(NetworkError):
    """Base class of errors of the Toxiproxy server."""


class ToxiproxyGoneError(ToxiproxyError):
    """No response: the server was stopped, died or hangs."""


class ToxiproxyRefusedError(ToxiproxyError):
    """The server returned an error."""


class BadToxicError(ToxiproxyError):
    """A toxic with wrong attributes; the server would silently use zero for them."""


class ProxyCounts(NamedTuple):
    """Bytes that a proxy received and sent in one direction, on connections that have ended."""

    received: int
    sent: int


def _session(timeout_s: float) -> requests.Session:
    """A session that ignores proxy variables, has a timeout and raises the server's errors."""
    session = requests.Session()
    session.trust_env = False
    # If the server closed a kept-alive connection between two calls, it would look like a dead server.
    session.headers["Connection"] = "close"
    session.request = partial(session.request, timeout=timeout_s)  # type: ignore[method-assign]
    session.hooks["response"].append(_raise_refusal)
    return session


def _raise_refusal(response: requests.Response, *_: object, **__: object) -> None:
    if response.status_code >= 400:
        said = response.text.strip() or response.reason
        raise ToxiproxyRefusedError(f"Toxiproxy answered {response.status_code} to {response.request.path_url}: {said}")


class ToxiproxyApi:
    """Awaitable calls to one server, each with a deadline."""

    def __init__(self, address: Address, timeout_s: float = 5.0) -> None:
        self.address = address
        self._session = _session(timeout_s)
        self._server = toxiproxy.Toxiproxy()

    async def version(self) -> str:
        """Return the server's version (`git` if it was built by `go install`)."""
        response = await self.call(lambda: toxiproxy.api.APIConsumer.get("/version"))
        return str(response.json().get("version", ""))

    async def create(self, name: str, upstream: Address) -> "ProxyApi":
        """Create a proxy on a free port of ours: the system could reassign its own while the proxy is disabled."""
        target = f"{upstream[0]}:{upstream[1]}"
        for _ in range(PORTS_TRIED):
            make = partial(self._server.create, target, name, f"{HOST}:{free_port()}")
            try:
                return ProxyApi(self, await self.call(make))
            except ToxiproxyRefusedError as refused:
                if PORT_TAKEN not in str(refused):
                    raise
        raise ToxiproxyRefusedError(f"all {PORTS_TRIED} ports that were tried for the Toxiproxy proxy are in use")

    async def call(self, do: Callable[[], T]) -> T:
        """Make a call of the library in a thread. Raises ToxiproxyError."""
        return await asyncio.to_thread(self._call_now, do)

    def _call_now(self, do: Callable[[], T]) -> T:
        with _one_at_a_time:
            self._server.update_api_consumer(*self.address)
            # The library uses the `requests` of its module: this is the only way to give it a session.
            toxiproxy.api.requests = self._session
            try:
                return do()
            except (requests.ConnectionError, requests.Timeout) as error:
                how = "is too slow to answer" if isinstance(error, requests.ReadTimeout) else "does not answer"
                raise ToxiproxyGoneError(f"the Toxiproxy server at port {self.address[1]} {how}") from error
            except (requests.RequestException, KeyError, ValueError) as error:
                raise ToxiproxyRefusedError(f"the Toxiproxy server's response cannot be read: {error!r}") from error


class ProxyApi:
    """One proxy of the server, and its toxics."""

    def __init__(self, api: ToxiproxyApi, proxy: Any) -> None:
        self._api, self._proxy = api, proxy
        self.name = str(proxy.name)
        host, port = str(proxy.listen).rsplit(":", 1)
        self.address: Address = (host, int(port))

    async def add(self, toxic: Toxic, name: str | None = None) -> None:
        """Add a toxic after the existing ones."""
        fields = {**checked(toxic)._asdict(), "type": toxic.kind, "name": name or name_of(toxic)}
        await self._api.call(lambda: self._proxy.add_toxic(**fields))

    async def update(self, toxic: Toxic) -> None:
        """Change the attributes of an existing toxic; returns when they apply to every open connection."""
        path = f"/proxies/{self._proxy.name}/toxics/{name_of(checked(toxic))}"
        body = {"attributes": dict(toxic.attributes), "toxicity": toxic.toxicity}
        await self._api.call(lambda: toxiproxy.api.APIConsumer.post(path, json=body))

    async def remove(self, name: str) -> None:
        """Remove a toxic, but never one that stalls a connection: the server would panic."""
        await self._api.call(lambda: self._proxy.destroy_toxic(name))

    async def counted(self, stream: str) -> ProxyCounts:
        """Return the bytes to the agent (`downstream`) or to the upstream, on connections that have ended."""
        response = await self._api.call(lambda: toxiproxy.api.APIConsumer.get("/metrics"))
        labels = f'direction="{stream}"', f'proxy="{self.name}"'
        lines = [line for line in response.text.splitlines() if all(it in line for it in labels)]
        values = [(line, int(float(line.rsplit(" ", 1)[1]))) for line in lines]
        return ProxyCounts(*(sum(value for line, value in values if line.startswith(name)) for name in COUNTERS))

    async def enable(self, enabled: bool) -> None:
        """Listen again, or close the port and every connection."""
        await self._api.call(self._proxy.enable if enabled else self._proxy.disable)

    async def destroy(self) -> None:
        """Delete the proxy and close its connections."""
        await self._api.call(self._proxy.destroy)


def name_of(toxic: Toxic) -> str:
    """Return the default name of a toxic."""
    return f"{toxic.kind}_{toxic.stream}"


def checked(toxic: Toxic) -> Toxic:
    """Return the toxic; raises BadToxicError if its attributes are not exactly those of its kind."""
    expected = KINDS.get(toxic.kind)
    if expected is None:
        raise BadToxicError(f"unknown toxic {toxic.kind!r}; expected one of {', '.join(KINDS)}")
    if set(toxic.attributes) != expected:
        given, wanted = ", ".join(toxic.attributes) or "nothing", ", ".join(sorted(expected))
        raise BadToxicError(f"toxic {toxic.kind} takes {wanted}, not {given}")
    return toxic
