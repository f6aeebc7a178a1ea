"""A headless Chromium for tests of the page; it may reach no network."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, async_playwright

from wedgehog.harness.agents.pages.browser import ARGUMENTS, find_browser

FLAGS = (*ARGUMENTS, "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND")
PATIENCE_MS = 240_000


class Tab:
    """One tab. `asked` holds what was requested, `loud` the console's messages, the log's entries and exceptions."""

    def __init__(self, browser: Browser) -> None:
        self.asked: list[str] = []
        self.loud: list[str] = []
        self._browser = browser
        self._page: Page | None = None

    @property
    def page(self) -> Page:
        """What is open now."""
        assert self._page is not None
        return self._page

    async def value(self, expression: str) -> Any:
        """The value of an expression, asked from outside; the page itself runs no script."""
        return await self.page.evaluate(expression)

    async def show(self, path: Path, width: int, *, dark: bool = False, height: int = 900) -> None:
        """Open a file at a width, light or dark."""
        await self.close()
        window = await self._browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            is_mobile=width < 600,
        )
        window.set_default_timeout(PATIENCE_MS)
        self._page = await window.new_page()
        self._page.on("request", lambda request: self.asked.append(request.url))
        self._page.on("console", lambda message: self.loud.append(message.text))
        self._page.on("pageerror", lambda wrong: self.loud.append(str(wrong)))
        await self._page.goto(path.as_uri())

    async def close(self) -> None:
        """Close what is open."""
        page, self._page = self._page, None
        if page is not None:
            await page.context.close()

    async def print_out(self) -> None:
        """Show it as it is printed."""
        await self.page.emulate_media(media="print")

    async def pdf(self) -> bytes:
        """The printed page."""
        return await self.page.pdf(print_background=True)

    async def click(self, selector: str) -> None:
        """Click on the middle of an element with the mouse."""
        await self.page.locator(selector).first.click()


@asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    """It ends with the block."""
    async with async_playwright() as driver:
        found = find_browser(Path(driver.chromium.executable_path))
        started = await driver.chromium.launch(executable_path=found, args=FLAGS, timeout=PATIENCE_MS)
        try:
            yield started
        finally:
            await started.close()
