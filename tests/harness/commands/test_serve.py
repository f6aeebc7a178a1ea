"""`wedgehog serve`: the fake model on its own, with a script file whose lines may carry a fault."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from wedgehog.harness.commands.serve import fast_loop, serve
from wedgehog.harness.scenario.document import BadFileError

PATIENCE_S, SILENCE_S = 20.0, 0.3
SCRIPT = """\
replies:
  - {when: {user: weather}, reply: [{text: It is 21 degrees.}]}
  - {when: {user: busy}, error: {status: 429, retry_after: 2}}
  - {when: {user: overload}, reply: [{text: Hi}], fault: {do: {status: 529}}}
  - {when: {user: cut}, reply: [{text: Hi there}], fault: {do: {cut: fin}, at: {byte: 10}}}
  - {when: {user: reset}, reply: [{text: Hi there}], fault: {do: {cut: rst}, at: {byte: 10}}}
  - {when: {user: stall}, reply: [{text: Hi there}], fault: {do: {stall: forever}, at: {byte: 10}}}
  - {when: {user: half}, reply: [{text: Hi}, {text: there}], fault: {do: early_end, at: {event: 4}}}
  - {when: {user: limit}, reply: [{text: Hi there}], fault: {do: {max_tokens: 2}}}
  - {when: {user: pause}, reply: [{text: Hi there}], fault: {do: {stall: 0.2}, at: {byte: 10}}}
"""


@asynccontextmanager
async def serving(path: Path, **options: Any) -> AsyncIterator[tuple[str, int]]:
    """The printed address."""
    said: asyncio.Queue[str] = asyncio.Queue()
    task = asyncio.create_task(serve(path, "127.0.0.1", 0, **{"strict": True, "say": said.put_nowait, **options}))
    getting = asyncio.create_task(said.get())
    await asyncio.wait({task, getting}, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
    getting.cancel()
    if task.done():
        await task
    address = urlsplit(next(word for word in getting.result().split() if word.startswith("http")))
    try:
        yield str(address.hostname), int(address.port or 0)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def ask(address: tuple[str, int], text: str, silent_after: int | None = None, **more: Any) -> tuple[bytes, str]:
    """What comes, and how it ends: fin, rst, or silence after so many bytes of the body."""
    messages = [{"role": "user", "content": text}]
    body = json.dumps({"model": "m", "max_tokens": 100, "messages": messages, **more}).encode()
    reader, writer = await asyncio.open_connection(*address)
    head = "POST /v1/messages HTTP/1.1\r\nHost: x\r\nx-api-key: k\r\nanthropic-version: 2023-06-01\r\n"
    head += f"Content-Type: application/json\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    got = b""
    try:
        while True:
            silent = silent_after is not None and len(got.partition(b"\r\n\r\n")[2]) >= silent_after
            data = await asyncio.wait_for(reader.read(65536), SILENCE_S if silent else PATIENCE_S)
            if not data:
                return got, "fin"
            got += data
    except TimeoutError:
        return got, "silence"
    except ConnectionResetError:
        return got, "rst"
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., Path]:
    def write(text: str = SCRIPT) -> Path:
        path = tmp_path / "script.yaml"
        path.write_text(text)
        return path

    return write


async def test_a_script_is_served_at_the_address_that_is_said(script: Any):
    """The first fitting line answers, in the shape of the asked provider."""
    async with serving(script()) as address:
        good, _ = await ask(address, "what weather?")
        busy, _ = await ask(address, "are you busy")
        overload, _ = await ask(address, "overload")
    assert b"200 OK" in good and b"It is 21 degrees." in good
    assert b" 429 " in busy and b"retry-after: 2" in busy.lower()
    assert b" 529 " in overload and b"overloaded" in overload


@pytest.mark.parametrize(("text", "end"), [("cut", "fin"), ("reset", "rst"), ("stall", "silence")])
async def test_a_lines_wire_fault_strikes_its_reply_to_the_byte(script: Any, text: str, end: str):
    """Ten bytes of the body, then the fault; the next request gets it too, and other lines do not."""
    async with serving(script()) as address:
        for _ in range(2):
            got, how = await ask(address, text, 10 if end == "silence" else None)
            assert (len(got.partition(b"\r\n\r\n")[2]), how) == (10, end)
        assert b"It is 21 degrees." in (await ask(address, "weather"))[0]


async def test_a_lines_reply_fault_changes_what_is_said(script: Any):
    """A stream without its end, an answer at its limit; each ends as properly as any other."""
    async with serving(script()) as address:
        half, how = await ask(address, "half", stream=True)
        whole, _ = await ask(address, "weather", stream=True)
        limit, _ = await ask(address, "limit")
    assert how == "fin" and half.count(b"event: ") == 4 and half.endswith(b"0\r\n\r\n")
    assert b"message_stop" in whole and b"message_stop" not in half
    assert b'"stop_reason":"max_tokens"' in limit.replace(b" ", b"") and b'"Hi"' in limit


async def test_a_stall_that_ends_loses_nothing(script: Any):
    """The reply goes on after its time."""
    async with serving(script()) as address:
        got, how = await ask(address, "pause")
    assert how == "fin" and b"Hi there" in got


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{reply: [{text: a}], fault: {do: {stal: forever}}}", "no fault is called 'stal'"),
        ("{reply: [{text: a}], fault: {do: abort}}", "abort can't be injected into a reply of `serve`"),
        ("{reply: [{text: a}], fault: {do: refuse, at: {phase: connect}}}", "refuse can't be injected into a reply"),
        ("{reply: [{txt: a}]}", "script.yaml:2: "),
    ],
)
async def test_a_mistake_in_a_script_is_one_line_with_its_place(script: Any, line: str, said: str):
    """Before anything is served."""
    with pytest.raises(BadFileError) as caught:
        async with serving(script(f"replies:\n  - {line}\n")):
            pass
    assert said in str(caught.value) and "script.yaml:2" in str(caught.value)


async def test_a_bad_fault_is_told_by_its_own_line(script: Any):
    """Not by its reply's, and not by the file's first."""
    lines = ["replies:", "  - reply: [{text: a}]", "  - reply: [{text: b}]", "    fault:", "      at: {byte: 1}"]
    for word, line in (("      do: {cut: fan}", 6), ("      do: cut\n      tims: 2", 7)):
        with pytest.raises(BadFileError) as caught:
            async with serving(script("\n".join([*lines, word, ""]))):
                pass
        said = str(caught.value)
        assert f"script.yaml:{line}: " in said and "\n" not in said


def test_the_loop_is_uvloops_where_that_is_installed(monkeypatch: pytest.MonkeyPatch):
    """It is an extra: without it the fake is served by asyncio's own loop."""
    for missing in (False, True):
        if missing:
            monkeypatch.setitem(sys.modules, "uvloop", None)
        loop = fast_loop()
        loop.close()
        assert type(loop).__module__.startswith("uvloop") is not missing
