"""An agent with a page: a browser shows what its user sees, and the verdicts are about that."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

pytest.importorskip("playwright")

from playwright.async_api import async_playwright

from tests.live.together import JOBS
from wedgehog.harness.agents.base import AgentError, Session
from wedgehog.harness.agents.browser import find_browser
from wedgehog.harness.agents.context import AgentContext, Work
from wedgehog.harness.agents.opening import open_agent
from wedgehog.harness.agents.spec import load_spec
from wedgehog.harness.agents.users_browser import browser_of_users
from wedgehog.harness.record.clock import WallClock

AGENT = Path(__file__).with_name("paged.py")
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


@pytest.fixture(scope="module", autouse=True)
def _needs_a_browser() -> None:
    async def downloaded() -> str | None:
        async with async_playwright() as driver:
            return find_browser(Path(driver.chromium.executable_path))

    if asyncio.run(downloaded()) is None:
        pytest.skip("no browser is installed")


@asynccontextmanager
async def opened(folder: Path, *, one_user: bool = False, **keys: Any) -> AsyncIterator[Session]:
    """The small page."""
    (folder / "page.py").write_text(SMALL)
    page = {"start": ["{python}", "{here}/page.py", "{port}"], **KEYS, **keys}
    (folder / "agent.yaml").write_text(yaml.safe_dump({"name": "a", "wire": "anthropic", "page": page}))
    mark = f"test-{folder.name}"
    place = AgentContext(folder / "run", "http://127.0.0.1:9", "k", "s", f"{mark}/run", folder / "log", WallClock())
    spec = load_spec(folder / "agent.yaml")
    async with browser_of_users(mark) as browser:
        work = cast("Work", SimpleNamespace(has_asked=lambda words: False))
        there = replace(place, browser=browser, work=work, one_user=one_user)
        async with open_agent(spec, there) as session:
            yield session


async def _said(session: Session, text: str, *, first: bool = True) -> Any:
    return await asyncio.wait_for(session.say(text, first=first), PATIENCE_S)


async def test_what_can_be_seen_when_the_page_is_no_longer_busy_is_the_answer(tmp_path: Path):
    """Hidden elements count for nothing. What the page kept in the browser is there when it is loaded again."""
    async with opened(tmp_path) as session:
        told = await _said(session, "mk1 here")
        assert (told.answer, told.error, told.opened) == ("here of 0", "", None)
        assert (told.stdout, told.stderr) == ("here of 0", ""), "what a service prints is its log"
        await session.load_again()
        again = await _said(session, "mk2 there", first=False)
        assert (again.answer, again.opened) == ("there of 1", "Hello\nmk1 here")


async def test_an_error_that_its_user_saw_for_a_moment_was_seen(tmp_path: Path):
    """An alert that goes away by itself, and a dialog of the browser."""
    async with opened(tmp_path) as session:
        told = await _said(session, "mk1 toast")
        assert (told.answer, told.error) == ("So it is", "Error: no luck")
        assert (await _said(session, "mk2 dialog", first=False)).error == "No luck"


async def test_a_message_that_a_page_was_not_ready_for_is_typed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The script of a page may run only after its user can type."""
    monkeypatch.setattr("wedgehog.harness.agents.page.TAKEN_WITHIN_S", 2.0)
    async with opened(tmp_path, url="/?late") as session:
        assert (await _said(session, "mk1 here")).answer == "here of 0"


async def test_a_page_may_go_to_another_address_by_itself(tmp_path: Path):
    """As one does that sends its user to a login."""
    async with opened(tmp_path, url="/moves") as session:
        told = await _said(session, "mk1 here")
        assert (told.answer, told.error) == ("here of 0", "")


async def test_a_page_that_does_not_load_again_holds_nothing_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A service may take a connection and say nothing, also between two turns."""
    async with opened(tmp_path, url="/silent") as session:
        monkeypatch.setattr("wedgehog.harness.agents.page_window.LOADED_WITHIN_S", 1.0)
        await _said(session, "mk1 here")
        await asyncio.wait_for(session.load_again(), 20)
        assert "Timeout" in (await _said(session, "mk2 there", first=False)).error


async def test_a_page_that_does_nothing_has_said_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It shows when it works, and did not. An error that stands there already can not be seen to come again."""
    monkeypatch.setattr("wedgehog.harness.agents.page.SILENT_S", 0.5)
    async with opened(tmp_path) as session:
        told = await _said(session, "mk1 mute")
        assert (told.answer, told.error, told.ended) == ("", "", "by itself")
        for message in ("mk2 stands", "mk3 stands"):
            assert (await _said(session, message, first=False)).error == "Error: no luck"


async def test_the_button_stops_a_turn_and_one_that_is_not_there_can_not_be_pressed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Then the agent was not stopped, which is no verdict on what it does after a stop."""
    monkeypatch.setattr("wedgehog.harness.agents.page.ABORT_TIMEOUT_S", 0.5)
    async with opened(tmp_path) as session:
        for message, answer in (("mk1 stoppable", "stopped"), ("mk2 endless", None)):
            saying = asyncio.create_task(_said(session, message, first=answer is not None))
            await asyncio.sleep(1.5)
            await session.abort()
            if answer is None:
                with pytest.raises(AgentError, match="the page has no such button"):
                    await saying
            else:
                assert ((await saying).answer, (await saying).ended) == (answer, "aborted")


async def test_a_second_user_has_a_window_of_their_own(tmp_path: Path):
    """What one has said, the page of the other one does not know."""
    async with opened(tmp_path) as session:
        await _said(session, "mk1 here")
        await session.load_again()
        other = await session.apart("other", session._place, session.surroundings)
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_chat: str, why: str
):
    """The page has no such button; or a press of it changes nothing, and neither does the address."""
    monkeypatch.setattr("wedgehog.harness.agents.page_window.CHANGES_WITHIN_S", 0.3)
    async with opened(tmp_path, one_user=True, new_chat=new_chat) as session:
        await _said(session, "mk1 here")
        monkeypatch.setattr("wedgehog.harness.agents.page_window.LOADED_WITHIN_S", 0.5)
        other = await session.apart("other", session._place, session.surroundings)
        with pytest.raises(AgentError, match=why):
            await _said(other, "mk2 there")
            await _said(session, "mk3 where", first=False)


STORIES: dict[str, dict[str, set[str]]] = {
    "page-is-loaded-again": {
        "sound": set(),
        "anew": set(),
        "shows-nothing": set(),
        "twice": {"answered_once"},
        "knows-nothing": {"session_remembers"},
    },
    "page-loses-its-connection": {
        "sound": set(),
        "spins": {"turn_deadline"},
        "dead": {"error_surfaced"},
        "holes": {"truncation_noticed"},
    },
    "page-clock-is-ahead": {
        "sound": set(),
        "by-clock": {"error_surfaced", "session_recovers", "turn_answered"},
    },
    "front-end-goes-away-in-mid-reply": {
        "sound": set(),
        "looks-idle": set(),
        "stays-busy": {"turn_deadline", "session_recovers"},
    },
    "answer-comes-while-user-is-in-another-chat": {
        "sound": set(),
        "lists": set(),
        "stays-empty": set(),
        "one-id": {"sessions_apart"},
    },
    "user-comes-back-before-the-answer": {
        "sound": set(),
        "locks": set(),
        "loads": set(),
        "ignores": set(),
        "stops": set(),
        "shows-half": set(),
        "follows": {"sessions_apart"},
        "stops-unseen": {"error_surfaced"},
    },
}
"""The agents that play a scenario, with what is red at level `safe`."""


FORGETFUL = {
    "page-is-loaded-again": {"anew", "shows-nothing"},
    "front-end-goes-away-in-mid-reply": {"looks-idle"},
    "answer-comes-while-user-is-in-another-chat": {"stays-empty", "one-id"},
    "user-comes-back-before-the-answer": {"shows-half"},
}
"""The agents in which `page_kept` is red, at level `strict`."""


def _shows_pictures(campaign: Path, told: list[dict[str, Any]]) -> None:
    """Each turn has one in its run's folder; the report has those of runs that did not pass."""
    kept = {it["agent"]: list(campaign.glob(f"{it['scenario']}/{it['agent']}/page-*.jpg")) for it in told}
    assert all(kept.values()), kept
    failed = sum(len(kept[it["agent"]]) for it in told if it["verdict"] != "pass")
    assert (campaign / "report.html").read_text().count('<img src="data:image/jpeg;base64,') == failed


@pytest.mark.parametrize("story", STORIES)
def test_a_planted_bug_is_red_and_the_sound_agent_is_not(wedgehog: Any, tmp_path: Path, story: str):
    """A page may begin anew in sight of its user, may let them have one answer at a time, and may end a turn that they
    leave if it says so. At level `strict` it must show what was said, also to a user who comes back.
    """
    for bug in STORIES[story]:
        words = ["{python}", str(AGENT), "{port}", "{llm_url}", "{session_dir}", bug]
        page = {"start": words, "answer": "p.agent", "busy": "#busy", "stop": "#stop", "new_chat": "#new"}
        page |= {"chats": "nav li"} if bug == "lists" else {}
        spec = {
            "name": bug,
            "wire": "anthropic",
            "page": page,
            "limits": {"turn_s": 25 if "user" in story else 12},
            "start_s": 12,
            "recover_s": 0,
        }
        (tmp_path / f"{bug}.yaml").write_text(yaml.safe_dump(spec))
    agents = [word for bug in STORIES[story] for word in ("--agent", f"{bug}.yaml")]
    done = wedgehog("run", story, *agents, "--network", "embedded", JOBS)
    assert done.returncode == 1, done.stdout + done.stderr
    told = [json.loads(it.read_text()) for it in (tmp_path / "runs" / "latest").glob(f"{story}/*/verdicts.json")]
    assert {it["agent"]: set(it["violated"]) for it in told} == STORIES[story]
    assert {it["agent"] for it in told if "page_kept" in it["strict"]} == FORGETFUL.get(story, set())
    _shows_pictures(tmp_path / "runs" / "latest", told)
