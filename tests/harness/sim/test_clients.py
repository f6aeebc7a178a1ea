"""Unmodified clients against the unmodified fake provider, through the relay, in virtual time."""

import asyncio
import ssl
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import trustme

from wedgehog.fake_llm.server import FakeLLM
from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.faults.wire.cut import Cut
from wedgehog.harness.faults.wire.stall import Stall
from wedgehog.harness.network.ports import HOST
from wedgehog.harness.record.events.call import HungUp
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.scenario.fault_plan import FaultPlan
from wedgehog.harness.scenario.trigger import AtReply
from wedgehog.harness.sim.clock import SimClock
from wedgehog.harness.sim.network import SimNetwork
from wedgehog.harness.sim.world import SimWorld
from wedgehog.harness.testing.fault_checks import AT
from wedgehog.harness.testing.fault_trial import Bench, Trial

if TYPE_CHECKING:
    from tests.harness.sim.clients import Client

CLIENTS = ("aiohttp", "httpx", "openai", "anthropic", "pydantic-ai")
WORDS = "The lighthouse keeper counted his otters."


@pytest.fixture(scope="module")
def world() -> Iterator[SimWorld]:
    with SimWorld() as opened:
        yield opened


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> "Client":
    """Imported here and not when tests are collected: it takes seconds, and each worker collects all tests."""
    from tests.harness.sim import clients

    assert tuple(clients.CLIENTS) == CLIENTS, "each client is tested"
    return clients.CLIENTS[request.param]


def words_in(said: str) -> str:
    """The words of a reply; aiohttp and httpx return the event stream."""
    pieces = [part.partition('"')[0] for part in said.split('"content":"')[1:]]
    return "".join(pieces) or said


async def asked(client: "Client", trial: Trial) -> str:
    host, port = trial.links["llm"].address
    return await client.ask(f"http://{host}:{port}", None)


def test_a_streamed_reply_arrives(world: SimWorld, client: "Client"):
    async def main() -> str:
        async with SimNetwork() as network, Bench(network, Cut()).trial(None) as trial:
            return words_in(await asked(client, trial))

    assert world.run(main) == WORDS


def failed(world: SimWorld, client: "Client", fault: WireFault, error: type[Exception]) -> tuple[float, Trial]:
    """How long the client took to fail under a fault in the middle of its reply, and the run."""

    async def main() -> tuple[float, Trial]:
        async with SimNetwork() as network, Bench(network, fault).trial(AtReply(byte=AT)) as trial:
            began = asyncio.get_running_loop().time()
            with pytest.raises(error):
                await asked(client, trial)
            took = asyncio.get_running_loop().time() - began
            await trial.end()
            return took, trial

    return world.run(main)


def test_a_stall_lasts_until_the_clients_own_timer(world: SimWorld, client: "Client"):
    took, trial = failed(world, client, Stall(), client.on_timeout)
    assert took == pytest.approx(client.timer_s, abs=1)
    assert len(list(trial.history.of(HungUp))) == 1


def test_an_rst_is_the_clients_own_connection_error(world: SimWorld, client: "Client"):
    took, trial = failed(world, client, Cut("rst"), client.on_reset)
    assert took < 1
    (fired,) = trial.history.of(FaultFired)
    assert "then rst" in fired.proof


AUTHORITY = trustme.CA()


def test_a_streamed_reply_arrives_over_tls(world: SimWorld, client: "Client"):
    """The handshake is asyncio's or httpcore's own."""

    async def main() -> str:
        serves, trusts = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
        AUTHORITY.issue_cert("localhost").configure_cert(serves)
        AUTHORITY.configure_trust(trusts)
        trial = Trial(FaultPlan(()), SimClock())
        async with SimNetwork() as network, FakeLLM(trial, trial, listens=False) as llm:
            server = await asyncio.get_running_loop().create_server(llm.connection, HOST, 0, ssl=serves)
            trial.links["llm"] = link = await network.open_link("llm", server.sockets[0].getsockname(), resets=False)
            said = await client.ask(f"https://localhost:{link.address[1]}", trusts)
            await trial.injector.close()
            server.close()
            return words_in(said)

    assert world.run(main) == WORDS
