"""The pipe server: who may connect, and which report about a stop counts."""

import asyncio
from typing import Any

import pytest

from wedgehog.harness.network.relay import EmbeddedNetwork
from wedgehog.harness.stdio_proxy.session import Direction, StdioServer

PATIENCE_S = 20.0


class Recorder:
    """Records the pipes' events."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    async def opened(self, pipe: Any) -> None:
        self.events.append(pipe)

    async def closed(self, pipe: Any) -> None:
        self.events.append(pipe)

    def trouble(self, what: str) -> None:
        self.events.append(what)


@pytest.fixture
async def direction() -> Direction:
    """A direction that records what it would send."""
    said: list[tuple[Any, ...]] = []
    made = Direction("out", None, lambda *words: said.append(words))  # type: ignore[arg-type]
    made.said = said  # type: ignore[attr-defined]
    return made


@pytest.mark.parametrize("word", ["open wrong db 1 2 3", "open", "hello", "open wrong db 1 2", "\x80"])
async def test_a_wrong_secret_gets_no_link(word: str):
    """Every program on this machine can connect to a loopback port."""
    watcher = Recorder()
    async with EmbeddedNetwork() as network, StdioServer(network, lambda _: False, watcher) as server:
        host, port, _ = server.address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"{word}\n".encode("latin-1"))
        assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        writer.close()
        assert watcher.events == [] and network._links == []


async def test_a_connection_that_ends_early_leaves_no_link_open():
    """Its links are closed too."""
    watcher = Recorder()
    async with EmbeddedNetwork() as network, StdioServer(network, lambda _: False, watcher) as server:
        host, port, secret = server.address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"open {secret} db 1 2 3\n".encode())
        links = (await asyncio.wait_for(reader.readline(), PATIENCE_S)).split()
        assert links[0] == b"links" and len(links) == 3
        writer.close()
        async with asyncio.timeout(PATIENCE_S):
            while network._links[0]._server is not None:
                await asyncio.sleep(0.005)
        assert watcher.events == []


async def test_only_the_reply_to_the_last_request_counts(direction: Direction):
    """An older reply may be about a stop that was removed meanwhile."""
    first = direction.stop(10)
    direction.go(first)
    second = direction.stop()
    assert direction.said == [("until", "out", 10, 1), ("until", "out", "none", 2), ("until", "out", "now", 3)]
    direction.stopped(10, 1)
    assert not second.reached.done()
    direction.stopped(25, 3)
    assert second.reached.result() == 25


async def test_the_nearest_of_several_stops_is_sent_and_each_is_reached_at_its_own_byte(direction: Direction):
    """A request for a later byte goes on waiting."""
    far, near = direction.stop(20), direction.stop(10)
    assert direction.said[-1] == ("until", "out", 10, 2)
    direction.stopped(10, 2)
    assert near.reached.result() == 10 and not far.reached.done()
    direction.go(near)
    assert direction.said[-1] == ("until", "out", 20, 3)


async def test_a_stop_on_a_pipe_that_closes_is_never_reached(direction: Direction):
    """The wait ends."""
    stop = direction.stop(10)
    direction.close(3)
    assert stop.reached.result() is None


async def test_a_stop_that_comes_after_the_pipe_has_closed_is_never_reached_either(direction: Direction):
    """A pipe may close before a fault is armed on it; the wait must end, or it blocks others."""
    direction.close(3)
    assert direction.stop(10).reached.result() is None
    async with asyncio.timeout(PATIENCE_S), direction.held() as where:
        assert where is None


async def test_a_pipe_that_ends_while_it_is_opened_is_reported_as_opened_and_closed():
    """It opens and closes at almost the same time; both events are reported, in that order."""
    watcher = Recorder()
    async with EmbeddedNetwork() as network, StdioServer(network, lambda _: False, watcher) as server:
        host, port, secret = server.address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"open {secret} db 1 1 2\n".encode())
        await asyncio.wait_for(reader.readline(), PATIENCE_S)
        writer.write(b"child 2 3 4\nexit 0\nclosed 0 0\n")
        async with asyncio.timeout(PATIENCE_S):
            while len(watcher.events) < 2:
                await asyncio.sleep(0.005)
        writer.close()
    first, second = watcher.events
    assert first is second and first.status == 0
