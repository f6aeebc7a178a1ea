"""A page without a model: what its user sees is the answer, and what they do there."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

import psutil
import pytest
import pytest_asyncio
import yaml

pytest.importorskip("playwright")

from tests.browsers import has_browser
from wedgehog.harness.agents.base import AgentError, Session
from wedgehog.harness.agents.context import AgentContext, Work
from wedgehog.harness.agents.opening import open_agent
from wedgehog.harness.agents.pages.page_script import TEXTS
from wedgehog.harness.agents.pages.page_spec import PageAgent
from wedgehog.harness.agents.pages.page_view import PageView
from wedgehog.harness.agents.pages.users_browser import browser_of_users
from wedgehog.harness.agents.spec import load_spec
from wedgehog.harness.record.clock import WallClock

if TYPE_CHECKING:
    from wedgehog.harness.agents.pages.browser import Browser

pytestmark = pytest.mark.asyncio(loop_scope="module")
SMALL = '''\
"""A page whose answers need no model."""
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = """<!doctype html><h1>Hello</h1><main></main><p id=busy hidden>Wait</p><p hidden class=agent>A template</p>
<p id=error role=alert></p><input id=it><button id=stop hidden>Stop</button>
<script>
const main = document.querySelector("main"), busy = document.querySelector("#busy")
const stop = document.querySelector("#stop")
function add(who, text) {
  const p = document.createElement("p"); p.className = who; p.textContent = text; main.append(p); return p
}
const known = JSON.parse(localStorage.known || "[]")
for (const text of known) add("user", text)
function listens() { document.querySelector("#it").onkeydown = typed }
if (location.pathname == "/moves") {
  const times = Number(location.search.slice(1))
  document.querySelector("h1").textContent = "Address " + times
  onload = () => times < 20 && setTimeout(() => location.replace("/moves?" + (times + 1)), 10)
}
setTimeout(listens, location.search == "?late" ? 3000 : 0)
function typed(key) {
  if (key.key != "Enter") return
  const text = key.target.value, word = text.split(" ").pop()
  key.target.value = ""
  if (word == "mute") return
  if (word == "stands") { document.querySelector("#error").textContent = "Error: no luck"; return }
  add("user", text)
  localStorage.known = JSON.stringify([...known, text])
  if (word == "dialog") { window.alert("No luck"); return }
  if (word == "toast") {
    const p = add("toast", "Error: no luck"); p.setAttribute("role", "alert")
    setTimeout(() => { p.remove(); add("agent", "So it is") }, 400)
    return
  }
  busy.hidden = false
  stop.hidden = word != "stoppable"
  stop.onclick = () => { busy.hidden = stop.hidden = true; add("agent", "stopped") }
  if (["stoppable", "endless"].includes(word)) return
  setTimeout(() => { busy.hidden = true; add("agent", word + " of " + known.length) }, 1500)
}
</script>"""


class Page(BaseHTTPRequestHandler):
    loads = 0

    def do_GET(self):
        print("Traceback of nothing that its user sees", file=sys.stderr, flush=True)
        if self.path == "/silent":
            Page.loads += 1
            if Page.loads > 2:  # (the first is that of the harness, which waits until the service is up)
                time.sleep(60)
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(PAGE.encode())

    def log_message(self, *words):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Page).serve_forever()
'''
KEYS = {"answer": ".agent", "busy": "#busy", "stop": "#stop", "quiet_s": 0.3}
PATIENCE_S = 60.0


Opened = Callable[..., AbstractAsyncContextManager[Session]]


@pytest.fixture(scope="module", autouse=True)
def _needs_a_browser() -> None:
    if not has_browser():
        pytest.skip("no browser is installed")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> "AsyncIterator[Callable[[], Browser]]":
    """One browser for all tests, as in a campaign: each user has a window of their own."""
    async with browser_of_users(f"test-pages-{os.getpid()}") as users:
        yield users


@pytest.fixture
def opened(tmp_path: Path, browser: "Callable[[], Browser]") -> Opened:
    """Opens the small page."""

    @asynccontextmanager
    async def small(*, one_user: bool = False, **keys: Any) -> AsyncIterator[Session]:
        (tmp_path / "page.py").write_text(SMALL)
        page = {"start": ["{python}", "{here}/page.py", "{port}"], **KEYS, **keys}
        (tmp_path / "agent.yaml").write_text(yaml.safe_dump({"name": "a", "wire": "anthropic", "page": page}))
        mark, log = f"test-{tmp_path.name}-{os.getpid()}/run", tmp_path / "log"
        there = AgentContext(tmp_path / "run", "http://127.0.0.1:9", "k", "s", mark, log, WallClock())
        work = cast("Work", SimpleNamespace(has_asked=lambda words: False))
        there = replace(there, browser=browser, work=work, one_user=one_user)
        async with open_agent(load_spec(tmp_path / "agent.yaml"), there) as session:
            yield session

    return small


async def _said(session: Session, text: str, *, first: bool = True) -> Any:
    return await asyncio.wait_for(session.say(text, first=first), PATIENCE_S)


async def test_what_can_be_seen_when_the_page_is_no_longer_busy_is_the_answer(opened: Opened):
    """Hidden elements count for nothing. What the page kept in the browser is there when it is loaded again."""
    async with opened() as session:
        told = await _said(session, "mk1 here")
        assert (told.answer, told.error, told.opened) == ("here of 0", "", None)
        assert (told.stdout, told.stderr) == ("here of 0", ""), "what a service prints is its log"
        await session.load_again()
        again = await _said(session, "mk2 there", first=False)
        assert (again.answer, again.opened) == ("there of 1", "Hello\nmk1 here")


async def test_an_error_that_its_user_saw_for_a_moment_was_seen(opened: Opened):
    """An alert that goes away by itself, and a dialog of the browser."""
    async with opened() as session:
        told = await _said(session, "mk1 toast")
        assert (told.answer, told.error) == ("So it is", "Error: no luck")
        assert (await _said(session, "mk2 dialog", first=False)).error == "No luck"


async def test_a_message_that_a_page_was_not_ready_for_is_typed_again(opened: Opened, monkeypatch: pytest.MonkeyPatch):
    """The script of a page may run only after its user can type."""
    monkeypatch.setattr("wedgehog.harness.agents.pages.page.TAKEN_WITHIN_S", 2.0)
    async with opened(url="/?late") as session:
        assert (await _said(session, "mk1 here")).answer == "here of 0"


async def test_a_page_may_go_to_another_address_by_itself(opened: Opened):
    """As one does that sends its user to a login."""
    async with opened(url="/moves") as session:
        told = await _said(session, "mk1 here")
        assert (told.answer, told.error) == ("here of 0", "")


async def test_a_page_that_does_not_load_again_holds_nothing_up(opened: Opened, monkeypatch: pytest.MonkeyPatch):
    """A service may take a connection and say nothing, also between two turns."""
    async with opened(url="/silent") as session:
        monkeypatch.setattr("wedgehog.harness.agents.pages.page_window.LOADED_WITHIN_S", 1.0)
        await _said(session, "mk1 here")
        await asyncio.wait_for(session.load_again(), 20)
        assert "Timeout" in (await _said(session, "mk2 there", first=False)).error


async def test_a_page_that_does_nothing_has_said_nothing(opened: Opened, monkeypatch: pytest.MonkeyPatch):
    """It shows when it works, and did not. An error that stands there already can not be seen to come again."""
    monkeypatch.setattr("wedgehog.harness.agents.pages.page.SILENT_S", 0.5)
    async with opened() as session:
        told = await _said(session, "mk1 mute")
        assert (told.answer, told.error, told.ended) == ("", "", "by itself")
        for message in ("mk2 stands", "mk3 stands"):
            assert (await _said(session, message, first=False)).error == "Error: no luck"


async def test_the_button_stops_a_turn_and_one_that_is_not_there_can_not_be_pressed(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
):
    """Then the agent was not stopped, which is no verdict on what it does after a stop."""
    monkeypatch.setattr("wedgehog.harness.agents.pages.page.ABORT_TIMEOUT_S", 0.5)
    async with opened() as session:
        for message, answer in (("mk1 stoppable", "stopped"), ("mk2 endless", None)):
            saying = asyncio.create_task(_said(session, message, first=answer is not None))
            await asyncio.sleep(1.5)
            await session.abort()
            if answer is None:
                with pytest.raises(AgentError, match="the page has no such button"):
                    await saying
            else:
                assert ((await saying).answer, (await saying).ended) == (answer, "aborted")


async def test_a_second_user_has_a_window_of_their_own(opened: Opened):
    """What one has said, the page of the other one does not know."""
    async with opened() as session:
        await _said(session, "mk1 here")
        await session.load_again()
        other = await session.apart("other", session._context, session.surroundings)
        try:
            assert (await _said(other, "mk2 there")).answer == "there of 0"
        finally:
            await other.close()
        assert (await _said(session, "mk3 where", first=False)).answer == "where of 1"


@pytest.mark.parametrize(
    ("new_chat", "why"),
    [("h1", "there is no way back to the conversation: name the entries"), ("#none", "no #none that can be pressed")],
)
async def test_a_spec_that_does_not_lead_to_a_conversation_is_no_verdict(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, new_chat: str, why: str
):
    """The page has no such button; or a press of it changes nothing, and neither does the address."""
    monkeypatch.setattr("wedgehog.harness.agents.pages.page_window.CHANGES_WITHIN_S", 0.3)
    async with opened(one_user=True, new_chat=new_chat) as session:
        await _said(session, "mk1 here")
        monkeypatch.setattr("wedgehog.harness.agents.pages.page_window.LOADED_WITHIN_S", 0.5)
        other = await session.apart("other", session._context, session.surroundings)
        with pytest.raises(AgentError, match=why):
            await _said(other, "mk2 there")
            await _said(session, "mk3 where", first=False)


async def test_a_browser_shows_no_pages_of_its_own(browser: "Callable[[], Browser]"):
    """Chromium loads two into each window for its address bar, which no user sees: half of all its processor time."""
    window = await browser().window()
    try:
        await window.new_page()
        assert window.browser is not None
        asking = await window.browser.new_browser_cdp_session()
        pages = (await asking.send("Target.getTargets", {"filter": [{}]}))["targetInfos"]
        assert {page["url"] for page in pages} == {"about:blank"}
    finally:
        await window.close()


async def test_what_playwright_switches_off_stays_off(browser: "Callable[[], Browser]"):
    """Chromium takes the last list of features, which is ours: it must name those of Playwright's own list too."""
    window = await browser().window()
    try:
        words = {word for process in psutil.Process().children(recursive=True) for word in _words(process)}
        ours, *theirs = sorted((_features(word) for word in words if OFF in word), key=len, reverse=True)
        assert theirs and all(it <= ours for it in theirs), set().union(*theirs) - ours
    finally:
        await window.close()


OFF = "--disable-features="


def _words(process: psutil.Process) -> list[str]:
    """Its command line, if it is the browser's first process."""
    with suppress(psutil.Error):
        words = process.cmdline()
        return words if "--remote-debugging-pipe" in words else []
    return []


def _features(word: str) -> set[str]:
    return set(word.removeprefix(OFF).split(","))


PLAIN = """<p class=agent>one</p><p class=agent hidden>template</p>
<div style="visibility: hidden"><p class=agent>gone</p></div>
<p class=agent></p><details><summary>More</summary><p class=agent>folded</p></details><p class=agent>two<br>three</p>
<svg class=agent width=9 height=9></svg><div style="display: none"><b id=busy>Wait</b></div><p role=alert>Oh</p>"""


@pytest.mark.parametrize(
    ("html", "answer", "by_script"),
    [
        (PLAIN, ".agent", True),
        (PLAIN, "p:has-text('e')", False),
        (PLAIN, "text=one", False),
        (PLAIN + "<span class=agent style='display: contents'>four</span>", ".agent", False),
        (PLAIN + "<div><template shadowrootmode=open><p class=agent>in a tree</p></template></div>", ".agent", False),
    ],
)
async def test_a_page_is_read_in_one_call_as_playwright_reads_it(
    browser: "Callable[[], Browser]", monkeypatch: pytest.MonkeyPatch, html: str, answer: str, by_script: bool
):
    """What the script cannot tell, Playwright is asked."""
    window = await browser().window()
    try:
        page = await window.new_page()
        await page.goto("data:text/html," + quote(html))
        view = PageView(page, PageAgent(start=("x",), **{**KEYS, "answer": answer}))
        assert (await page.evaluate(TEXTS, [answer]) is not None) == by_script
        seen = await view.read()
        monkeypatch.setattr("wedgehog.harness.agents.pages.page_view.TEXTS", "() => null")
        assert seen == await view.read()
        assert "one" in seen.answers and seen.errors == ["Oh"] and not seen.busy
    finally:
        await window.close()
