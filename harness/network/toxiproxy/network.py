"""The network of links through one Toxiproxy server."""

import itertools
from typing import Literal, Self

from wedgehog.harness.network.base import Address
from wedgehog.harness.network.tcp_diag import TcpDiag
from wedgehog.harness.network.toxiproxy.api import ToxiproxyApi, ToxiproxyError
from wedgehog.harness.network.toxiproxy.link import ToxicLink
from wedgehog.harness.network.toxiproxy.request_gate import RequestGate


class ToxiproxyNetwork:
    """Links made of proxies of one Toxiproxy server that is running at `api`."""

    name: Literal["toxiproxy", "embedded"] = "toxiproxy"

    def __init__(self, api: Address) -> None:
        """Nothing is asked yet."""
        self._api = ToxiproxyApi(api)
        self._kernel: TcpDiag | None = None
        self._numbers = itertools.count(1)
        self._links: list[ToxicLink] = []

    async def open_link(self, name: str, upstream: Address, resets: bool, requests: bool = False) -> ToxicLink:
        """A new proxy; with `resets` every close on it is an RST, by Toxiproxy's nature.

        With `requests` a turnstile stands before it.
        """
        proxy = await self._api.create(f"{name}-{next(self._numbers)}", upstream)
        turnstile = await RequestGate(proxy.address).listen() if requests else None
        link = await ToxicLink(name, upstream, resets, proxy, self._kernel, turnstile).born()
        self._links.append(link)
        return link

    async def alive(self) -> bool:
        """Whether the server answers."""
        try:
            await self._api.version()
        except ToxiproxyError:
            return False
        return True

    async def __aenter__(self) -> Self:
        """Find out whether the kernel counts."""
        self._kernel = TcpDiag.open()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """End every proxy."""
        for link in self._links:
            await link.close()
        self._links.clear()
        if self._kernel:
            self._kernel.close()
