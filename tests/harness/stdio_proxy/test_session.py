"""The pipe server: who may call it, and which word about stops counts."""

import asyncio
from typing import Any

import pytest

from wedgehog.harness.network.relay import EmbeddedNetwork
from wedgehog.harness.stdio_proxy.session import Direction, StdioServer


class Nobody:
    """Hears of pipes."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    async def opened(self, pipe: Any) -> None:
        self.heard.append(pipe)

    async def closed(self, pipe: Any) -> None:
        self.heard.append(pipe)

    def trouble(self, what: str) -> None:
        self.heard.append(what)


@pytest.fixture
async def direction() -> Direction:
    """One that only notes what it would say."""
    said: list[tuple[Any, ...]] = []
    made = Direction("out", None, lambda *words: said.append(words))  # type: ignore[arg-type]
    made.said = said  # type: ignore[attr-defined]
    return made


@pytest.mark.parametrize("word", ["open wrong db 1 2 3", "open", "hello", "open wrong db 1 2", "\x80"])
async def test_who_does_not_know_the_secret_gets_no_link(word: str):
    """Anybody on this machine can call a loopback port."""
    watcher = Nobody()
    async with EmbeddedNetwork() as network, StdioServer(network, lambda _: False, watcher) as server:
        host, port, _ = server.address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"{word}\n".encode("latin-1"))
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()
        assert watcher.heard == [] and network._links == []


async def test_a_caller_that_leaves_in_the_middle_leaves_nothing_behind():
    """Its links are closed with it."""
    watcher = Nobody()
    async with EmbeddedNetwork() as network, StdioServer(network, lambda _: False, watcher) as server:
        host, port, secret = server.address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"open {secret} db 1 2 3\n".encode())
        links = (await asyncio.wait_for(reader.readline(), 5)).split()
        assert links[0] == b"links" and len(links) == 3
        writer.close()
        async with asyncio.timeout(5):
            while network._links[0]._port._server is not None:
                await asyncio.sleep(0.005)
        assert watcher.heard == []


async def test_only_the_answer_to_the_last_word_counts(direction: Direction):
    """An older one may tell of a stop that it has left since."""
    first = direction.stop(10)
    direction.go(first)
    second = direction.stop()
    assert direction.said == [("until", "out", 10, 1), ("until", "out", "none", 2), ("until", "out", "now", 3)]
    direction.stands(10, 1)
    assert not second.reached.done()
    direction.stands(25, 3)
    assert second.reached.result() == 25


async def test_of_several_stops_the_nearest_is_told_and_each_is_reached_at_its_own(direction: Direction):
    """Whoever waits further on waits on."""
    far, near = direction.stop(20), direction.stop(10)
    assert direction.said[-1] == ("until", "out", 10, 2)
    direction.stands(10, 2)
    assert near.reached.result() == 10 and not far.reached.done()
    direction.go(near)
    assert direction.said[-1] == ("until", "out", 20, 3)


async def test_a_stop_on_a_pipe_that_closes_is_never_reached(direction: Direction):
    """And nobody waits for it for ever."""
    stop = direction.stop(10)
    direction.close(3)
    assert stop.reached.result() is None


async def test_a_stop_that_comes_after_the_pipe_has_closed_is_never_reached_either(direction: Direction):
    """Whoever strikes may be slower than a pipe that goes: it must not wait for ever, and keep others waiting."""
    direction.close(3)
    assert direction.stop(10).reached.result() is None
    async with asyncio.timeout(5), direction.held() as where:
        assert where is None


async def test_a_pipe_that_is_gone_before_it_was_let_go_is_told_from_its_beginning_to_its_end():
    """It came and went in one breath: opened, then closed, and at once."""
    watcher = Nobody()
    async with EmbeddedNetwork() as network, StdioServer(network, lambda _: False, watcher) as server:
        host, port, secret = server.address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"open {secret} db 1 1 2\n".encode())
        await asyncio.wait_for(reader.readline(), 5)
        writer.write(b"child 2 3 4\nexit 0\nclosed 0 0\n")
        async with asyncio.timeout(5):
            while len(watcher.heard) < 2:
                await asyncio.sleep(0.005)
        writer.close()
    first, second = watcher.heard
    assert first is second and first.status == 0
