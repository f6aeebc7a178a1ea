"""The retry-storm specimen: each fix changes who owns the streak, what ends it, or how much a run may try."""

import asyncio
import importlib.util
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from wedgehog.harness.sim.world import simulate

SPECIMEN = Path(__file__).parents[2] / "scenarios/incidents/retry-storm/specimen.py"
PYTHON = sys.executable  # see conftest.py
STORM_IDLE_MS = 5  # nothing ever comes, so the shortest timer gives the same storm sooner
ENDS_WITHIN_S = 60  # a storm without an end is a failure, not a hang
FIXED = "outer-counter,reset-on-output"


@dataclass(frozen=True)
class Said:
    """What the provider puts on the wire for one call; `then`: end | stall | pings."""

    events: tuple[dict[str, Any], ...] = ()
    then: str = "stall"
    status: int = 200


STALL = Said()


def start() -> dict[str, Any]:
    usage = {"input_tokens": 8000, "output_tokens": 1}  # as real ones say before anything was put out
    return {"type": "message_start", "message": {"usage": usage}}


def text_block(text: str, finished: bool = True) -> list[dict[str, Any]]:
    deltas = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word + " "}}
        for word in text.split()
    ]
    head = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    return [head, *deltas, *([{"type": "content_block_stop", "index": 0}] if finished else [])]


def answer(text: str = "All quiet.") -> Said:
    return Said((start(), *text_block(text), {"type": "message_stop"}), "end")


def call(command: str) -> Said:
    block = {"type": "tool_use", "id": "toolu_1", "name": "exec", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": json.dumps({"command": command})}
    return Said(
        (
            start(),
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_stop"},
        ),
        "end",
    )


@dataclass
class Provider:
    """Says what `says(call number)` says, and keeps every request."""

    says: Callable[[int], Said]
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(await request.json())
        said = self.says(len(self.requests))
        if said.status != 200:
            return web.json_response({"type": "error", "error": {"type": "overloaded_error"}}, status=said.status)
        reply = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await reply.prepare(request)
        body = "".join(f"event: {event.get('type', '')}\ndata: {json.dumps(event)}\n\n" for event in said.events)
        if "chat" in request.path:
            body = "".join(f"data: {json.dumps(event)}\n\n" for event in said.events)
            body += "data: [DONE]\n\n" if said.then == "end" else ""
        await reply.write(body.encode())
        while said.then == "pings":
            await reply.write(b'event: ping\ndata: {"type": "ping"}\n\n')
            await asyncio.sleep(0.02)
        if said.then == "stall":
            await asyncio.Event().wait()
        return reply

    @property
    def models(self) -> list[str]:
        return [request["model"] for request in self.requests]


@asynccontextmanager
async def provider(says: Callable[[int], Said]) -> AsyncIterator[Provider]:
    fake = Provider(says)
    app = web.Application()
    app.router.add_post("/{path:.*}", fake.serve)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield fake
    finally:
        await runner.cleanup()


@dataclass(frozen=True)
class Ended:
    code: int | None
    out: str
    err: str


async def tell(fake: Provider, session: Path, fixes: str, *options: str, idle_ms: float = STORM_IDLE_MS) -> Ended:
    process = await asyncio.create_subprocess_exec(
        PYTHON,
        str(SPECIMEN),
        *("--fixes", fixes, "--session", str(session), "--url", fake.url, "--key", "k"),
        *("--idle-ms", str(idle_ms), *options, "what is due?"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), ENDS_WITHIN_S)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return Ended(process.returncode, out.decode(), err.decode())


@pytest.mark.parametrize("candidates", [1, 5])
async def test_without_a_fix_a_stalled_provider_is_asked_160_times_in_all(tmp_path: Path, candidates: int) -> None:
    """The backstop counts attempts, however many candidates they are spread over."""
    async with provider(lambda n: STALL) as fake:
        ended = await tell(fake, tmp_path, "none", "--candidates", str(candidates))
    assert (len(fake.requests), ended.code) == (160, 1)
    assert set(fake.models) == {f"m{n}" for n in range(1, candidates + 1)}
    assert "gave up after 160 attempts" in ended.err


async def test_a_counter_in_the_wrapper_is_born_again_with_each_attempt(tmp_path: Path) -> None:
    """The first patch: its cap of five is never reached."""
    async with provider(lambda n: STALL) as fake:
        await tell(fake, tmp_path, "wrapper-counter")
    assert len(fake.requests) == 160


async def test_a_counter_in_the_run_loop_stops_after_five(tmp_path: Path) -> None:
    """The breaker works across candidates, and its error is told apart from a plain timeout."""
    async with provider(lambda n: STALL) as fake:
        ended = await tell(fake, tmp_path, FIXED)
    assert fake.models == ["m1", "m2", "m3", "m4", "m5"]
    assert ended.code == 1
    assert "idle-timeout breaker" in ended.err
    assert "gave up" not in ended.err


@pytest.mark.parametrize("wire", ["anthropic", "openai-chat"])
async def test_a_first_event_without_output_does_not_count_as_output(tmp_path: Path, wire: str) -> None:
    """A message_start or a role chunk is a sign of life, but no token."""
    role = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]}
    first = Said((start() if wire == "anthropic" else role,))
    async with provider(lambda n: first) as fake:
        ended = await tell(fake, tmp_path, FIXED, "--wire", wire)
    assert (len(fake.requests), ended.code) == (5, 1)


async def test_pings_do_not_keep_the_idle_timer_from_firing(tmp_path: Path) -> None:
    """The timer counts events of the model; pings every 20 ms do not hold off one of 100 ms."""
    async with provider(lambda n: Said((start(),), "pings")) as fake:
        ended = await tell(fake, tmp_path, FIXED, idle_ms=100)
    assert len(fake.requests) == 5
    assert "idle-timeout breaker" in ended.err


@pytest.mark.parametrize(
    ("fixes", "calls"), [(FIXED, 7), ("outer-counter", 5), ("outer-counter,reset-on-progress", 5), ("none", 7)]
)
async def test_output_before_the_silence_ends_the_streak_only_if_the_fix_says_so(
    tmp_path: Path, fixes: str, calls: int
) -> None:
    """Six slow attempts, then an answer: a breaker that asks for finished attempts or blocks would lose it."""
    slow = Said((start(), *text_block("one two three", finished=False)))
    async with provider(lambda n: slow if n <= 6 else answer()) as fake:
        ended = await tell(fake, tmp_path, fixes, idle_ms=100)
    assert len(fake.requests) == calls
    assert ("All quiet." in ended.out) == (calls == 7)


@pytest.mark.parametrize(("fixes", "calls"), [("outer-counter,reset-on-progress", 7), ("outer-counter", 5)])
async def test_a_finished_block_before_the_silence_is_progress(tmp_path: Path, fixes: str, calls: int) -> None:
    """Upstream's merged breaker forgives an attempt that finished a block."""
    block = Said((start(), *text_block("one two three")))
    async with provider(lambda n: block if n <= 6 else answer()) as fake:
        ended = await tell(fake, tmp_path, fixes, idle_ms=100)
    assert len(fake.requests) == calls
    assert ("All quiet." in ended.out) == (calls == 7)


@pytest.mark.parametrize(
    ("fixes", "calls"), [("outer-counter,reset-on-progress,reply-budget", 10), ("outer-counter,reset-on-progress", 20)]
)
async def test_finished_blocks_without_a_whole_reply_end_at_the_replys_budget(
    tmp_path: Path, fixes: str, calls: int
) -> None:
    """A block is finished in each attempt, so the streak is reset each time."""
    block = Said((start(), *text_block("one two three")))
    async with provider(lambda n: block if n < 20 else answer()) as fake:
        ended = await tell(fake, tmp_path, fixes, idle_ms=100)
    assert (len(fake.requests), ended.code) == (calls, int(calls == 10))
    assert ("10 in a row without a whole reply" in ended.err) == (calls == 10)


async def test_a_whole_reply_begins_a_new_budget(tmp_path: Path) -> None:
    """Six slow attempts, a tool call, six more, the answer: no reply took more than seven."""
    block = Said((start(), *text_block("one two three")))
    said = {7: call("echo from the shell"), 14: answer()}
    async with provider(lambda n: said.get(n, block)) as fake:
        ended = await tell(fake, tmp_path, "outer-counter,reset-on-progress,reply-budget", idle_ms=100)
    assert (len(fake.requests), "All quiet." in ended.out) == (14, True)


async def test_a_model_that_only_asks_for_tools_is_stopped(tmp_path: Path) -> None:
    """With or without the fixes, after forty rounds; the 160 attempts are the storm's."""
    async with provider(lambda n: call("exit 0")) as fake:
        ended = await tell(fake, tmp_path, "none", idle_ms=5000)
    assert (len(fake.requests), ended.code) == (41, 1)
    assert "no answer after 40 rounds of tools" in ended.err


async def test_a_dribble_never_opens_a_breaker_that_any_output_resets(tmp_path: Path) -> None:
    """Tokens come each time and nothing is ever finished: 160 calls again."""
    dribble = Said((start(), *text_block("one", finished=False)))
    async with provider(lambda n: dribble) as fake:
        await tell(fake, tmp_path, FIXED)
    assert len(fake.requests) == 160


@pytest.mark.parametrize(("fixes", "calls"), [(FIXED, 10), ("total-budget", 8)])
async def test_only_consecutive_stalls_count(tmp_path: Path, fixes: str, calls: int) -> None:
    """Four stalls, a tool call, four stalls, the answer: fine for a streak, too much for a total of eight."""
    said = {5: call("echo from the shell"), 10: answer()}
    async with provider(lambda n: said.get(n, STALL)) as fake:
        ended = await tell(fake, tmp_path, fixes, idle_ms=100)
    assert len(fake.requests) == calls
    assert fake.requests[-1]["messages"][-1]["content"][0]["content"] == "from the shell\n"
    assert ("All quiet." in ended.out) == (calls == 10)


async def test_a_loop_for_each_candidate_multiplies_the_backstop(tmp_path: Path) -> None:
    """Two candidates: 320 calls, the second one's only after all of the first's."""
    async with provider(lambda n: STALL) as fake:
        await tell(fake, tmp_path, "none", "--candidates", "2", "--loop-per-candidate")
    assert fake.models == ["m1"] * 160 + ["m2"] * 160


async def test_the_last_of_five_candidates_is_tried_before_the_breaker_opens(tmp_path: Path) -> None:
    """The fix leaves routing as it was."""
    async with provider(lambda n: STALL if n < 5 else answer()) as fake:
        ended = await tell(fake, tmp_path, FIXED, idle_ms=100)
    assert fake.models[-1] == "m5"
    assert "All quiet." in ended.out


async def test_the_conversation_outlives_the_process(tmp_path: Path) -> None:
    """The second message's request carries the first, its tool round and its answer."""
    async with provider({1: call("echo hi"), 2: answer("First."), 3: answer("Second.")}.__getitem__) as fake:
        await tell(fake, tmp_path, "none", idle_ms=500)
        ended = await tell(fake, tmp_path, "none", "--heartbeat", idle_ms=500)
    roles = [message["role"] for message in fake.requests[-1]["messages"]]
    assert roles == ["user", "assistant", "user", "assistant", "user"]
    assert "heartbeat" in fake.requests[-1]["messages"][-1]["content"][0]["text"]
    assert "Second." in ended.out


async def test_its_books_tell_what_each_attempt_brought(tmp_path: Path) -> None:
    """One line an attempt: model, end and tokens."""
    async with provider(lambda n: Said((start(),)) if n == 1 else answer("one two")) as fake:
        await tell(fake, tmp_path, FIXED, idle_ms=100)
    books = [json.loads(line) for line in (tmp_path / "attempts.jsonl").read_text().splitlines()]
    assert [(line["model"], line["ended"], line["output_tokens"]) for line in books] == [
        ("m1", "idle timeout", 0),
        ("m2", "finished", 2),
    ]


async def test_over_the_other_wire_it_calls_tools_and_answers(tmp_path: Path) -> None:
    """OpenAI's chunks give the same attempt: a call in pieces, its result, the words."""

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    def piece(arguments: str, **first: Any) -> dict[str, Any]:
        return {"tool_calls": [{"index": 0, "function": {"arguments": arguments} | first.pop("function", {}), **first}]}

    tool = Said(
        (
            chunk({"role": "assistant"}),
            chunk(piece('{"comm', id="call_1", function={"name": "exec"})),
            chunk(piece('and": "echo hi"}')),
            chunk({}, "tool_calls"),
        ),
        "end",
    )
    words = Said((chunk({"content": "All "}), chunk({"content": "quiet."}), chunk({}, "stop")), "end")
    async with provider({1: tool, 2: words}.__getitem__) as fake:
        ended = await tell(fake, tmp_path, FIXED, "--wire", "openai-chat", idle_ms=500)
    assert fake.requests[-1]["messages"][-1] == {"role": "tool", "tool_call_id": "call_1", "content": "hi\n"}
    assert ended.out == "All quiet.\n"


async def test_a_refusal_is_an_error_and_not_retried(tmp_path: Path) -> None:
    """Only idle timeouts storm; everything else surfaces at once."""

    async with provider(lambda n: Said(status=529)) as fake:
        ended = await tell(fake, tmp_path, "none")
    assert (len(fake.requests), ended.code) == (1, 1)
    assert "HTTP 529" in ended.err


class SilentRefusal:
    """A reply with status 529 whose body never comes, and the client that gets it."""

    status = 529

    async def post(self, *_: object, **__: object) -> "SilentRefusal":
        return self

    async def text(self) -> str:
        return await asyncio.Future()

    async def __aenter__(self) -> "SilentRefusal":
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


def imported(monkeypatch: pytest.MonkeyPatch, name: str) -> Any:
    """A module of the incident, which other tests do not find."""
    spec = importlib.util.spec_from_file_location(name, SPECIMEN.with_stem(name))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def test_an_error_whose_body_never_comes_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its text is read for as long as headers are waited for, and the status alone is told."""
    imported(monkeypatch, "wires")
    specimen = imported(monkeypatch, "specimen")
    options = specimen.Options(specimen.WIRES["anthropic"], "", "", 1, False, 1.0, frozenset())

    async def asked() -> float:
        began_s = asyncio.get_running_loop().time()
        with pytest.raises(specimen.ProviderError, match=r"^HTTP 529: $"):
            await specimen.Attempt(options, SilentRefusal()).run("m1", [])
        return asyncio.get_running_loop().time() - began_s

    assert simulate(asked) == specimen.HEADERS_S
