"""What its user sees of a page: the agent's words, errors, and whether it works."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

from playwright.async_api import Dialog, Page
from playwright.async_api import Error as BrowserError
from playwright.async_api import TimeoutError as NoneCameError

from wedgehog.harness.agents.pages.page_script import TEXTS
from wedgehog.harness.agents.pages.page_spec import PageAgent
from wedgehog.harness.record.error_words import matching, plain

MOVES = "because of a navigation"
"""What Playwright says where a page goes to another address while it is read."""
MOST_MOVES, MOVE_S = 50, 0.1
PICTURE_QUALITY, PICTURE_WITHIN_S = 50, 5.0
LINK_WITHIN_S = 5.0
"""What is on a page can be pressed within this time."""
ALERT = '[role="alert"], [aria-live="assertive"]'
"""Elements that tell something urgent."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Seen:
    """What stands on a page at one moment, as its user can see it."""

    lines: Sequence[str] = ()
    """The lines of the whole page that are not empty."""
    answers: Sequence[str] = ()
    """The texts of the elements of `answer`."""
    errors: Sequence[str] = ()
    """The texts of the elements of `error`; without that key, those of alerts."""
    busy: bool = False
    """Whether it shows that the agent works."""
    signs: frozenset[str] = frozenset()
    """The lines of what shows that."""

    def times(self, mark: str) -> int:
        """How often a word stands there."""
        return sum(line.count(mark) for line in self.lines)


@dataclass(frozen=True, slots=True)
class News:
    """What is new on a page since a message was typed there."""

    answer: str = ""
    error: str = ""


@dataclass(slots=True)
class PageTurn:
    """What its user has seen of one turn."""

    before: Seen
    news: News = field(default_factory=News)
    changed_s: float = 0.0
    """When the news changed; 0 if there are none."""
    was_busy: bool = False
    """Whether the page has shown that the agent works."""
    shows_message: bool = False
    """Whether the message stands on the page."""
    errors: dict[str, None] = field(default_factory=dict)
    """All that were seen, also those that have gone."""
    standing: Sequence[str] = ()
    """Those that stand there now; the same one may have been shown again."""
    was_away: bool = False
    """Whether its user was in another conversation meanwhile."""
    misses_since_s: float | None = None
    """Since when its user, who has come back, does not see the answer that the model has given."""
    loaded_again: bool = False
    """Whether its user has loaded the page again to see it."""


class PageView:
    """An open page."""

    def __init__(self, page: Page, keys: PageAgent) -> None:
        """`keys` say where to look."""
        self._page, self._keys = page, keys
        self._dialogs: list[str] = []
        page.on("dialog", self._dismiss)

    @property
    def path(self) -> str | None:
        """Where it is now, without the name of its service; None if it has loaded nothing."""
        at = self._page.url
        return (urlsplit(at)._replace(scheme="", netloc="").geturl() or "/") if at.startswith("http") else None

    async def load(self, address: str, within_s: float) -> None:
        """Open an address."""
        await self._page.goto(address, wait_until="domcontentloaded", timeout=within_s * 1000)

    async def has_loaded(self, within_s: float) -> None:
        """Wait until all is there. Errors: playwright's TimeoutError."""
        await self._page.wait_for_load_state("load", timeout=within_s * 1000)

    async def read(self) -> Seen:
        """What can be seen now."""
        return await self._at_rest(self._read)

    async def _at_rest(self, look: Callable[[], Awaitable[T]]) -> T:
        """Look again where the page goes to another address meanwhile, as one does that needs a login."""
        for _ in range(MOST_MOVES):
            try:
                return await look()
            except BrowserError as wrong:
                if MOVES not in str(wrong):
                    raise
            await asyncio.sleep(MOVE_S)
        return await look()

    async def _read(self) -> Seen:
        keys = self._keys
        selectors = (keys.answer, keys.error or ALERT, keys.busy, keys.stop)
        found = await self._page.evaluate(TEXTS, list(selectors)) or await self._found_by_playwright(selectors)
        text, answers, errors, busy, stop = found
        works = busy if keys.busy is not None else stop
        signs = frozenset(line for shown in (*busy, *stop) for line in _lines(shown))
        return Seen(_lines(text), answers, [*errors, *self._dialogs], bool(works), signs)

    async def _found_by_playwright(self, selectors: Iterable[str | None]) -> list[Any]:
        """The text of the page, then the texts of each selector, where the script cannot tell."""
        return await asyncio.gather(self._page.locator("body").inner_text(), *map(self._texts, selectors))

    async def takes_messages(self) -> bool:
        """Whether a message can be typed."""
        return await self._at_rest(self._has_field)

    async def _has_field(self) -> bool:
        field = self._page.locator(_visible(self._keys.input)).first
        return await field.count() > 0 and await field.is_editable()

    async def type(self, message: str) -> None:
        """Type a message and send it."""
        field = self._page.locator(_visible(self._keys.input)).first
        await field.fill(message)
        if self._keys.send is None:
            await field.press("Enter")
        else:
            await self._page.locator(_visible(self._keys.send)).first.click()

    async def typed(self) -> str:
        """What stands where a message is typed; empty if that can not be seen."""
        field = self._page.locator(_visible(self._keys.input)).first
        return str(await field.evaluate("it => it.value ?? it.innerText")) if await field.count() else ""

    async def press(self, selector: str, within_s: float) -> None:
        """Press a button. Errors: playwright's TimeoutError (there is none to press)."""
        await self._page.locator(_visible(selector)).first.click(timeout=within_s * 1000)

    async def follow(self, front: str, path: str) -> bool:
        """Press the link to an address of the service; whether the page has one that can be pressed."""
        named = ", ".join(f"a[href={json.dumps(address)}]" for address in (path, front + path))
        try:
            if link := await self._page.query_selector(_visible(named)):
                await link.click(timeout=LINK_WITHIN_S * 1000)
        except BrowserError:
            return False
        return link is not None

    async def entries(self, selector: str, mark: str, within_s: float) -> list[tuple[int, bool]]:
        """The places in a list, those whose text has `mark` first, and whether it has."""
        entries = self._page.locator(_visible(selector))
        with suppress(NoneCameError):
            await entries.first.wait_for(timeout=within_s * 1000)
        named = [mark in text for text in await entries.all_inner_texts()]
        return sorted(enumerate(named), key=lambda it: (not it[1], it[0]))

    async def press_entry(self, selector: str, place: int) -> None:
        """Press one of a list."""
        await self._page.locator(_visible(selector)).nth(place).click(timeout=LINK_WITHIN_S * 1000)

    async def shows(self, mark: str, *, outside: str) -> bool:
        """Whether a word stands on the page more often than in the elements of `outside`."""
        text = await self._page.locator("body").inner_text()
        return text.count(mark) > "".join(await self._texts(outside)).count(mark)

    async def picture(self) -> bytes:
        """What can be seen without scrolling, as JPEG."""
        return await self._page.screenshot(type="jpeg", quality=PICTURE_QUALITY, timeout=PICTURE_WITHIN_S * 1000)

    async def close(self) -> None:
        """Close it, as its user does."""
        await self._page.close()

    async def _texts(self, selector: str | None) -> list[str]:
        if selector is None:
            return []
        found = await self._page.locator(_visible(selector)).all_inner_texts()
        return [text or "" for text in found]  # (a drawing, SVG, has no text)

    async def _dismiss(self, dialog: Dialog) -> None:
        self._dialogs.append(dialog.message)
        await dialog.dismiss()


def news(
    keys: PageAgent, message: str, before: Seen, now: Seen, errors: Iterable[str], patterns: tuple[str, ...] = ()
) -> News:
    """What is new: `errors` are all that were seen since the message, also those that have gone.

    Without an alert, an error is a new line, and no part of an answer, that reads like one: by the stock patterns, or
    those of the spec.
    """
    typed = plain(message)
    others = [line for line in _added(before.lines, now.lines) if plain(line) not in typed and line not in now.signs]
    if keys.answer is None:
        answers = others
        others = []
    else:
        answers = [text for text in _added(before.answers, now.answers) if plain(text) not in typed]
        said = {line for text in now.answers for line in _lines(text)}
        others = [line for line in others if line not in said]
    told = _added(before.errors, list(errors))
    told = told if keys.error or told else [line for line in others if matching(line, patterns)]
    return News("\n".join(answers), "\n".join(told))


def _added(before: Iterable[str], now: Iterable[str]) -> list[str]:
    """Those that were not there before, in their order."""
    left = Counter(before)
    added = []
    for text in now:
        if left[text]:
            left[text] -= 1
        else:
            added.append(text)
    return added


def _lines(text: str) -> list[str]:
    return [line for line in map(str.strip, text.splitlines()) if line]


def _visible(selector: str) -> str:
    return f"{selector} >> visible=true"
