"""The same scenarios live and in virtual time: clients see the same bytes and ends, and the histories say the same."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from tests.parity.worlds.clients import CLIENTS, Client
from tests.parity.worlds.compare import differences, untold
from tests.parity.worlds.plans import all_examples, scenarios, spots, why_only_live
from tests.parity.worlds.play import SLOWER, Case, Played, open_talk, play_live, play_simulated, slower
from wedgehog.harness.faults.base import registered
from wedgehog.harness.network.base import Network
from wedgehog.harness.testing.faults import examples

THOROUGH = CLIENTS[:2]
"""One for each library: wire faults at all places. The rest is played at few places, because it costs seconds."""
OpenNetwork = Callable[[str], AbstractAsyncContextManager[Network]]


@pytest.fixture(autouse=True)
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wedgehog.harness.agents.sessions.open_agent", open_talk)


def cases(client: Client) -> tuple[Case, ...]:
    faults = all_examples()
    few = [client not in THOROUGH or fault.family == "reply" for fault in faults]
    return tuple(
        (it, client) for fault, rare in zip(faults, few, strict=True) for it in scenarios(fault, client, few=rare)
    )


def live(cases: tuple[Case, ...], network: str, networks: OpenNetwork, folder: Path, at_once: int = 12) -> list[Played]:
    async def played() -> list[Played]:
        async with networks(network) as opened:
            return await play_live(cases, opened, folder, at_once)

    return asyncio.run(played())


def compared(cases: tuple[Case, ...], network: str, networks: OpenNetwork, folder: Path) -> list[str]:
    """All that differs between a live network and the simulated one, also when it is played again and slower."""
    real, simulated = live(cases, network, networks, folder), play_simulated(cases, folder)
    doubtful = [row for row in zip(cases, real, simulated, strict=True) if wrong(*row[1:])]
    for times, at_once in SLOWER.items() if doubtful else ():
        again = live(tuple(slower(case, times) for case, *_ in doubtful), network, networks, folder, at_once)
        rows = [(case, one, two) for one, (case, _, two) in zip(again, doubtful, strict=True)]
        doubtful = [row for row in rows if wrong(*row[1:])]
    return [line for _, one, two in doubtful for line in wrong(one, two)]


def wrong(one: Played, two: Played) -> list[str]:
    """What differs, and what one of the histories says otherwise than its client saw it."""
    return [*differences(one, two), *untold(one), *untold(two)]


@pytest.mark.parametrize("client", CLIENTS, ids=str)
def test_a_client_sees_the_same_live_and_in_virtual_time(client: Client, networks: OpenNetwork, tmp_path: Path):
    """Status, headers, bytes, the end and the exception; the events of its calls, the verdicts and the ledger."""
    assert compared(cases(client), "embedded", networks, tmp_path) == []


def test_a_client_sees_the_same_through_toxiproxy_and_in_virtual_time(networks: OpenNetwork, tmp_path: Path):
    """The faults of bytes, at few places: the exact bytes through Toxiproxy have a suite of their own."""
    client = CLIENTS[0]
    wire = tuple((it, client) for fault in all_examples("wire") for it in scenarios(fault, client, few=True))
    assert compared(wire, "toxiproxy", networks, tmp_path) == []


def test_every_fault_is_compared_or_refused_by_the_simulated_world():
    for cls in registered().values():
        for fault in examples(cls):
            assert spots(fault, streams=True) or why_only_live(fault), fault
