"""The specimen of lost-tool-result: who waits for a result that is lost, and what each fix does about it."""

import asyncio
import contextlib
import importlib
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import psutil
import pytest
from aiohttp import web

INCIDENT = Path(__file__).parents[2] / "scenarios/incidents/lost-tool-result"
PLANTED = INCIDENT / "scenarios/planted"
UNGUARDED = "exec-deadline,background-returns"
FIXED = f"guard-at-load,{UNGUARDED}"
ENDS_WITHIN = aiohttp.ClientTimeout(total=30)  # a session without an end is a failure, not a hang
STUCK_S = 1.0  # as long as nothing must come from who is said to be stuck; an answer takes milliseconds
FAST = 60.0  # the exec deadline's 30 s pass in 0.5 s


def words(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}]


def calls(*commands: str) -> list[dict[str, Any]]:
    uses = [{"id": f"toolu_{n}", "input": {"command": command}} for n, command in enumerate(commands)]
    return [{"type": "tool_use", "name": "exec", **use} for use in uses]


@dataclass
class Provider:
    """Says what it was given, one after the other; refuses calls and results that do not pair, as the provider does."""

    says: list[list[dict[str, Any]]]
    url: str = ""
    asked: list[list[dict[str, Any]]] = field(default_factory=list)
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    holds: asyncio.Event | None = None

    async def serve(self, request: web.Request) -> web.Response:
        messages = (await request.json())["messages"]
        self.asked.append(messages)
        self.heard.set()
        if not paired(messages):
            return web.json_response({"error": {"message": "tool_use without tool_result"}}, status=400)
        content = self.says.pop(0)
        if self.holds is not None and len(self.asked) > 1:
            await self.holds.wait()
        return web.json_response({"content": content, "stop_reason": "end_turn"})

    @property
    def results(self) -> list[dict[str, Any]]:
        """Tool results of the last request."""
        return [block for message in self.asked[-1] for block in message["content"] if block["type"] == "tool_result"]


def paired(messages: list[dict[str, Any]]) -> bool:
    """Each reply's calls are answered in the message behind it, each once, and nothing else is."""
    for message, after in zip(messages, [*messages[1:], {"content": []}], strict=True):
        wanted = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        given = [block["tool_use_id"] for block in after["content"] if block["type"] == "tool_result"]
        if message["role"] == "assistant" and wanted != given:
            return False
    return True


@pytest.fixture
async def fake() -> AsyncIterator[Provider]:
    made = Provider([])
    app = web.Application()
    app.router.add_post("/v1/messages", made.serve)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


@dataclass
class Gateway:
    process: asyncio.subprocess.Process
    url: str
    http: aiohttp.ClientSession
    log: Path

    async def say(self, text: str = "Is it up?") -> dict[str, str]:
        message = {"session": "s1", "text": text}
        async with self.http.post(f"{self.url}/message", json=message, timeout=ENDS_WITHIN) as reply:
            return await reply.json()

    async def is_silent(self) -> bool:
        """Whether a message brings nothing, for as long as this test has patience."""
        asking = asyncio.create_task(self.say("Hello?"))
        done, _ = await asyncio.wait({asking}, timeout=STUCK_S)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        return not done

    async def status(self) -> str:
        async with self.http.get(f"{self.url}/status?session=s1") as reply:
            return (await reply.json())["status"]

    async def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        await self.process.wait()


@dataclass
class Place:
    fake: Provider
    folder: Path
    port: int

    @property
    def session(self) -> Path:
        return self.folder / "s1.jsonl"

    def plant(self, name: str) -> None:
        self.session.write_bytes((PLANTED / name).read_bytes())

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.session.read_text().splitlines()]

    @property
    def roles(self) -> list[str]:
        return [record["message"]["role"] for record in self.records]

    @asynccontextmanager
    async def gateway(self, fixes: str, *options: str, scale: float = FAST) -> AsyncIterator[Gateway]:
        given = {"--fixes": fixes, "--time-scale": str(scale), "--session": str(self.folder), "--url": self.fake.url}
        given |= {"--key": "k", "--port": str(self.port)}
        argv = [sys.executable, str(INCIDENT / "specimen.py"), *(word for pair in given.items() for word in pair)]
        with (self.folder / "log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(*argv, *options, cwd=self.folder, stderr=log)
            try:
                async with aiohttp.ClientSession() as http:
                    made = Gateway(process, f"http://127.0.0.1:{self.port}", http, self.folder / "log")
                    await up(made)
                    yield made
            finally:
                if process.returncode is None:
                    process.kill()
                await process.wait()
                end_all_in(self.folder)

    async def reached(self, name: str) -> None:
        """Wait until a command has left its file."""
        async with asyncio.timeout(30):
            while not (self.folder / name).exists():
                await asyncio.sleep(0.02)


def end_all_in(folder: Path) -> None:
    """Hosts and commands that a killed gateway left behind; they are known by their working folder."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if Path(process.cwd()) == folder:
                process.kill()


async def up(gateway: Gateway) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                async with gateway.http.get(f"{gateway.url}/health"):
                    return
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.02)


@pytest.fixture
def place(fake: Provider, tmp_path: Path, unused_tcp_port: int) -> Place:
    return Place(fake, tmp_path, unused_tcp_port)


LOSING = ["61-lines.jsonl", "dangling-in-the-middle.jsonl", "two-dangling.jsonl", "torn-last-line.jsonl"]


@pytest.mark.parametrize("planted", LOSING)
async def test_unfixed_a_session_with_a_call_without_result_answers_no_message(place: Place, planted: str):
    """No request, no answer, no error: the session is running, and that is all."""
    place.plant(planted)
    async with place.gateway(UNGUARDED) as gateway:
        assert await gateway.is_silent()
        assert await gateway.status() == "running"
    assert place.fake.asked == []


@pytest.mark.parametrize("planted", LOSING)
async def test_guarded_each_lost_result_gets_a_line_and_the_wire_is_paired(place: Place, planted: str):
    """The report's words, as an error, for each call that had none."""
    place.plant(planted)
    before = place.session.read_bytes()
    place.fake.says = [words("I look again.")]
    async with place.gateway("guard-at-load") as gateway:
        assert await gateway.say() == {"answer": "I look again."}
    lost = [result for result in place.fake.results if result.get("is_error")]
    assert len(lost) == (2 if planted == "two-dangling.jsonl" else 1)
    assert {result["content"][0]["text"] for result in lost} == {"[tool execution lost — session was interrupted]"}
    assert place.session.read_bytes().startswith(before)


async def test_a_torn_line_does_not_swallow_what_is_written_behind_it(place: Place):
    """The half line stays alone on its line, so that the repair holds for the next load too."""
    place.plant("torn-last-line.jsonl")
    place.fake.says = [words("one"), words("two")]
    for answer in ("one", "two"):
        async with place.gateway("guard-at-load") as gateway:
            assert await gateway.say() == {"answer": answer}
    assert "can't be read" in (place.folder / "log").read_text()
    assert len([result for result in place.fake.results if result.get("is_error")]) == 1


@pytest.mark.parametrize("fixes", ["none", FIXED])
async def test_of_two_results_one_reaches_the_provider(place: Place, fixes: str):
    """The first one; the late one belongs to no call."""
    place.plant("duplicate-result.jsonl")
    place.fake.says = [words("It is.")]
    async with place.gateway(fixes) as gateway:
        assert await gateway.say() == {"answer": "It is."}


async def test_the_reports_manual_line_unblocks_at_once_and_the_waiting_message_is_answered_late(place: Place):
    """Without a reset and without a restart."""
    place.plant("61-lines.jsonl")
    place.fake.says = [words("late"), words("in time")]
    async with place.gateway("none") as gateway:
        assert await gateway.is_silent()
        with place.session.open("ab") as session:
            session.write((PLANTED / "manual-line.jsonl").read_bytes())
        assert await gateway.say("And now?") == {"answer": "in time"}
        assert await gateway.status() == "idle"
    assert len(place.fake.asked) == 2
    assert place.fake.results[-1]["content"] == [{"type": "text", "text": "[tool execution lost]"}]


def test_the_planted_session_is_the_reports(tmp_path: Path):
    """61 lines, of which the last one is an assistant's toolCall for exec; the manual line answers that one."""
    lines = [json.loads(line) for line in (PLANTED / "61-lines.jsonl").read_text().splitlines()]
    manual = json.loads((PLANTED / "manual-line.jsonl").read_text())
    (call,) = lines[-1]["message"]["content"]
    assert (len(lines), lines[-1]["message"]["role"], call["type"], call["name"]) == (
        61,
        "assistant",
        "toolCall",
        "exec",
    )
    assert (manual["parentId"], manual["message"]["toolCallId"]) == (lines[-1]["id"], call["id"])


@pytest.mark.parametrize(("fixes", "stuck"), [("none", True), (UNGUARDED, True), (FIXED, False)])
async def test_a_kill_in_mid_tool_leaves_a_call_that_only_the_guard_answers(place: Place, fixes: str, stuck: bool):
    """Nobody is left to write the result."""
    place.fake.says = [calls("touch running; exec sleep 60"), words("I look again.")]
    async with place.gateway(fixes, scale=1) as gateway:
        turn = asyncio.create_task(gateway.say("Build it."))
        await place.reached("running")
        await gateway.kill()
        await asyncio.gather(turn, return_exceptions=True)
    assert place.roles == ["user", "assistant"]
    async with place.gateway(fixes) as gateway:
        assert await gateway.is_silent() if stuck else await gateway.say() == {"answer": "I look again."}


@pytest.mark.parametrize(("fixes", "kept"), [("none", []), ("guard-at-load", []), ("exec-deadline", ["toolResult"])])
async def test_a_result_is_written_before_the_model_sees_it_only_with_write_back(
    place: Place, fixes: str, kept: list[str]
):
    """Killed while the model thinks about the result."""
    place.fake.says = [calls("echo built"), words("never")]
    place.fake.holds = asyncio.Event()
    async with place.gateway(fixes) as gateway:
        turn = asyncio.create_task(gateway.say("Build it."))
        async with asyncio.timeout(30):
            while len(place.fake.asked) < 2:
                await asyncio.sleep(0.02)
        await gateway.kill()
        await asyncio.gather(turn, return_exceptions=True)
    assert place.fake.results[0]["content"][0]["text"] == "built\n"
    assert place.roles == ["user", "assistant", *kept]


def pipe_that(folder: Path, rest: str) -> str:
    """An executable in the place of wedgehog-pipe."""
    file = folder / "pipe"
    file.write_text(f"#!/bin/sh\n{rest}\n")
    file.chmod(0o755)
    return str(file)


BROKEN_PIPES = {"stalls": "exec sleep 60", "is cut": "printf '{\"outp'; exit 0"}


@pytest.mark.parametrize("how", BROKEN_PIPES)
async def test_without_a_deadline_a_lost_answer_holds_the_turn_and_the_message_behind_it(place: Place, how: str):
    """Also with the guard: nothing is loaded while a turn runs."""
    place.fake.says = [calls("echo hi")]
    async with place.gateway("guard-at-load", "--pipe", pipe_that(place.folder, BROKEN_PIPES[how])) as gateway:
        assert await gateway.is_silent()
        assert await gateway.is_silent()
    assert len(place.fake.asked) == 1


@pytest.mark.parametrize(("how", "said"), [("stalls", "[exec timed out after 30 s]"), ("is cut", "[exec failed: ")])
async def test_with_a_deadline_a_lost_answer_is_an_error_result(place: Place, how: str, said: str):
    """It is written down, and the model reads it."""
    place.fake.says = [calls("echo hi"), words("No luck.")]
    async with place.gateway("exec-deadline", "--pipe", pipe_that(place.folder, BROKEN_PIPES[how])) as gateway:
        assert await gateway.say() == {"answer": "No luck."}
    (result,) = place.fake.results
    assert result["is_error"]
    assert result["content"][0]["text"].startswith(said)
    assert place.roles == ["user", "assistant", "toolResult", "assistant"]


async def test_a_pipe_that_carries_changes_nothing(place: Place):
    """The host's command line follows `--name exec --`."""
    place.fake.says = [calls("echo hi; exit 3"), words("Done.")]
    carrying = pipe_that(place.folder, '[ "$1 $2 $3" = "--name exec --" ] && shift 3 && exec "$@"')
    async with place.gateway("none", "--pipe", carrying) as gateway:
        assert await gateway.say() == {"answer": "Done."}
    assert place.fake.results[0]["content"][0]["text"] == "hi\n[exit code 3]"


async def test_without_the_fix_a_background_command_holds_its_call(place: Place):
    """Its shell has exited, and the job still has the output."""
    place.fake.says = [calls("touch running; sleep 60 &")]
    async with place.gateway("guard-at-load") as gateway:
        assert await gateway.is_silent()
    assert len(place.fake.asked) == 1


async def test_with_the_fix_a_background_command_returns_with_its_pid_and_runs_on(place: Place):
    """The job outlives the call."""
    place.fake.says = [calls("sleep 60 &\necho started"), words("It runs.")]
    async with place.gateway("background-returns") as gateway:
        assert await gateway.say() == {"answer": "It runs."}
        said = place.fake.results[0]["content"][0]["text"]
        assert said.startswith("started\n[running in the background, PID ")
        pid = int(said.rpartition("PID ")[2].rstrip("]\n"))
        try:
            assert "sleep" in Path(f"/proc/{pid}/cmdline").read_text()
        finally:
            os.kill(pid, signal.SIGTERM)


async def test_the_deadline_kills_a_background_command_that_held_its_call(place: Place):
    """Why the deadline alone is not enough for a server."""
    place.fake.says = [calls("sleep 60 & echo $! >job"), words("No luck.")]
    async with place.gateway("exec-deadline") as gateway:
        assert await gateway.say() == {"answer": "No luck."}
        pid = int((place.folder / "job").read_text())
        async with asyncio.timeout(10):
            while Path(f"/proc/{pid}").exists() and ") Z " not in Path(f"/proc/{pid}/stat").read_text():
                await asyncio.sleep(0.02)


async def test_a_reply_that_drips_is_given_up_at_the_end_of_the_turns_budget(imported: Callable[[str], Any]):
    """Each byte comes in time; the whole reply does not."""
    model = imported("model")

    async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError), contextlib.closing(writer):
            while not writer.is_closing():
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n" if not sent else b" ")
                sent.append(await writer.drain())
                await asyncio.sleep(0.02)

    sent: list[None] = []
    async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        asking = asyncio.to_thread(model.Model(url, "k").complete, [], time.monotonic() + 0.3)
        with pytest.raises(model.ModelError, match="took too long"):
            await asyncio.wait_for(asking, ENDS_WITHIN.total)
    assert len(sent) > 3


@pytest.mark.parametrize(("scale", "budget_s"), [(1.0, 75.0), (10.0, 7.5), (120.0, 5.0)])
def test_all_model_calls_of_a_turn_share_its_budget(
    tmp_path: Path, imported: Callable[[str], Any], scale: float, budget_s: float
):
    """A time scale shortens it, though not below what a busy machine may need to begin."""
    session, loop, model = imported("session"), imported("loop"), Endless([])
    tool = SimpleNamespace(run=lambda call: session.tool_result(call, "one", is_error=False))
    began_s = time.monotonic()
    with pytest.raises(Exception, match="no answer after 10 rounds"):
        loop.Loop(session.Session(tmp_path / "s1.jsonl"), model, tool, frozenset(), scale).answer("Hi")
    assert len(model.ends_s) == 10 and len(set(model.ends_s)) == 1
    assert began_s + budget_s <= model.ends_s[0] <= time.monotonic() + budget_s


@pytest.mark.parametrize("fixes", ["none", FIXED])
async def test_no_model_call_follows_a_tool_for_a_reader_who_has_left(place: Place, fixes: str):
    """The result is kept, so the next message finds a whole session."""
    place.fake.says = [calls("touch began; sleep 0.5; echo done"), words("Next.")]
    async with place.gateway(fixes) as gateway:
        asking = asyncio.create_task(gateway.say())
        await place.reached("began")
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        assert await gateway.say("And now?") == {"answer": "Next."}
    assert len(place.fake.asked) == 2
    assert place.roles == ["user", "assistant", "toolResult", "user", "assistant"]


@dataclass
class Endless:
    """A model that asks for one more tool each time."""

    ends_s: list[float]

    def complete(self, messages: list[dict[str, Any]], ends_s: float) -> dict[str, Any]:
        self.ends_s.append(ends_s)
        call = {"type": "toolCall", "id": f"toolu_{len(messages)}", "name": "exec", "arguments": {"command": "ls"}}
        return {"role": "assistant", "content": [call]}


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """Imports modules of the incident, which other tests do not find afterwards."""
    monkeypatch.syspath_prepend(INCIDENT)
    yield importlib.import_module
    for name in ("session", "model", "loop", "exec_tool"):
        sys.modules.pop(name, None)


async def test_a_gateway_that_waits_says_only_that_it_stops_typing(place: Place):
    """The one line that the report found in the log."""
    place.plant("61-lines.jsonl")
    async with place.gateway("none", scale=400) as gateway:
        assert await gateway.is_silent()
    said = (place.folder / "log").read_text().strip()
    assert said.endswith(": typing TTL reached (2m); stopping typing indicator")
    assert "\n" not in said
