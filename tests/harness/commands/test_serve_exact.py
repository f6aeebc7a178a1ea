"""Faults on bytes in `wedgehog serve`: exact, every time, at any byte of a reply, and proven."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from wedgehog.harness.commands.serve import Provider

ROUNDS = 100
PATIENCE_S, SILENCE_S = 20.0, 0.02
WORDS = "Grüße 🦔 und 👩‍🚀, " * 8
REPLY = [{"text": WORDS}, {"tool": "get_weather", "args": {"city": "Zürich"}}]
PATHS = {
    "anthropic": ("/v1/messages", {"max_tokens": 999}),
    "openai-chat": ("/v1/chat/completions", {}),
    "openai-responses": ("/v1/responses", {}),
    "gemini": ("/v1beta/models/m:streamGenerateContent?alt=sse", {}),
    "ollama": ("/api/chat", {}),
}
MESSAGES = {"messages": [{"role": "user", "content": "go"}]}
SAID = {
    "openai-responses": {"input": "go"},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "go"}]}]},
}


@pytest.fixture
async def llm() -> AsyncIterator[Provider]:
    async with Provider({"replies": [{"reply": REPLY}]}) as provider:
        yield provider


class Client:
    """One connection, kept alive."""

    def __init__(self, llm: Provider, wire: str, session: str) -> None:
        host, port = llm.url.removeprefix("http://").split(":")
        self._address, self._wire, self._session = (host, int(port)), wire, session

    async def __aenter__(self) -> "Client":
        self._reader, self._writer = await asyncio.open_connection(*self._address)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._writer.transport.abort()
        await asyncio.sleep(0)

    async def ask(self, expected: int | None = None) -> tuple[bytes, str]:
        """The body as it stood on the wire, and how it ended: whole, fin, rst or silence.

        Silence is listened for once so many bytes have come as are expected.
        """
        path, more = PATHS[self._wire]
        said = {"model": "m", "stream": True, **more, **SAID.get(self._wire, MESSAGES)}
        body = json.dumps(said).encode()
        head = f"POST /s/{self._session}{path} HTTP/1.1\r\nHost: x\r\nx-api-key: k\r\nx-goog-api-key: k\r\n"
        head += "Authorization: Bearer k\r\nanthropic-version: 2023-06-01\r\n"
        self._writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        got, told = b"", b""
        try:
            while not got.endswith(b"\r\n0\r\n\r\n"):
                silent = expected is not None and b"\r\n\r\n" in got and len(told) >= expected
                data = await asyncio.wait_for(self._reader.read(65536), SILENCE_S if silent else PATIENCE_S)
                if not data:
                    return told, "fin"
                got += data
                told = got.partition(b"\r\n\r\n")[2]
        except TimeoutError:
            return told, "silence"
        except ConnectionResetError:
            return told, "rst"
        return told, "whole"


def story(do: Any, **at: Any) -> dict[str, Any]:
    return {"replies": [{"reply": REPLY, "fault": {"do": do, "at": at}}]}


def spots(body: bytes) -> dict[str, int]:
    """Critical offsets in a body."""
    size, _, _ = body.partition(b"\r\n")
    second = len(size) + 2 + int(size, 16) + 2
    last = body.rindex(b"\r\n", 0, -7) + 2 if body.endswith(b"\r\n0\r\n\r\n") else len(body)
    return {
        "the first byte": 1,
        "a frame": second // 2,
        "a chunk header": second + 1,
        "between a chunk and its end": second - 1,
        "a UTF-8 character": body.index("🦔".encode()) + 2,
        "the terminal event": last - 4,
        "behind the last event": len(body) - 5,
        "the end of the body": len(body) - 1,
    }


@pytest.mark.parametrize("wire", PATHS)
@pytest.mark.parametrize(("do", "end"), [({"cut": "fin"}, "fin"), ({"cut": "rst"}, "rst"), ("stall", "silence")])
async def test_a_fault_strikes_inside_of_anything(llm: Provider, wire: str, do: Any, end: str):
    """In a frame, a chunk's header, a character, the terminal event: what came is a part of the whole, to the byte."""
    async with Client(llm, wire, "whole") as client:
        whole, how = await client.ask()
    assert how == "whole"
    for number, (where, at) in enumerate(spots(whole).items()):
        session = f"{wire}-{number}"
        llm.put(story(do, byte=at), session)
        async with Client(llm, wire, session) as client:
            got, how = await client.ask(at if end == "silence" else None)
        assert (len(got), how) == (at, end), where
        (entry,) = llm.ledger(session)
        assert (entry["bytes_delivered"], entry["fault"]["byte"]) == (at, at), where
        assert f"then {'stall' if end == 'silence' else end}" in entry["fault"]["proof"]


@pytest.mark.parametrize(("do", "end"), [({"cut": "fin"}, "fin"), ({"cut": "rst"}, "rst"), ("stall", "silence")])
async def test_a_hundred_faults_in_a_row_hit_their_byte(llm: Provider, do: Any, end: str):
    """Each on the second reply of a kept-alive connection, beside a neighbour in another session that loses nothing."""
    async with Client(llm, "anthropic", "whole") as client:
        whole, _ = await client.ask()
    wrong = []
    for round_ in range(ROUNDS):
        at = 1 + round_ * (len(whole) - 2) // ROUNDS
        llm.put(story(do, byte=at, attempt=2), "struck")
        llm.reset("struck")
        async with Client(llm, "anthropic", "struck") as client, Client(llm, "anthropic", "neighbour") as neighbour:
            first, _ = await client.ask()
            (got, how), (innocent, well) = await asyncio.gather(
                client.ask(at if end == "silence" else None), neighbour.ask()
            )
        entry = llm.ledger("struck")[1]
        seen = (len(first), len(got), how, len(innocent), well, entry["bytes_delivered"], bool(entry["fault"]["proof"]))
        if seen != (len(whole), at, end, len(whole), "whole", at, True):
            wrong.append((at, seen))
    assert not wrong


async def test_a_reply_lingers_behind_its_last_event(llm: Provider):
    """All events have come, and the body does not end."""
    async with Client(llm, "anthropic", "whole") as client:
        whole, _ = await client.ask()
    llm.put(story("stall", phase="linger"), "lingers")
    async with Client(llm, "anthropic", "lingers") as client:
        got, how = await client.ask(len(whole) - 5)
    assert (len(got), how) == (len(whole) - len(b"0\r\n\r\n"), "silence")
    assert b"message_stop" in got


async def test_a_drip_loses_nothing_and_is_told(llm: Provider):
    """From its byte on it comes piece by piece; the ledger says how far it got."""
    async with Client(llm, "anthropic", "whole") as client:
        whole, _ = await client.ask()
    llm.put(story({"drip": {"every_s": 0.01, "bytes": 200}}, byte=100), "drips")
    async with Client(llm, "anthropic", "drips") as client:
        got, how = await client.ask()
    (entry,) = llm.ledger("drips")
    assert (len(got), how, entry["bytes_delivered"]) == (len(whole), "whole", len(whole))
    assert "drip" in entry["fault"]["proof"]


async def test_a_slow_reply_slows_no_other_session(llm: Provider):
    """In a run the whole link is slow; `serve` has many sessions on one link."""
    llm.put(story({"drip": {"every_s": 60}}, byte=1), "slow")
    async with Client(llm, "anthropic", "slow") as client, Client(llm, "anthropic", "neighbour") as neighbour:
        asking = asyncio.create_task(client.ask())
        while not (entries := llm.ledger("slow")) or not entries[0]["fault"]:
            await asyncio.sleep(0.01)
        async with asyncio.timeout(PATIENCE_S):
            assert (await neighbour.ask())[1] == "whole"
        asking.cancel()


async def test_a_faulty_reply_is_forgotten_when_its_client_has_gone(llm: Provider):
    """A server that runs for weeks keeps no task for a fault that can't fire any more."""
    llm.put(story("stall", byte=10**6), "never")  # no such byte
    llm.put(story("stall", byte=20), "cut short")
    for session in ("never", "cut short") * 5:
        async with Client(llm, "anthropic", session) as client:
            await client.ask(0)
    async with asyncio.timeout(PATIENCE_S):
        while len(llm._faulty._replies) > 2:
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("byte", [None, 20])
@pytest.mark.parametrize("fault", [{"do": {"down": 1}}, {"do": "refuse", "heal": {"after_s": 1}}])
async def test_a_link_that_goes_down_comes_back(llm: Provider, fault: dict[str, Any], byte: int | None):
    """No connection is accepted meanwhile, except by the admin API; then everything is as before."""
    at = {} if byte is None else {"at": {"byte": byte}}
    llm.put({"replies": [{"reply": REPLY, "fault": {**fault, **at, "times": 1}}]}, "falls")
    async with Client(llm, "anthropic", "falls") as client:
        got, how = await client.ask()
    assert (len(got), how) == (byte or 0, "fin")
    with pytest.raises(ConnectionRefusedError):
        async with Client(llm, "anthropic", "falls"):
            pass
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                async with Client(llm, "anthropic", "falls") as client:
                    assert (await client.ask())[1] == "whole"
                break
            except ConnectionRefusedError:
                await asyncio.sleep(0.02)
    first, second = llm.ledger("falls")
    assert (first["bytes_delivered"], first["ended"], second["ended"]) == (byte or 0, "cut", "complete")
    assert "refused" in first["fault"]["proof"]
