"""The endless-loop specimen: each fix bounds one thing in the chain of calls and tools, or says what happened."""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

SPECIMEN = Path(__file__).parents[2] / "scenarios/incidents/endless-loop/specimen.py"
PYTHON = sys.executable  # see conftest.py
ENDS_WITHIN = aiohttp.ClientTimeout(total=60)  # a loop without an end is a failure, not a hang
FAST = 300.0  # 60 s become 0.2 s


@dataclass(frozen=True)
class Said:
    """A reply: its blocks and stop reason, after `after_s` (spread over the text where it is streamed)."""

    content: tuple[dict[str, Any], ...]
    stop_reason: str = "end_turn"
    after_s: float = 0


def words(text: str, **more: Any) -> Said:
    return Said(({"type": "text", "text": text},), **more)


def call(count: int = 1, **more: Any) -> Said:
    block = {"type": "tool_use", "id": "toolu_1", "name": "update_units", "input": {"count": count}}
    return Said((block,), "tool_use", **more)


STALL = words("never", after_s=3600)


@dataclass
class Provider:
    says: Callable[[int], Said]
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(await request.json())
        self.asked.set()
        said = self.says(len(self.requests))
        try:
            if self.requests[-1]["stream"]:
                return await self.stream(request, said)
            await asyncio.sleep(said.after_s)
        except asyncio.CancelledError:
            self.left.set()
            raise
        return web.json_response({"content": said.content, "stop_reason": said.stop_reason})

    async def stream(self, request: web.Request, said: Said) -> web.StreamResponse:
        reply = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await reply.prepare(request)
        for event in events(said):
            if event.get("delta", {}).get("type") == "text_delta":
                await asyncio.sleep(said.after_s / len(said.content[0]["text"].split()))
            await reply.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        return reply

    @property
    def results(self) -> list[str]:
        """Tool results of the last request."""
        blocks = [block for message in self.requests[-1]["messages"] for block in message["content"]]
        return [block["content"] for block in blocks if isinstance(block, dict) and block["type"] == "tool_result"]


def events(said: Said) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"type": "message_start"}]
    for block in said.content:
        if block["type"] == "text":
            deltas = [{"type": "text_delta", "text": word + " "} for word in block["text"].split()]
            found.append({"type": "content_block_start", "content_block": {"type": "text", "text": ""}})
        else:
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
            found.append({"type": "content_block_start", "content_block": block | {"input": {}}})
        found += [{"type": "content_block_delta", "delta": delta} for delta in deltas]
        found.append({"type": "content_block_stop"})
    return [*found, {"type": "message_delta", "delta": {"stop_reason": said.stop_reason}}, {"type": "message_stop"}]


@asynccontextmanager
async def provider(says: Callable[[int], Said]) -> AsyncIterator[Provider]:
    fake = Provider(says)
    app = web.Application(client_max_size=2**24)
    app.router.add_post("/v1/messages", fake.serve)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield fake
    finally:
        await runner.cleanup()


@dataclass(frozen=True)
class Service:
    url: str
    http: aiohttp.ClientSession

    async def tell(self, text: str = "Update all units", session: str = "s1") -> tuple[int, dict[str, str]]:
        message = {"session": session, "text": text}
        async with self.http.post(f"{self.url}/message", json=message, timeout=ENDS_WITHIN) as reply:
            return reply.status, await reply.json()


@asynccontextmanager
async def service(
    fake: Provider, folder: Path, fixes: str, *options: str, time_scale: float = FAST
) -> AsyncIterator[Service]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        PYTHON,
        str(SPECIMEN),
        *("--fixes", fixes, "--session", str(folder), "--url", fake.url, "--key", "k"),
        *("--port", str(port), "--time-scale", str(time_scale), *options),
    )
    url = f"http://127.0.0.1:{port}"
    try:
        async with aiohttp.ClientSession() as http:
            await ready(http, url)
            yield Service(url, http)
    finally:
        process.terminate()
        await process.wait()


async def ready(http: aiohttp.ClientSession, url: str) -> None:
    for _ in range(400):
        try:
            async with http.get(f"{url}/health") as reply:
                assert reply.status == 200
                return
        except aiohttp.ClientConnectionError:
            await asyncio.sleep(0.05)
    raise AssertionError("the service did not come up")


async def played(
    says: Callable[[int], Said], folder: Path, fixes: str, *options: str, time_scale: float = FAST
) -> tuple[Provider, int, dict[str, str]]:
    """One message, from its words to its answer."""
    async with provider(says) as fake, service(fake, folder, fixes, *options, time_scale=time_scale) as landscaper:
        status, body = await landscaper.tell()
    return fake, status, body


def then(*said: Said) -> Callable[[int], Said]:
    return lambda n: said[min(n, len(said)) - 1]


async def test_without_a_fix_the_loop_ends_only_when_the_model_does(tmp_path: Path) -> None:
    """Twelve rounds of tools, since the model asks for twelve."""
    fake, status, body = await played(then(*[call()] * 12, words("Done.")), tmp_path, "none")
    assert (len(fake.requests), status, body) == (13, 200, {"answer": "Done."})


@pytest.mark.parametrize(("fixes", "status"), [("five-rounds", 200), ("five-rounds,say-so", 500)])
async def test_five_rounds_end_the_loop_at_a_bare_call(tmp_path: Path, fixes: str, status: int) -> None:
    """The report's `break` leaves an empty answer with HTTP 200, unless the service says why."""
    fake, got, body = await played(then(call()), tmp_path, fixes)
    assert (len(fake.requests), got) == (6, status)
    assert body == {"answer": ""} if status == 200 else "stopped at a limit" in body["error"]


async def test_the_reports_budget_begins_after_the_first_call_and_looks_only_between_calls(tmp_path: Path) -> None:
    """Calls of 50 s: the third is begun 50 s into the budget of 75 and ends at 150 s."""
    fake, _, body = await played(then(call(after_s=1)), tmp_path, "budget-75", time_scale=50)
    assert (len(fake.requests), body) == (3, {"answer": ""})


@pytest.mark.parametrize(
    ("fixes", "after_s", "answer"),
    [
        ("say-so", 45, True),
        ("say-so", 70, False),
        ("say-so,client-timeout-120", 90, True),
        ("say-so,budget-per-call", 62, True),
        ("say-so,budget-per-call,client-timeout-120", 90, False),
    ],
)
async def test_how_long_a_call_may_take(tmp_path: Path, fixes: str, after_s: float, answer: bool) -> None:
    """60 s for each, 120 s for each, or what is left of 75 s."""
    _, status, body = await played(then(words("Done.", after_s=after_s / 40)), tmp_path, fixes, time_scale=40)
    assert (status, body) == (200, {"answer": "Done."}) if answer else (status == 500 and "timed out" in body["error"])


@pytest.mark.parametrize(("fixes", "calls"), [("say-so", 2), ("say-so,budget-per-call", 1)])
async def test_a_call_after_the_budget_is_not_made(tmp_path: Path, fixes: str, calls: int) -> None:
    """A tool of 90 s uses up 75 s; the continuation is asked for only where calls know of no budget."""
    fake, _, body = await played(then(call(400), words("Done.")), tmp_path, fixes, time_scale=400)
    assert len(fake.requests) == calls
    assert "budget" in body["error"] if calls == 1 else body == {"answer": "Done."}


@pytest.mark.parametrize(("fixes", "answer"), [("none", False), ("streaming", True)])
async def test_streaming_shows_bytes_to_the_clients_timer(tmp_path: Path, fixes: str, answer: bool) -> None:
    """A reply of 100 s, a word every 10 s: too long for 60 s without a byte, fine for 60 s between bytes."""
    slow = words("all forty of the units are updated as you asked", after_s=2.5)
    _, status, body = await played(then(slow), tmp_path, fixes, time_scale=40)
    assert status == 200
    assert body["answer"].startswith("all forty") == answer


async def test_a_streamed_tool_call_is_put_together(tmp_path: Path) -> None:
    """Streaming changes the way, not the words."""
    fake, _, body = await played(then(call(3), words("Done.")), tmp_path, "streaming")
    assert "'unit_number': '103'" in fake.results[0]
    assert body["answer"].strip() == "Done."


@pytest.mark.parametrize(("fixes", "status"), [("none", 200), ("say-so", 500)])
async def test_a_call_that_times_out_ends_in_a_canned_text_unless_the_service_says_so(
    tmp_path: Path, fixes: str, status: int
) -> None:
    """`except Exception` hides what happened behind HTTP 200."""
    fake, got, body = await played(then(call(), STALL), tmp_path, fixes)
    assert (len(fake.requests), got) == (2, status)
    assert "trouble" in body["answer"] if status == 200 else "timed out" in body["error"]


@pytest.mark.parametrize(("fixes", "status"), [("none", 200), ("say-so", 500)])
async def test_a_cut_reply_stands_as_the_answer_unless_the_service_says_so(
    tmp_path: Path, fixes: str, status: int
) -> None:
    """A stop at max_tokens is no end."""
    _, got, body = await played(then(words("Units 1 to", stop_reason="max_tokens")), tmp_path, fixes)
    assert got == status
    assert body == {"answer": "Units 1 to"} if status == 200 else "cut at 2048" in body["error"]


@pytest.mark.parametrize("fixes", ["none", "cut-results"])
async def test_a_result_is_cut_at_4000_characters_and_says_so(tmp_path: Path, fixes: str) -> None:
    """200 units make some 8,000 characters; the marker comes on top of the 4,000."""
    fake, _, _ = await played(then(call(200), words("Done.")), tmp_path, fixes)
    (result,) = fake.results
    if fixes == "none":
        assert len(result) > 7000
    else:
        assert result[4000:].startswith("... [truncated, ")
        assert result.endswith(" chars total]")


async def test_forty_units_never_reach_the_cut(tmp_path: Path) -> None:
    """The report's batch makes about 1,650 characters."""
    fake, _, _ = await played(then(call(40), words("Done.")), tmp_path, "none")
    assert 1500 < len(fake.results[0]) < 1800


@pytest.mark.parametrize(("fixes", "queries"), [("none", 180), ("multi-row-insert", 4)])
async def test_one_statement_a_table_or_four_to_five_a_unit(tmp_path: Path, fixes: str, queries: int) -> None:
    """The same units come out of both."""
    fake, _, _ = await played(then(call(40), words("Done.")), tmp_path, fixes)
    work = json.loads((tmp_path / "work.jsonl").read_text())
    assert (work["units"], work["queries"]) == (40, queries)
    assert "{'unit_id': 40, 'unit_number': '140'}" in fake.results[0]


async def test_after_the_front_end_has_left_the_service_works_on(tmp_path: Path) -> None:
    """Nobody reads the answer of the third call."""
    said = then(call(after_s=0.3), call(), words("Done."))
    async with provider(said) as fake, service(fake, tmp_path, "none", time_scale=10) as landscaper:
        await give_up(fake, landscaper)
        async with asyncio.timeout(20):
            while len(fake.requests) < 3:
                await asyncio.sleep(0.02)
    assert not fake.left.is_set()


async def test_with_cancel_the_work_ends_when_the_front_end_leaves(tmp_path: Path) -> None:
    """The call under way is hung up on, and no other is made."""
    async with provider(then(STALL)) as fake, service(fake, tmp_path, "cancel-with-front-end", time_scale=1) as it:
        await give_up(fake, it)
        async with asyncio.timeout(20):
            await fake.left.wait()
        await ready(it.http, it.url)
        assert len(fake.requests) == 1


async def give_up(fake: Provider, landscaper: Service) -> None:
    waiting = asyncio.create_task(landscaper.tell())
    async with asyncio.timeout(20):
        await fake.asked.wait()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def test_an_sdks_own_retries_multiply_the_calls(tmp_path: Path) -> None:
    """Two retries by default: three requests of 60 s each behind a front end of 90 s."""
    fake, _, body = await played(then(STALL), tmp_path, "none", "--sdk-retries", "2")
    assert len(fake.requests) == 3
    assert "trouble" in body["answer"]


async def test_a_thread_outlives_the_service_and_is_kept_from_others(tmp_path: Path) -> None:
    """A restart sends the earlier words again; another session knows nothing of them."""
    async with provider(then(words("First."))) as fake:
        for _ in range(2):
            async with service(fake, tmp_path, "none") as landscaper:
                await landscaper.tell("hello")
        roles = [message["role"] for message in fake.requests[-1]["messages"]]
        async with service(fake, tmp_path, "none") as landscaper:
            await landscaper.tell("hello", session="s2")
    assert roles == ["user", "assistant", "user"]
    assert len(fake.requests[-1]["messages"]) == 1


async def test_the_prompt_is_as_large_as_the_reports(tmp_path: Path) -> None:
    """10 to 50 thousand tokens are 40 to 200 KB."""
    fake, _, _ = await played(then(words("Hi.")), tmp_path, "none")
    assert 40_000 < len(fake.requests[0]["system"]) < 200_000
