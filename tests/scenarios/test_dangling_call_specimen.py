"""The specimen of dangling-call: which exits clean up, with which fix."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

SPECIMEN = Path(__file__).parents[2] / "scenarios/incidents/dangling-call/specimen.py"
PYTHON = sys.executable  # see conftest.py
SCALE = 90  # the 90 s timeout fires after 1 s
OFF = 0.1  # the timeout is minutes away

REMEMBERS_CALLS = ["user", "assistant"]
CLEAN = ["user"]


def chunk(finish: str | None = None, **delta: object) -> bytes:
    return b"data: " + json.dumps({"choices": [{"delta": delta, "finish_reason": finish}]}).encode() + b"\n\n"


def says(words: str) -> list[bytes]:
    return [chunk(role="assistant"), chunk(content=words), chunk("stop"), b"data: [DONE]\n\n"]


def calls(*commands: str) -> list[bytes]:
    """A reply whose calls arrive in two fragments each."""
    frames = [chunk(role="assistant")]
    for index, command in enumerate(commands):
        arguments = json.dumps({"command": command})
        start = {"index": index, "id": f"call_{index}", "function": {"name": "bash", "arguments": arguments[:5]}}
        rest = {"index": index, "function": {"arguments": arguments[5:]}}
        frames += [chunk(tool_calls=[start]), chunk(tool_calls=[rest])]
    return [*frames, chunk("tool_calls"), b"data: [DONE]\n\n"]


STALL = [b""]


@dataclass
class Fake:
    """A model that streams the next reply, and refuses a call without its results as the provider does."""

    replies: list[list[bytes] | int] = field(default_factory=list)
    asked: list[list[dict]] = field(default_factory=list)
    url: str = ""

    async def serve(self, request: web.Request) -> web.StreamResponse:
        messages = (await request.json())["messages"]
        self.asked.append(messages[1:])
        wanted = {call["id"] for message in messages for call in message.get("tool_calls", ())}
        if wanted != {message["tool_call_id"] for message in messages if message["role"] == "tool"}:
            return web.json_response({"error": {"message": "tool_calls must be followed by tool messages"}}, status=400)
        reply = self.replies.pop(0)
        if isinstance(reply, int):
            return web.json_response({"error": {"message": "overloaded"}}, status=reply)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for frame in reply:
            if not frame:
                await asyncio.Event().wait()
            await response.write(frame)
        return response


@pytest.fixture
async def fake() -> AsyncIterator[Fake]:
    made = Fake()
    app = web.Application()
    app.router.add_post("/v1/chat/completions", made.serve)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


@dataclass
class Coder:
    """The specimen on one session."""

    fake: Fake
    folder: Path

    async def start(self, message: str, fixes: str, *more: str, scale: float = OFF) -> asyncio.subprocess.Process:
        options = {"--fixes": fixes, "--time-scale": str(scale), "--session": str(self.folder / "session")}
        options |= {"--url": self.fake.url, "--key": "k"}
        argv = [PYTHON, str(SPECIMEN), *(word for pair in options.items() for word in pair), *more]
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            *argv, *([message] if message else []), cwd=self.folder, stdout=pipe, stderr=pipe
        )

    async def say(self, message: str, fixes: str, *more: str, scale: float = OFF) -> tuple[int, str, str]:
        """Exit code, stdout, stderr."""
        return await ended(await self.start(message, fixes, *more, scale=scale))

    async def reached(self, name: str) -> None:
        """Wait until a command has left its file."""
        async with asyncio.timeout(30):
            while not (self.folder / name).exists():
                await asyncio.sleep(0.02)

    def kept(self) -> dict:
        return json.loads((self.folder / "session/history.json").read_text())

    def roles(self) -> list[str]:
        return [message["role"] for message in self.kept()["messages"]]


async def ended(process: asyncio.subprocess.Process) -> tuple[int, str, str]:
    try:
        out, err = await asyncio.wait_for(process.communicate(), 30)
    finally:
        if process.returncode is None:
            process.kill()
    return process.returncode, out.decode().strip(), err.decode().strip()


@pytest.fixture
def coder(fake: Fake, tmp_path: Path) -> Coder:
    return Coder(fake, tmp_path)


FAST_AND_SLOW = ("echo fast", "touch slow; sleep 60")


@pytest.mark.parametrize(
    ("fixes", "left"),
    [
        ("none", REMEMBERS_CALLS),
        ("catch-cancel", CLEAN),
        ("cleanup-in-run", CLEAN),
        ("catch-cancel,cleanup-in-run", CLEAN),
    ],
)
async def test_a_timeout_in_mid_tool_leaves_its_calls_unless_fixed(
    coder: Coder, fake: Fake, fixes: str, left: list[str]
):
    """Either fix cleans up after the timeout; without one both calls stay, without results."""
    fake.replies += [calls(*FAST_AND_SLOW)]
    code, out, err = await coder.say("build", fixes, scale=SCALE)
    assert (code, out) == (1, "")
    assert err.startswith("GlobalRequestTimeoutError")
    assert coder.roles() == left


async def test_a_session_with_dangling_calls_is_refused_for_ever(coder: Coder, fake: Fake):
    """Neither the next message nor the one after it gets through."""
    fake.replies += [calls(*FAST_AND_SLOW), says("never"), says("never")]
    await coder.say("build", "none", scale=SCALE)
    for message in ("and now?", "hello?"):
        code, _, err = await coder.say(message, "none")
        assert code == 1
        assert "HTTP 400" in err


async def test_a_cleaned_session_goes_on(coder: Coder, fake: Fake):
    """After the fix the next message is answered; the reply with both calls is gone from its request."""
    fake.replies += [calls(*FAST_AND_SLOW), says("fine")]
    await coder.say("build", "catch-cancel", scale=SCALE)
    assert await coder.say("and now?", "catch-cancel") == (0, "fine", "")
    assert [message["content"] for message in fake.asked[-1]] == ["build", "and now?"]


async def abort_in_mid_tool(coder: Coder, fixes: str) -> tuple[int, str, str]:
    process = await coder.start("build", fixes)
    await coder.reached("slow")
    process.send_signal(signal.SIGINT)
    return await ended(process)


@pytest.mark.parametrize("fixes", ["none", "catch-cancel", "cleanup-in-run"])
async def test_a_users_abort_cleans_up_with_and_without_fixes(coder: Coder, fake: Fake, fixes: str):
    """The exit that was thought of from the start."""
    fake.replies += [calls(*FAST_AND_SLOW)]
    code, _, err = await abort_in_mid_tool(coder, fixes)
    assert code == 130
    assert err.startswith("UserAbortError")
    assert coder.roles() == CLEAN


async def test_fixed_a_timeout_leaves_the_same_state_as_an_abort(coder: Coder, fake: Fake, tmp_path: Path):
    """Messages, open calls and token count alike."""
    other = Coder(fake, tmp_path / "other")
    other.folder.mkdir()
    fake.replies += [calls(*FAST_AND_SLOW), calls(*FAST_AND_SLOW)]
    await coder.say("build", "catch-cancel", scale=SCALE)
    await abort_in_mid_tool(other, "catch-cancel")
    assert coder.kept() == other.kept()
    assert coder.kept()["open_calls"] == {}


async def test_unfixed_a_timeout_leaves_open_calls_behind(coder: Coder, fake: Fake):
    """The index of open calls is saved with the history."""
    fake.replies += [calls(*FAST_AND_SLOW)]
    await coder.say("build", "none", scale=SCALE)
    assert set(coder.kept()["open_calls"]) == {"call_0", "call_1"}


@pytest.mark.parametrize(
    ("fixes", "left"),
    [("none", REMEMBERS_CALLS), ("catch-cancel", CLEAN), ("cleanup-in-run", REMEMBERS_CALLS)],
)
async def test_a_cancel_from_outside_is_no_timeout(
    coder: Coder, fake: Fake, fixes: str, left: list[str], unused_tcp_port: int
):
    """The client hangs up: the handler is cancelled, and a clean-up that waits for TimeoutError never runs."""
    fake.replies += [calls(*FAST_AND_SLOW)]
    url = f"http://127.0.0.1:{unused_tcp_port}"
    service = await coder.start("", fixes, "--serve", str(unused_tcp_port))
    try:
        async with aiohttp.ClientSession() as client:
            await until_healthy(client, url)
            turn = asyncio.ensure_future(client.post(f"{url}/message", json={"text": "build"}))
            await coder.reached("slow")
            turn.cancel()
            await asyncio.gather(turn, return_exceptions=True)
            await coder.reached("session/history.json")
    finally:
        service.send_signal(signal.SIGINT)
        await ended(service)
    assert coder.roles() == left


async def until_healthy(client: aiohttp.ClientSession, url: str) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                async with client.get(f"{url}/health"):
                    return
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.05)


async def test_a_service_answers_with_json_and_fails_with_500(coder: Coder, fake: Fake, unused_tcp_port: int):
    """The same turns, over HTTP."""
    fake.replies += [says("hello"), 529]
    url = f"http://127.0.0.1:{unused_tcp_port}"
    service = await coder.start("", "none", "--serve", str(unused_tcp_port))
    try:
        async with aiohttp.ClientSession() as client:
            await until_healthy(client, url)
            async with client.post(f"{url}/message", json={"text": "hi"}) as answer:
                assert (answer.status, await answer.json()) == (200, {"answer": "hello"})
            async with client.post(f"{url}/message", json={"text": "hi"}) as answer:
                assert answer.status == 500
                assert "HTTP 529" in (await answer.json())["error"]
    finally:
        service.send_signal(signal.SIGINT)
        await ended(service)


async def test_a_cancelled_command_dies_with_its_children(coder: Coder, fake: Fake):
    """What the shell started doesn't outlive the turn: no process holds the pipe's other end any more."""
    os.mkfifo(coder.folder / "alive")
    reader = os.open(coder.folder / "alive", os.O_RDONLY | os.O_NONBLOCK)
    fake.replies += [calls("exec 3>alive; echo yes >&3; sleep 60 & wait")]
    try:
        code, _, _ = await coder.say("build", "none", scale=SCALE)
        assert code == 1
        assert os.read(reader, 100) == b"yes\n"
        assert os.read(reader, 100) == b""
    finally:
        os.close(reader)


async def test_without_a_timeout_a_slow_tool_finishes(coder: Coder, fake: Fake):
    """No timeout set: nothing is wrapped around the turn."""
    fake.replies += [calls("sleep 1.5; echo slow"), says("done")]
    assert await coder.say("build", "none", "--timeout", "0", scale=SCALE) == (0, "done", "")
    assert "slow" in fake.asked[-1][-1]["content"]


async def test_a_failing_command_is_a_result(coder: Coder, fake: Fake):
    """Its siblings' results go with it, each under its own call."""
    fake.replies += [calls("echo one", "exit 3"), says("done")]
    assert await coder.say("build", "none") == (0, "done", "")
    one, two = fake.asked[-1][-2:]
    assert (one["tool_call_id"], one["content"]) == ("call_0", "exit code 0\none\n")
    assert (two["tool_call_id"], two["content"]) == ("call_1", "exit code 3\n")


@pytest.mark.parametrize("status", [500, 529])
async def test_a_providers_error_is_surfaced_once_and_leaves_a_paired_history(coder: Coder, fake: Fake, status: int):
    """No retry; the results that were already there stay."""
    fake.replies += [calls("echo one"), status, says("again")]
    code, _, err = await coder.say("build", "none")
    assert code == 1
    assert f"ProviderError: HTTP {status}" in err
    assert await coder.say("go on", "none") == (0, "again", "")
    assert coder.roles() == ["user", "assistant", "tool", "user", "assistant"]


@pytest.mark.parametrize("fixes", ["none", "catch-cancel"])
async def test_a_timeout_in_mid_argument_leaves_nothing_behind(coder: Coder, fake: Fake, fixes: str):
    """A reply enters the history when its stream is complete, so half a call can't dangle."""
    fake.replies += [calls("sleep 60")[:2] + STALL]
    code, _, err = await coder.say("build", fixes, scale=SCALE)
    assert (code, err.startswith("GlobalRequestTimeoutError")) == (1, True)
    assert coder.roles() == CLEAN


async def test_a_stream_that_ends_early_is_an_error(coder: Coder, fake: Fake):
    """No silent partial text."""
    fake.replies += [says("half an answer")[:2]]
    code, out, err = await coder.say("hi", "none")
    assert (code, out, err) == (1, "", "ProviderError: the reply is not whole: its stream ended early")
