"""The network whose links are proxies of one Toxiproxy server."""

import itertools
from typing import Literal, Self

from wedgehog.harness.network.base import Address
from wedgehog.harness.network.tcp_diag import TcpDiag
from wedgehog.harness.network.toxiproxy.api import ToxiproxyApi, ToxiproxyError
from wedgehog.harness.network.toxiproxy.link import ToxicLink
from wedgehog.harness.network.toxiproxy.request_gate import RequestGate


class ToxiproxyNetwork:
    """Opens links as proxies of the Toxiproxy server at `api`."""

    name: Literal["toxiproxy", "embedded"] = "toxiproxy"

    def __init__(self, api: Address) -> None:
        """Make no call yet."""
        self._api = ToxiproxyApi(api)
        self._diag: TcpDiag | None = None
        self._numbers = itertools.count(1)
        self._links: list[ToxicLink] = []

    async def open_link(self, name: str, upstream: Address, resets: bool, requests: bool = False) -> ToxicLink:
        """A new proxy: with `resets` each close on it is an RST; with `requests` it has a request gate in front."""
        proxy = await self._api.create(f"{name}-{next(self._numbers)}", upstream)
        gate = await RequestGate(proxy.address).listen() if requests else None
        link = await ToxicLink(name, upstream, resets, proxy, self._diag, gate).install()
        self._links.append(link)
        return link

    async def alive(self) -> bool:
        """Return whether the server responds."""
        try:
            await self._api.version()
        except ToxiproxyError:
            return False
        return True

    async def __aenter__(self) -> Self:
        """Open the kernel's byte counts, where there are any."""
        self._diag = TcpDiag.open()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Close every link."""
        for link in self._links:
            await link.close()
        self._links.clear()
        if self._diag:
            self._diag.close()
