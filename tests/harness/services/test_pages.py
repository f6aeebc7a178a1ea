"""The page server: pages, redirects, delays and stalls; each request is reported."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from wedgehog.harness.scenario.scenario_keys import PageConfig
from wedgehog.harness.services.filler import padded
from wedgehog.harness.services.pages import PageServer

PAGES = {
    "/one": {"text": "It rained."},
    "/big": {"text": "It rained. ", "bytes": 28000},
    "/moved": {"redirect": "/one"},
    "/broken": {"text": "oops", "status": 500},
    "/late": {"text": "late", "delay_s": 60},
    "/stalled": {"stall": "forever"},
    "/drips": {"text": "It rains", "drip_s": 3},
}


@pytest.fixture
async def server(manual_clock: Any) -> AsyncIterator[Any]:
    asked: list[tuple[str, int]] = []
    pages = {path: PageConfig.model_validate(words) for path, words in PAGES.items()}
    async with PageServer(pages, 30, manual_clock, lambda *it: asked.append(it)) as found:
        found.heard = asked  # type: ignore[attr-defined]
        yield found


async def get(server: Any, path: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of one page."""
    reader, writer = await asyncio.open_connection(*server.address)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    try:
        head, _, body = (await asyncio.wait_for(reader.read(), 10)).partition(b"\r\n\r\n")
    finally:
        writer.close()
        await writer.wait_closed()
    lines = head.decode().split("\r\n")
    return int(lines[0].split()[1]), dict(line.split(": ", 1) for line in lines[1:]), body


@pytest.mark.parametrize(
    ("path", "status", "body"), [("/one", 200, b"It rained."), ("/broken", 500, b"oops"), ("/no", 404, b"no such page")]
)
async def test_a_page_has_its_words_and_its_status(server: Any, path: str, status: int, body: bytes):
    """Each request is reported."""
    assert (await get(server, path))[::2] == (status, body)
    assert server.heard == [(path, status)]


async def test_a_page_is_as_large_as_it_says(server: Any):
    """To the byte, beginning with its words."""
    _, _, body = await get(server, "/big")
    assert len(body) == 28000 and body.startswith(b"It rained. ")


async def test_a_redirect_names_its_target(server: Any):
    """The reader follows it or not."""
    status, headers, _ = await get(server, "/moved")
    assert (status, headers["Location"], server.heard) == (302, "/one", [("/moved", 302)])


async def test_a_delay_is_the_storys_and_passes_before_the_first_byte(server: Any, manual_clock: Any):
    """Sixty seconds at thirtyfold speed are two."""
    getting = asyncio.create_task(get(server, "/late"))
    while not server.heard:
        await asyncio.sleep(0.005)
    await manual_clock.advance(1.9)
    assert not getting.done()
    await manual_clock.advance(0.2)
    assert (await getting)[2] == b"late"


async def test_a_page_that_stalls_sends_nothing_and_does_not_keep_the_server_from_closing(server: Any):
    """Leaving the fixture ends it."""
    getting = asyncio.create_task(get(server, "/stalled"))
    while not server.heard:
        await asyncio.sleep(0.005)
    await asyncio.sleep(0.05)
    assert not getting.done()
    getting.cancel()
    await asyncio.gather(getting, return_exceptions=True)


@pytest.mark.parametrize(("text", "size", "length"), [("abc", 0, 3), ("abc", 2, 3), ("abc", 100, 100), ("ä", 10, 10)])
def test_padding_never_shortens(text: str, size: int, length: int):
    """Sizes are bytes."""
    assert len(padded(text, size).encode()) == length
    assert padded(text, size).startswith(text)


async def test_a_page_may_begin_and_never_end(server: Any, manual_clock: Any):
    """Its words come at once, and then a byte each time."""
    reader, writer = await asyncio.open_connection(*server.address)
    writer.write(b"GET /drips HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b"It rains" in await asyncio.wait_for(reader.readuntil(b"It rains"), 10)
    for _ in range(3):
        await manual_clock.advance(0.1)
        assert await asyncio.wait_for(reader.readuntil(b"."), 10)
    writer.close()
    await writer.wait_closed()
