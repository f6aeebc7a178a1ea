"""The page server behind the link `tool:web`: pages, redirects, delays, and pages that stall or never end."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Self

from aiohttp import web

from wedgehog.harness.network.ports import HOST
from wedgehog.harness.record.clock import Clock
from wedgehog.harness.scenario.scenario_keys import PageConfig
from wedgehog.harness.services.filler import padded


class PageServer:
    """Serves a scenario's pages on a free loopback port. An async context manager."""

    def __init__(
        self, pages: Mapping[str, PageConfig], time_scale: float, clock: Clock, asked: Callable[[str, int], None]
    ) -> None:
        """`asked(path, status)` is called for every request; delays are divided by `time_scale`."""
        self._pages, self._scale, self._clock, self._asked = pages, time_scale, clock, asked
        self.address = (HOST, 0)

    async def __aenter__(self) -> Self:
        self._runner = web.ServerRunner(web.Server(self._answer, handler_cancellation=True), shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, HOST, 0)
        await site.start()
        self.address = self._runner.addresses[0][:2]
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        page = self._pages.get(request.path)
        self._asked(request.path, 404 if page is None else 302 if page.redirect else page.status)
        if page is None:
            return web.Response(status=404, text="no such page")
        if page.stall:
            await asyncio.Event().wait()
        await self._clock.sleep(page.delay_s / self._scale)
        if page.redirect:
            return web.Response(status=302, headers={"Location": page.redirect})
        if page.drip_s is not None:
            return await self._drip(request, page, page.drip_s / self._scale)
        return web.Response(status=page.status, text=padded(page.text, page.bytes))

    async def _drip(self, request: web.BaseRequest, page: PageConfig, every_s: float) -> web.StreamResponse:
        """Send the text, and then a byte each time, until the agent closes the connection."""
        response = web.StreamResponse(status=page.status, headers={"Content-Type": "text/plain; charset=utf-8"})
        with contextlib.suppress(ConnectionResetError):
            await response.prepare(request)
            await response.write(padded(page.text, page.bytes).encode())
            while True:
                await self._clock.sleep(every_s)
                await response.write(b".")
        return response
