"""Whether a test can have a browser."""

import asyncio
from pathlib import Path

from playwright.async_api import async_playwright

from wedgehog.harness.agents.pages.browser import find_browser


def has_browser() -> bool:
    """Whether one is named or installed, or Playwright has downloaded one."""
    return find_browser(Path()) is not None or asyncio.run(_downloaded()) is not None


async def _downloaded() -> str | None:
    async with async_playwright() as driver:
        return find_browser(Path(driver.chromium.executable_path))
