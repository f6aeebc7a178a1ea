"""The one place that talks to a Toxiproxy server, through the client library `toxiproxy-python`.

The library has no deadline, no update of a toxic and no errors of its own worth the name, obeys HTTP_PROXY even on
loopback, and takes a misspelt attribute for zero. Here every call has a deadline, every failure is a `ToxiproxyError`
with what the server said, and a toxic is checked against its kind before it leaves.
"""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import requests
import toxiproxy
import toxiproxy.api
from requests.adapters import HTTPAdapter

from wedgehog.harness.faults.base import Toxic
from wedgehog.harness.network.base import Address, NetworkError
from wedgehog.harness.network.ports import HOST, free_port

T = TypeVar("T")

# The toxics we use, and the attributes each of them knows.
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
# The library keeps the server's address in a class, so calls to different servers must not overlap.
_one_at_a_time = threading.Lock()


class ToxiproxyError(NetworkError):
    """Root of what can go wrong with the Toxiproxy server."""


class ToxiproxyGoneError(ToxiproxyError):
    """No answer: the server was stopped, or died, or hangs."""


class ToxiproxyRefusedError(ToxiproxyError):
    """The server answered with an error."""


class BadToxicError(ToxiproxyError):
    """A toxic that its kind doesn't know; the server would silently make it zero."""


class ProxyCounts(NamedTuple):
    """Bytes that went into and out of a proxy in one direction, on connections that have ended."""

    received: int
    sent: int


def _value(line: str) -> int:
    return int(float(line.rsplit(" ", 1)[1]))


class _Deadline(HTTPAdapter):
    """Gives every request a time limit, which the library offers no way to pass."""

    def __init__(self, timeout_s: float) -> None:
        super().__init__()
        self.timeout_s = timeout_s

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        """Send with our time limit instead of none."""
        kwargs["timeout"] = self.timeout_s
        return super().send(request, *args, **kwargs)


def _session(timeout_s: float) -> requests.Session:
    """A session that ignores proxy variables, gives up in time, and raises what the server says."""
    session = requests.Session()
    session.trust_env = False
    # A kept-alive API connection that the server closes between two calls would look like a dead server.
    session.headers["Connection"] = "close"
    session.mount("http://", _Deadline(timeout_s))
    session.hooks["response"].append(_raise_refusal)
    return session


def _raise_refusal(response: requests.Response, *_: object, **__: object) -> None:
    if response.status_code >= 400:
        said = response.text.strip() or response.reason
        raise ToxiproxyRefusedError(f"Toxiproxy answered {response.status_code} to {response.request.path_url}: {said}")


class ToxiproxyApi:
    """Calls to one server, each awaitable, each with a deadline."""

    def __init__(self, address: Address, timeout_s: float = 5.0) -> None:
        """Nothing is asked yet."""
        self.address = address
        self._session = _session(timeout_s)
        self._server = toxiproxy.Toxiproxy()

    async def version(self) -> str:
        """What the server calls its version (`git` if it was built by `go install`)."""
        response = await self._call(lambda: toxiproxy.api.APIConsumer.get("/version"))
        return str(response.json().get("version", ""))

    async def counted(self, proxy: str, stream: str) -> ProxyCounts:
        """What the server counted towards the agent (`downstream`) or the upstream, on connections that have ended."""
        response = await self._call(lambda: toxiproxy.api.APIConsumer.get("/metrics"))
        labels = f'direction="{stream}"', f'proxy="{proxy}"'
        lines = [line for line in response.text.splitlines() if all(it in line for it in labels)]
        return ProxyCounts(*(sum(_value(line) for line in lines if line.startswith(name)) for name in COUNTERS))

    async def create(self, name: str, upstream: Address) -> "ProxyApi":
        """A new proxy on a free loopback port.

        Not one that the system chose: while a proxy is off it could give it to somebody else, or to the very
        connection that knocks there, and the proxy could not come back.
        """
        target = f"{upstream[0]}:{upstream[1]}"
        for _ in range(PORTS_TRIED):
            make = partial(self._server.create, target, name, f"{HOST}:{free_port()}")
            try:
                return ProxyApi(self, await self._call(make))
            except ToxiproxyRefusedError as refused:
                if PORT_TAKEN not in str(refused):
                    raise
        raise ToxiproxyRefusedError(f"the Toxiproxy server found {PORTS_TRIED} ports taken")

    async def _call(self, do: Callable[[], T]) -> T:
        return await asyncio.to_thread(self._call_now, do)

    def _call_now(self, do: Callable[[], T]) -> T:
        with _one_at_a_time:
            self._server.update_api_consumer(*self.address)
            # The library asks its module's `requests`: the only seam through which a session can reach it.
            toxiproxy.api.requests = self._session
            try:
                return do()
            except (requests.ConnectionError, requests.Timeout) as error:
                raise ToxiproxyGoneError(f"the Toxiproxy server at port {self.address[1]} does not answer") from error
            except (requests.RequestException, KeyError, ValueError) as error:
                raise ToxiproxyRefusedError(f"the Toxiproxy server's answer makes no sense: {error!r}") from error


class ProxyApi:
    """One proxy of the server, and the toxics on it."""

    def __init__(self, api: ToxiproxyApi, proxy: Any) -> None:
        """Wrap what the library made."""
        self._api, self._proxy = api, proxy
        self.name = str(proxy.name)
        host, port = str(proxy.listen).rsplit(":", 1)
        self.address: Address = (host, int(port))

    async def add(self, toxic: Toxic, name: str | None = None) -> None:
        """Add a toxic behind those that are there."""
        checked(toxic)
        fields = {"type": toxic.kind, "stream": toxic.stream, "toxicity": toxic.toxicity}
        named = {**fields, "attributes": dict(toxic.attributes), "name": name or name_of(toxic)}
        await self._api._call(lambda: self._proxy.add_toxic(**named))

    async def update(self, toxic: Toxic, name: str | None = None) -> None:
        """Change the attributes of a toxic that is there; returns when every open connection obeys it."""
        checked(toxic)
        path = f"/proxies/{self._proxy.name}/toxics/{name or name_of(toxic)}"
        body = {"attributes": dict(toxic.attributes), "toxicity": toxic.toxicity}
        await self._api._call(lambda: toxiproxy.api.APIConsumer.post(path, json=body))

    async def remove(self, name: str) -> None:
        """Remove a toxic. Never one that a connection may be stalled by: the server would panic."""
        await self._api._call(lambda: self._proxy.destroy_toxic(name))

    async def counted(self, stream: str) -> ProxyCounts:
        """Bytes that went that way on connections that have ended."""
        return await self._api.counted(self.name, stream)

    async def enable(self, enabled: bool) -> None:
        """Listen again, or close the port and every connection."""
        await self._api._call(self._proxy.enable if enabled else self._proxy.disable)

    async def destroy(self) -> None:
        """End the proxy and its connections."""
        await self._api._call(self._proxy.destroy)


def name_of(toxic: Toxic) -> str:
    """The name that a toxic has unless it is given one."""
    return f"{toxic.kind}_{toxic.stream}"


def checked(toxic: Toxic) -> Toxic:
    """The toxic itself, or BadToxicError if its kind doesn't know exactly these attributes."""
    known = KINDS.get(toxic.kind)
    if known is None:
        raise BadToxicError(f"Toxiproxy has no toxic {toxic.kind!r} that we use; those are {', '.join(KINDS)}")
    if set(toxic.attributes) != known:
        given, wanted = ", ".join(toxic.attributes) or "nothing", ", ".join(sorted(known))
        raise BadToxicError(f"toxic {toxic.kind} takes {wanted}, not {given}")
    return toxic
