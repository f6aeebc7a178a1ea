"""Our database behind its link, over both networks: a query is stalled, cut or refused where the trigger says."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.parity.conftest import PATIENCE_S
from wedgehog.fake_llm.script.position import Positions
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.inject.injector import Injector
from wedgehog.harness.network.base import Network
from wedgehog.harness.record.clock import WallClock
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.service import StoreAsked
from wedgehog.harness.record.history import History
from wedgehog.harness.run.run_services import Links, RunServices
from wedgehog.harness.scenario.model import Scenario

SILENCE_S = 0.5


class Client:
    """A client with one connection, which it opens again when it has lost it."""

    def __init__(self, url: str) -> None:
        self.host, _, self.port = url.removeprefix("tcp://").partition(":")
        self.writer: asyncio.StreamWriter | None = None

    async def ask(self, sql: str, struck: Callable[[], Awaitable[None]] | None = None) -> Any:
        """The rows, or in one word what became of them; silence counts once the fault has `struck`."""
        try:
            if self.writer is None:
                self.reader, self.writer = await asyncio.open_connection(self.host, int(self.port))
            self.writer.write(json.dumps({"sql": sql}).encode() + b"\n")
            if struck is not None:
                await struck()
            line = await asyncio.wait_for(self.reader.readline(), PATIENCE_S if struck is None else SILENCE_S)
        except TimeoutError:
            return self.lost("silence")
        except ConnectionRefusedError:
            return self.lost("refused")
        except ConnectionResetError:
            return self.lost("reset")
        return json.loads(line)["rows"] if line.endswith(b"\n") else self.lost(f"end after {len(line)} bytes")

    def lost(self, how: str) -> str:
        if self.writer is not None:
            self.writer.close()
            self.writer = None
        return how


@contextlib.asynccontextmanager
async def opened(network: Network, fault: dict[str, Any]) -> AsyncIterator[tuple[History, Client]]:
    """A client of a run's database, in turn 1 under one fault."""
    told = {"name": "a", "why": "w", "turns": [{"user": "x"}], "store": {"latency_s": 0.01}}
    scenario = Scenario.model_validate(told | {"faults": [{"link": "store:db", **fault}]})
    agent = AgentSpec(name="a", wire="anthropic", command=("x", "{message}"))
    history, positions = History(WallClock()), Positions("wbcdf")
    clock, links = WallClock(), Links(network, scenario.plan(1))
    injector = Injector(scenario.plan(1), links, history, clock)
    positions.begin(1, "mk1q")
    async with RunServices(scenario, agent, links, injector, history, positions, clock, 1.0, Path(), "", Path()):
        await injector.before_turn(1)
        client = Client(links.url("store:db", "tcp") or "")
        yield history, client
        client.lost("")
        await injector.after_turn(1)
        await injector.close()
        assert not injector.broken.is_set()


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ({"at": {"query": 2}, "do": {"stall": "forever"}}, [[[1]], "silence", [[3]]]),
        ({"at": {"query": 2}, "do": {"cut": "fin"}}, [[[1]], "end after 0 bytes", [[3]]]),
        ({"at": {"query": 2, "byte": 7}, "do": {"cut": "fin"}}, [[[1]], "end after 7 bytes", [[3]]]),
        ({"at": {"query": 2}, "do": {"cut": "rst"}}, [[[1]], "reset", [[3]]]),
        ({"at": {"query": 2}, "do": {"stall": 0.2}}, [[[1]], [[2]], [[3]]]),
        ({"at": {"phase": "connect"}, "do": "refuse"}, ["refused"] * 3),
        ({"at": {"query": 2}, "do": {"latency": 0.1}}, [[[1]], [[2]], [[3]]]),
    ],
    ids=lambda it: json.dumps(it)[:60],
)
async def test_a_query_meets_its_fault_and_the_next_one_does_not(
    network: Network, fault: dict[str, Any], expected: list[Any]
):
    """Counted in the turn; a refused query was never asked."""
    async with opened(network, fault) as (history, client):

        async def struck() -> None:
            async with asyncio.timeout(PATIENCE_S):
                while not list(history.of(FaultFired)):
                    await asyncio.sleep(0.01)

        waits = [struck if it == "silence" else None for it in expected]
        assert [await client.ask(f"SELECT {n}", wait) for n, wait in enumerate(waits, 1)] == expected
        await struck()
    name = fault["do"] if isinstance(fault["do"], str) else next(iter(fault["do"]))
    assert [event.name for event in history.of(FaultFired)] == [name]
    asked = [event.number for event in history.of(StoreAsked)]
    assert asked == ([] if name == "refuse" else [1, 2, 3])
