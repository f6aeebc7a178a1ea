"""An agent whose user sits in front of a page: a turn ends when the page is not busy, and stands still."""

import asyncio
from contextlib import suppress
from dataclasses import replace

import aiohttp
from playwright.async_api import Error as BrowserError

from wedgehog.harness.agents.base import Outcome
from wedgehog.harness.agents.context import AgentContext, Surroundings
from wedgehog.harness.agents.drafts import may_go_on
from wedgehog.harness.agents.http import ABORT_TIMEOUT_S, HttpSession, HttpTurn
from wedgehog.harness.agents.http_request import HttpReply
from wedgehog.harness.agents.pages.page_view import PageTurn, PageView, Seen, news
from wedgehog.harness.agents.pages.page_window import POLL_S, NoWayError, PageConversation, PageWindow, reached
from wedgehog.harness.agents.service_spec import Http, HttpCall
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.sandbox.owned import Tree

MOST_CHARS = 1_000_000
"""So much of a page that was opened again is kept in the history."""
SILENT_S = 10.0
"""A page that shows when its agent works, and shows nothing for this time, has not taken the message; real seconds."""
TRIES, TAKEN_WITHIN_S = 3, 3.0
"""A user types a message again that a page, just opened, has not taken within this time; real seconds."""
COMES_WITHIN_S = 5.0
"""A user who comes back loads a page again that does not show its answer within this time; real seconds."""


class PageSession(HttpSession):
    """A service that we start; a browser opens its page."""

    def __init__(self, spec: AgentSpec, context: AgentContext, surroundings: Surroundings, tree: Tree) -> None:
        assert spec.page is not None and context.browser is not None  # noqa: S101  open_agent chose by it
        super().__init__(spec, context, surroundings, tree, Http(start=spec.page.start, ready=spec.page.url, url="/"))
        self._keys = spec.page
        self._window = PageWindow(spec.page, context.browser, context.browser_clock_s, shared=context.one_user)
        self._conversation = PageConversation(surroundings.fill(spec.page.url))
        self._opened: str | None = None
        """What the page showed when it was opened again for this turn."""
        self._reading = PageTurn(Seen())
        self._stopped = False
        self._pictures, self._picture = 0, ""
        """How many were taken, and the file of the last one; empty if this turn has none."""

    async def open(self) -> None:
        """Open the page too."""
        await super().open()
        await self.load_again()

    async def close(self) -> None:
        """Close the window too."""
        await super().close()
        await self._window.close()

    @property
    def stops_by_hanging_up(self) -> bool:
        """Whether its user can only close the page."""
        return self._keys.stop is None

    def beside(self) -> None:
        """Its user waits until the agent is ready for the next message."""

    async def apart(
        self,
        name: str,
        context: AgentContext,
        surroundings: Surroundings,
        *,
        at_once: bool = True,
        struck: bool = False,
    ) -> HttpSession:
        """Another user in a window of their own, or another conversation of the same user."""
        twin = await super().apart(name, context, surroundings, at_once=at_once, struck=struck)
        assert isinstance(twin, PageSession)  # noqa: S101  a copy of this one
        if not context.one_user:
            assert context.browser is not None  # noqa: S101  that of this one
            twin._window = PageWindow(self._keys, context.browser, context.browser_clock_s, shared=False)
        twin._conversation, twin._reading = PageConversation(surroundings.fill(self._keys.url)), PageTurn(Seen())
        return twin

    async def load_again(self) -> None:
        """Open the page again, at the address where it was; unless another conversation is under way there."""
        if not self._window.is_free_for(self._conversation):
            return
        await self._window.close_page()
        try:
            await self._shown()
        except (ConnectionError, NoWayError):  # the next message tries again, and says so
            await self._window.close_page()

    async def give_up(self) -> None:
        """Its user loads the page again, while the service may work on."""
        if self._in_turn():
            await super().give_up()
            await self.load_again()

    # ---- a turn

    async def _ask(self, request: HttpCall | Http, text: str, patience: aiohttp.ClientTimeout) -> HttpReply:
        """Type the message, and read the page until the turn is over. Errors: ConnectionError (there is no page)."""
        self._opened, self._reading, self._stopped, self._picture = None, PageTurn(Seen()), False, ""
        async with self._window.in_turn(self._conversation):
            try:
                return await self._talk(text)
            except ConnectionError:
                await self._window.close_page()  # (one that could not be loaded, or has crashed, is opened again)
                raise
            except NoWayError as wrong:
                return await self._refused(f"{self._spec.path}: page: {wrong}")

    async def _talk(self, text: str) -> HttpReply:
        view = await self._shown()
        before = await self._idle(view)
        self._begin(text, before, view)
        await reached(view.type(text))
        clock, worked_s = self._context.clock, self._context.clock.now()
        typed_s, tries = worked_s, TRIES if self._window.is_fresh else 1
        self._window.is_fresh = False
        while not self._is_over(worked_s):
            if self._owned is not None and self._owned.exit_code is not None and not self._reading.changed_s:
                raise ConnectionError("the agent has ended")
            await clock.sleep(POLL_S)
            if await self._came_back(text):
                view, worked_s = await self._shown(), clock.now()
                self._window.is_fresh = False
            if await self._look(view, text) or (not self._stopped and self._works(text)):
                worked_s = clock.now()
            if tries > 1 and await self._was_not_taken(view, text, typed_s):
                await reached(view.type(text))
                worked_s, typed_s, tries = clock.now(), clock.now(), tries - 1
        changed_s = self._reading.changed_s
        whole_s = asyncio.get_running_loop().time() - (clock.now() - changed_s) if changed_s else None
        return HttpReply(200, self._reading.news.answer, whole_s)

    def _begin(self, text: str, before: Seen, view: PageView) -> None:
        """Remember what the page shows before the message."""
        self._reading, conversation = PageTurn(before), self._conversation
        if self._window.is_fresh and conversation.mark:
            self._opened = "\n".join(before.lines)[:MOST_CHARS]
        if not conversation.mark:
            conversation.mark, conversation.begins_at = _mark(text), view.path or ""

    async def _came_back(self, text: str) -> bool:
        """Whether its user was in another conversation, or loads the page again because they miss the answer here."""
        reading, clock = self._reading, self._context.clock
        if await self._window.lend(self._conversation):
            reading.was_away = True
            return True
        if not reading.was_away or reading.loaded_again or not self._context.work.unread(text, reading.news.answer):
            reading.misses_since_s = None
            return False
        reading.misses_since_s = reading.misses_since_s or clock.now()
        reading.loaded_again = self._context.could_work_s(reading.misses_since_s) >= COMES_WITHIN_S
        if reading.loaded_again:
            await self._window.close_page()
        return reading.loaded_again

    async def _was_not_taken(self, view: PageView, text: str, typed_s: float) -> bool:
        """Whether a page that was just opened did nothing: its script may not have run when the message was typed.

        The message still stands where it was typed, or nowhere.
        """
        if self._context.could_work_s(typed_s) < TAKEN_WITHIN_S:
            return False
        if self._reading.was_busy or self._context.work.has_asked(text):
            return False
        return not self._reading.shows_message or _mark(text) in await reached(view.typed())

    async def _look(self, view: PageView, text: str) -> bool:
        """Read the page; whether it is busy."""
        now, reading = await reached(view.read()), self._reading
        reading.errors |= dict.fromkeys(now.errors)
        reading.was_busy |= now.busy
        reading.shows_message |= any(_mark(text) in line for line in now.lines)
        reading.standing = now.errors
        found = news(self._keys, text, reading.before, now, reading.errors, self._spec.errors)
        if found != reading.news:
            reading.news, reading.changed_s = found, self._context.clock.now()
        return now.busy

    def _is_over(self, worked_s: float) -> bool:
        """Whether the agent is done, by what its user sees: something new, or that it no longer works."""
        reading, quiet_s = self._reading, self._keys.quiet_s
        if reading.misses_since_s is not None and not reading.loaded_again:
            return False
        if not (reading.changed_s or reading.was_busy or self._stopped):
            if not self._shows_work:
                return False
            quiet_s = max(SILENT_S, quiet_s)
        return self._context.could_work_s(max(reading.changed_s, worked_s)) >= quiet_s

    @property
    def _shows_work(self) -> bool:
        """Whether its page says when it works."""
        return bool(self._keys.busy or self._keys.stop)

    def _works(self, text: str) -> bool:
        """Whether it works, where nothing on the page shows that; one that was left may no longer show it."""
        shown = self._reading.news
        if not self._shows_work:
            return may_go_on(self._context, text, shown.error or shown.answer, self._reading.changed_s)
        return self._reading.was_away and self._context.work.since_s(text, shown.answer) is not None

    async def _outcome(self, turn: HttpTurn) -> Outcome:
        """Its output is what the page shows; what the service prints is its log."""
        outcome = await super()._outcome(turn)
        return replace(outcome, stdout=outcome.answer, stderr="")

    async def _told(self, turn: HttpTurn) -> Outcome:
        """As its user sees it, also where the turn was ended."""
        told, shown = await super()._told(turn), self._reading.news
        await self._take_picture()
        error = shown.error or ("" if shown.answer else "\n".join(self._reading.standing))
        return replace(
            told,
            answer=shown.answer,
            error=told.error or error,
            status=None,
            appends=self._keys.answer is not None,
            opened=self._opened,
            stood_before="\n".join(self._reading.before.answers) if self._window.shared else None,
            was_away=self._reading.was_away,
            loaded_again=self._reading.loaded_again,
            picture=self._picture,
        )

    # ---- the page

    async def _shown(self) -> PageView:
        """The page with this conversation. Errors: ConnectionError, NoWayError, AgentError (there is no browser)."""
        return await self._window.show(self._conversation, self._context.front_url or self._base)

    @property
    def _view(self) -> PageView | None:
        """The page; None if it is closed, or its user is in another conversation."""
        return self._window.view if self._window.shown is self._conversation else None

    async def _refused(self, why: str) -> HttpReply:
        """End the turn without a verdict: its spec is wrong."""
        if self._turn is not None:
            self._turn.refused.set_result(why)
        ended: asyncio.Future[HttpReply] = asyncio.get_running_loop().create_future()
        return await ended

    async def _idle(self, view: PageView) -> Seen:
        """What the page shows when it takes a message and, if it was just opened, stands still."""
        clock = self._context.clock
        was, since_s = await self._ready_view(view), clock.now()
        while was.busy or (self._window.is_fresh and self._context.could_work_s(since_s) < self._keys.quiet_s):
            await clock.sleep(POLL_S)
            now = await self._ready_view(view)
            if now != was:
                was, since_s = now, clock.now()
        return was

    async def _ready_view(self, view: PageView) -> Seen:
        """What it shows; a page that takes no message counts as busy."""
        now = await reached(view.read())
        return replace(now, busy=now.busy or not await reached(view.takes_messages()))

    async def _close_view(self) -> None:
        if self._window.shown is self._conversation:
            await self._window.close_page()

    async def _take_picture(self) -> None:
        """Keep what its user sees now, unless the page has gone."""
        view = self._view
        if view is None or self._picture:
            return
        with suppress(BrowserError):
            taken = await view.picture()
            self._pictures += 1
            name = f"page-{self.name}-{self._pictures}.jpg"
            (self._context.log.parent / name).write_bytes(taken)
            self._picture = name

    # ---- its end

    async def _restart(self) -> None:
        """Its user loads a page whose service has died."""
        await self._close_view()
        await super()._restart()

    async def _abort(self) -> None:
        """Press the button that stops a turn; without one, close the page."""
        turn, view = self._turn, self._view
        if self._keys.stop is None or turn is None or view is None:
            await self._stop(0)
            return
        self._stopped = True
        pressing = asyncio.create_task(self._press_stop(turn, view))
        self._aborts.add(pressing)
        pressing.add_done_callback(self._aborts.discard)

    async def _press_stop(self, turn: HttpTurn, view: PageView) -> None:
        """Without a button that can be pressed, the agent was not stopped."""
        try:
            await view.press(self._keys.stop or "", ABORT_TIMEOUT_S)
        except BrowserError:
            if not turn.asking.done() and not turn.refused.done():
                turn.refused.set_result(f"{self._spec.path}: page: stop: the page has no such button while it works")

    async def _stop(self, grace_s: float) -> None:
        """Close the page; the service runs on."""
        await self._take_picture()
        await super()._stop(grace_s)
        await self._close_view()


def _mark(message: str) -> str:
    """Its first word, which no other message has."""
    return message.partition(" ")[0]
