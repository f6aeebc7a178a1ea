"""The browser in which users open pages. The first page starts it: that takes long, and few campaigns need it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wedgehog.harness.agents.pages.browser import Browser


@asynccontextmanager
async def browser_of_users(mark: str) -> AsyncIterator["Callable[[], Browser]"]:
    """Yield a function that returns the one browser; on exit, end the browser."""
    made: list[Browser] = []

    def browser() -> "Browser":
        from wedgehog.harness.agents.pages.browser import Browser  # its package is an extra

        if not made:
            made.append(Browser(mark))
        return made[0]

    try:
        yield browser
    finally:
        for one in made:
            await one.close()
