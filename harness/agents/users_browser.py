"""The browser of a campaign's users: the first page starts it, because few campaigns have one, and it takes long."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wedgehog.harness.agents.browser import Browser


@asynccontextmanager
async def browser_of_users(mark: str) -> AsyncIterator["Callable[[], Browser]"]:
    """Gives the browser of all users of pages, which its first window starts; on exit, end it."""
    made: list[Browser] = []

    def browser() -> "Browser":
        from wedgehog.harness.agents.browser import Browser  # its package is an extra

        if not made:
            made.append(Browser(mark))
        return made[0]

    try:
        yield browser
    finally:
        for one in made:
            await one.close()
