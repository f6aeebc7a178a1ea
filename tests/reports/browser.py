"""A headless Chromium for tests of the page, by its DevTools protocol; it may reach no network."""

import asyncio
import base64
import contextlib
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--mute-audio")
HIDDEN = ("--hide-scrollbars", "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND")


class Tab:
    """One tab. `said` holds what the browser reported: console messages, exceptions, requests."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.said: list[dict[str, Any]] = []
        self._socket, self._number = socket, 0

    async def do(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        while True:
            message = json.loads((await self._socket.receive(timeout=240)).data)
            if message.get("id") == self._number:
                assert "error" not in message, message
                return message["result"]
            self.said.append(message)

    async def value(self, expression: str) -> Any:
        """The value of an expression, asked from outside; the page itself runs no script."""
        found = await self.do("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    async def show(self, path: Path, width: int, *, dark: bool = False, height: int = 900) -> None:
        """Open a file at a width, light or dark."""
        for domain in ("Page", "Runtime", "Network", "Log"):
            await self.do(f"{domain}.enable")
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        await self.do("Emulation.setEmulatedMedia", features=scheme)
        mobile = width < 600
        await self.do(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile
        )
        await self.do("Page.navigate", url=path.as_uri())
        ready = "document.readyState === 'complete' && location.protocol === 'file:'"
        while not await self.value(ready):
            await asyncio.sleep(0)

    async def picture(self, path: Path, top: int = 0, height: int = 0) -> None:
        """A screenshot of the page, or of `height` pixels of it from `top` on."""
        size = (await self.do("Page.getLayoutMetrics"))["cssContentSize"]
        area = {"x": 0, "y": top, "width": size["width"], "height": height or size["height"], "scale": 1}
        shot = await self.do("Page.captureScreenshot", captureBeyondViewport=True, clip=area)
        path.write_bytes(base64.b64decode(shot["data"]))

    async def pdf(self, **settings: Any) -> bytes:
        """The printed page."""
        return base64.b64decode((await self.do("Page.printToPDF", printBackground=True, **settings))["data"])

    async def click(self, selector: str) -> None:
        """Click on the middle of an element with the mouse."""
        await self.value(f"document.querySelector({selector!r}).scrollIntoView({{block: 'center'}})")
        middle = "[box.x + box.width / 2, box.y + box.height / 2]"
        box = f"(box => {middle})(document.querySelector({selector!r}).getBoundingClientRect())"
        x, y = await self.value(box)
        for kind in ("mousePressed", "mouseReleased"):
            await self.do("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


@contextlib.asynccontextmanager
async def browser(profile: Path) -> AsyncIterator[Tab]:
    """A browser with one empty tab; it ends with the block."""
    assert CHROMIUM is not None
    words = (CHROMIUM, *FLAGS, *HIDDEN, f"--user-data-dir={profile}", "--remote-debugging-port=0", "about:blank")
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*words, stdout=quiet, stderr=asyncio.subprocess.PIPE)
    assert process.stderr is not None
    try:
        async with asyncio.timeout(120):
            line = ""
            while "DevTools listening on " not in line:
                line = (await process.stderr.readline()).decode()
                assert line or process.returncode is None, "the browser ended"
        port = line.split("127.0.0.1:")[1].split("/")[0]
        async with aiohttp.ClientSession() as client:
            async with client.get(f"http://127.0.0.1:{port}/json/list") as listed:
                page = next(one for one in await listed.json() if one["type"] == "page")
            async with client.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                yield Tab(socket)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
