"""The browser of a campaign: each user of a page has a window of their own in it, without cookies of others."""

import asyncio
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from playwright.async_api import Browser as Chromium
from playwright.async_api import BrowserContext, Playwright, async_playwright
from playwright.async_api import Error as BrowserError

from wedgehog.harness.agents.base import AgentError
from wedgehog.harness.sandbox.cleanup import RUN_VARIABLE

VARIABLE = "WEDGEHOG_BROWSER"
"""With the path of a browser that is built on Chromium in this variable, that one is used."""
PROGRAMS = (
    *("chromium-headless-shell", "chromium", "chromium-browser"),
    *("google-chrome", "google-chrome-stable", "microsoft-edge"),
)
"""A headless shell is Chromium without its own windows: the same pages take less than half of the processor time."""
OF_PLAYWRIGHT = (
    *("AimEnabled", "AvoidCorsURLLoaderRestartOnRedirect", "AvoidUnnecessaryBeforeUnloadCheckSync"),
    *("DestroyProfileOnBrowserClose", "HttpsFirstBalancedModeAutoEnable", "HttpsUpgrades", "LensOverlay"),
    *("MediaRouter", "NetworkTimeServiceQuerying", "OptimizationHints", "PaintHolding", "PreconnectToSearch"),
    *("TcpPortRandomizationWin", "ThirdPartyStoragePartitioning", "msEdgeUpdateLaunchServicesPreferredVersion"),
    "msForceBrowserSignIn",
)
"""What Playwright switches off. Chromium takes only the last list of such features, and that is ours."""
OF_THE_ADDRESS_BAR = ("WebUIOmniboxAimPopup", "WebUIOmniboxPopup")
"""Two pages of the browser's own in each window, which take half of all its processor time. No user sees them."""
ARGUMENTS = (
    "--disable-background-networking",
    "--disable-component-update",
    f"--disable-features={','.join((*OF_PLAYWRIGHT, *OF_THE_ADDRESS_BAR))}",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
)
"""With these the browser makes no requests of its own."""
INHERITED = ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH")
"""What it inherits of our environment: no keys, and no proxies."""
MISSING = (
    "a page needs a browser: install Chromium (`playwright install chromium`, or the system's own), or name one in "
    f"{VARIABLE}"
)


class Browser:
    """Started with the first window, and again if it has ended meanwhile."""

    def __init__(self, mark: str) -> None:
        """`mark`: what its processes carry, so that they end with the campaign."""
        self._mark = f"{mark}/browser"
        self._starting = asyncio.Lock()
        self._driver: Playwright | None = None
        self._chromium: Chromium | None = None

    async def close(self) -> None:
        """End it."""
        if self._chromium is not None:
            with suppress(BrowserError):
                await self._chromium.close()
        if self._driver is not None:
            await self._driver.stop()

    async def window(self, ahead_s: float = 0.0) -> BrowserContext:
        """A user's window, which the caller closes; its clock is so far ahead. Errors: AgentError (no browser)."""
        async with self._starting:
            chromium = await self._started()
        window = await chromium.new_context()
        window.set_default_timeout(0)  # the scenario sets the time limits
        if ahead_s:
            await window.clock.install(time=time.time() + ahead_s)
        return window

    async def _started(self) -> Chromium:
        if self._chromium is not None and self._chromium.is_connected():
            return self._chromium
        if self._driver is None:
            self._driver = await async_playwright().start()
        program = find_browser(Path(self._driver.chromium.executable_path))
        if program is None:
            raise AgentError(MISSING)
        try:
            self._chromium = await self._driver.chromium.launch(
                executable_path=program, args=ARGUMENTS, env={**_own(INHERITED), RUN_VARIABLE: self._mark}
            )
        except BrowserError as wrong:
            raise AgentError(f"{program} could not be started: {str(wrong).splitlines()[0]}") from None
        return self._chromium


def _own(names: Iterable[str]) -> dict[str, str | float | bool]:
    return {name: os.environ[name] for name in names if name in os.environ}


def find_browser(downloaded: Path) -> str | None:
    """The program: the one that is named, else Playwright's own where it was downloaded, else the system's."""
    if named := os.environ.get(VARIABLE):
        return named
    if own := next((path for path in (*_shells_beside(downloaded), downloaded) if path.is_file()), None):
        return str(own)
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


def _shells_beside(downloaded: Path) -> Iterator[Path]:
    """The headless shell that Playwright downloads with its Chromium, into a folder beside that one's."""
    for folder in downloaded.parents:
        if folder.name.startswith("chromium-"):
            yield from folder.parent.glob(f"{folder.name.replace('chromium', 'chromium_headless_shell')}/*/*shell")
