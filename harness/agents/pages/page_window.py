"""The window of a user: one conversation stands in it at a time, and its user goes from one to another."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

from playwright.async_api import BrowserContext
from playwright.async_api import Error as BrowserError
from playwright.async_api import TimeoutError as NeverLoadedError

from wedgehog.harness.agents.pages.browser import Browser
from wedgehog.harness.agents.pages.page_spec import PageAgent
from wedgehog.harness.agents.pages.page_view import PageView, Seen

POLL_S = 0.1
LOADED_WITHIN_S = 30.0
CLOSED_WITHIN_S = 5.0
CHANGES_WITHIN_S = 5.0
"""A page that its user has left for another conversation shows that one within this time; real seconds."""
MOST_ENTRIES = 5
"""Its user looks for a conversation in so many entries of the list."""
T = TypeVar("T")


class NoWayError(Exception):
    """The page has no such button, or no way back to a conversation: its spec is wrong."""


@dataclass(slots=True, eq=False)
class PageConversation:
    """One conversation in a window."""

    at: str
    """The path at which its user was last."""
    begins_at: str = ""
    """The path at which it was before its first message; the same one for each conversation."""
    mark: str = ""
    """The first word of its first message; empty if nothing was said."""

    @property
    def has_address(self) -> bool:
        """Whether it has an address of its own."""
        return bool(self.mark) and self.at != self.begins_at


class PageWindow:
    """Opened with the first message."""

    def __init__(self, keys: PageAgent, browser: Callable[[], Browser], ahead_s: float, *, shared: bool) -> None:
        """Its clock is so far ahead. `shared`: its user has several conversations there."""
        self._keys, self._browser, self._ahead_s = keys, browser, ahead_s
        self._context: BrowserContext | None = None
        self._lock, self._waiting = asyncio.Lock(), 0
        self._in_turn: PageConversation | None = None
        self.shared = shared
        self.view: PageView | None = None
        self.shown: PageConversation | None = None
        self.is_fresh = False
        """Whether the page was opened, or went to another conversation, and nothing was typed there since."""

    # ---- whose turn it is

    @asynccontextmanager
    async def in_turn(self, conversation: PageConversation) -> AsyncIterator[None]:
        """Its user stays with this conversation, until another turn begins."""
        self._waiting += 1
        try:
            await self._lock.acquire()
        finally:
            self._waiting -= 1
        self._in_turn = conversation
        try:
            yield
        finally:
            if self._in_turn is conversation:  # (a turn that ends while its user is away does not have the window)
                self._give_back()

    async def lend(self, conversation: PageConversation) -> bool:
        """Let a turn that waits to begin have the window until it is over. False if none does."""
        if not self._waiting:
            return False
        self._give_back()
        await self._lock.acquire()  # first come, first served
        self._in_turn = conversation
        return True

    def _give_back(self) -> None:
        self._in_turn = None
        self._lock.release()

    def is_free_for(self, conversation: PageConversation) -> bool:
        """Whether no other conversation has a turn."""
        return self._in_turn in (None, conversation)

    # ---- what it shows

    async def show(self, conversation: PageConversation, front: str) -> PageView:
        """The page with this conversation; `front` is the address of the service.

        Errors: ConnectionError, NoWayError, AgentError (there is no browser).
        """
        if self.view is None:
            view = await self._open(conversation, front)
        else:
            view = self.view
            if self.shown is not conversation:
                await self._go(view, conversation, front)
        return view

    async def close_page(self) -> None:
        """Its user closes the page, and remembers where they were."""
        view, self.view = self.view, None
        if view is not None:
            self._leave(view)
            with suppress(BrowserError, TimeoutError):
                await asyncio.wait_for(view.close(), CLOSED_WITHIN_S)

    async def close(self) -> None:
        """Close it."""
        context, self._context = self._context, None
        if context is not None:
            with suppress(BrowserError):
                await context.close()

    async def _open(self, conversation: PageConversation, front: str) -> PageView:
        if self._context is None:
            self._context = await self._browser().window(self._ahead_s)
        view = PageView(await self._context.new_page(), self._keys)
        self.view, self.shown, self.is_fresh = view, conversation, True
        await self._load(view, front + conversation.at)
        if self.shared and conversation.mark and not conversation.has_address:
            await self._find(view, conversation)
        return view

    async def _load(self, view: PageView, address: str) -> None:
        await reached(view.load(address, LOADED_WITHIN_S))
        with suppress(NeverLoadedError):  # (what it still loads may be out of reach)
            await view.has_loaded(LOADED_WITHIN_S)

    def _leave(self, view: PageView) -> None:
        if self.shown is not None and view.path is not None:
            self.shown.at = view.path

    async def _go(self, view: PageView, conversation: PageConversation, front: str) -> None:
        """Leave a conversation for another one, or for a new one."""
        self._leave(view)
        before, self.shown, self.is_fresh = self.shown, conversation, True
        left = await reached(view.read())
        if not conversation.mark:
            await self._begin(view, before.mark if before is not None else "", left)
            return
        if not conversation.has_address:
            await self._find(view, conversation)
        elif not await view.follow(front, conversation.at):
            await self._load(view, front + conversation.at)
        for _ in range(round(CHANGES_WITHIN_S / POLL_S)):
            if (await reached(view.read())).lines != left.lines:
                return
            await asyncio.sleep(POLL_S)

    async def _begin(self, view: PageView, mark: str, left: Seen) -> None:
        """Begin a new conversation; again where the page still shows the one before it, as it may while it works."""
        await self._press_all(view, LOADED_WITHIN_S)
        for _ in range(round(CHANGES_WITHIN_S / POLL_S)):
            now = await reached(view.read())
            if now.times(mark) < left.times(mark) or not (mark or now.lines == left.lines):
                return
            await asyncio.sleep(POLL_S)
        if left.busy:
            now = await reached(view.read())
            while now.busy:
                await asyncio.sleep(POLL_S)
                now = await reached(view.read())
            with suppress(NoWayError):
                await self._press_all(view, CHANGES_WITHIN_S)

    async def _press_all(self, view: PageView, within_s: float) -> None:
        for selector in self._keys.new_chat:
            await self._press(view, selector, within_s)

    async def _press(self, view: PageView, selector: str, within_s: float) -> None:
        try:
            await view.press(selector, within_s)
        except BrowserError:
            raise NoWayError(f"new_chat: the page has no {selector} that can be pressed") from None

    async def _find(self, view: PageView, conversation: PageConversation) -> None:
        """Look for it in the list of conversations: by its first message, else one after the other."""
        selector = self._keys.chats
        if selector is None:
            raise NoWayError(
                "the address did not change with the first message, so there is no way back to the conversation: name "
                "the entries of the list of conversations (chats)"
            )
        entries = await reached(view.entries(selector, conversation.mark, CHANGES_WITHIN_S))
        for place, is_named in entries[:MOST_ENTRIES]:
            await reached(view.press_entry(selector, place))
            if is_named or await self._shows(view, selector, conversation.mark):
                return

    async def _shows(self, view: PageView, selector: str, mark: str) -> bool:
        for _ in range(round(CHANGES_WITHIN_S / POLL_S)):
            if await reached(view.shows(mark, outside=selector)):
                return True
            await asyncio.sleep(POLL_S)
        return False


async def reached(doing: Awaitable[T]) -> T:
    """Its result. Errors: ConnectionError, as its user reads it."""
    try:
        return await doing
    except BrowserError as wrong:
        raise ConnectionError(str(wrong).splitlines()[0]) from None
