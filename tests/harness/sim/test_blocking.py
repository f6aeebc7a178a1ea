"""Blocking clients and `time.sleep` in virtual time, without a thread."""

import asyncio
import socket
import ssl
import time
import urllib.request
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.harness.sim.test_clients import WORDS, words_in
from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.faults.wire.cut import Cut, Refuse
from wedgehog.harness.faults.wire.stall import Stall
from wedgehog.harness.network.base import WholeLink
from wedgehog.harness.scenario.trigger import AtReply
from wedgehog.harness.sim import blocking
from wedgehog.harness.sim.blocking import BlockingError, run_blocking
from wedgehog.harness.sim.blocking_socket import blocking_connections
from wedgehog.harness.sim.errors import SimUnsupportedError
from wedgehog.harness.sim.network import SimNetwork
from wedgehog.harness.sim.world import SimWorld, simulate
from wedgehog.harness.testing.fault_checks import AT
from wedgehog.harness.testing.fault_trial import Bench

if TYPE_CHECKING:
    from tests.harness.sim.blocking_clients import Client

pytest.importorskip("greenlet")
TIMER_S = 600.0


CLIENTS = ("httpx", "openai", "anthropic", "requests", "urllib")


@pytest.fixture(scope="module")
def world() -> Iterator[SimWorld]:
    with SimWorld() as opened:
        yield opened


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> "Client":
    """Imported here and not when tests are collected: it takes seconds, and each worker collects all tests."""
    from tests.harness.sim import blocking_clients

    assert tuple(blocking_clients.CLIENTS) == CLIENTS, "each client is tested"
    return blocking_clients.CLIENTS[request.param]


async def asked(client: "Client", address: tuple[str, int]) -> str:
    with blocking_connections():
        return words_in(await run_blocking(client.ask, "http://{}:{}".format(*address)))


def failed(world: SimWorld, client: "Client", fault: WireFault, error: type[Exception]) -> float:
    """How long the client took to fail under a fault in the middle of its reply."""

    async def main() -> float:
        async with SimNetwork() as network, Bench(network, fault).trial(AtReply(byte=AT)) as trial:
            began = time.monotonic()
            with pytest.raises(error):
                await asked(client, trial.links["llm"].address)
            return time.monotonic() - began

    return world.run(main)


def test_a_streamed_reply_arrives(world: SimWorld, client: "Client"):
    async def main() -> str:
        async with SimNetwork() as network, Bench(network, Cut()).trial(None) as trial:
            return await asked(client, trial.links["llm"].address)

    assert world.run(main) == WORDS


def test_a_stall_lasts_until_the_clients_own_timer(world: SimWorld, client: "Client"):
    assert failed(world, client, Stall(), client.on_timeout) == pytest.approx(TIMER_S, abs=1)


def test_an_rst_is_the_clients_own_connection_error(world: SimWorld, client: "Client"):
    assert failed(world, client, Cut("rst"), client.on_reset) < 1


def test_a_closed_port_is_the_clients_own_connection_error(world: SimWorld, client: "Client"):
    async def main() -> None:
        async with SimNetwork() as network, Bench(network, Refuse()).trial(None) as trial:
            await trial.links["llm"].strike(Refuse(), WholeLink())
            with pytest.raises(client.on_refusal):
                await asked(client, trial.links["llm"].address)

    world.run(main)


def test_a_sleep_takes_virtual_time_and_lets_other_tasks_run():
    """The function waits ten minutes; a task beside it counts them."""

    def function() -> str:
        time.sleep(600)
        return "slept"

    async def minutes(passed: list[int]) -> None:
        for minute in range(20):
            await asyncio.sleep(60)
            passed.append(minute)

    async def main() -> tuple[str, int]:
        passed: list[int] = []
        beside = asyncio.create_task(minutes(passed))
        answer = await run_blocking(function)
        beside.cancel()
        return answer, len(passed)

    answer, passed = simulate(main)
    assert answer == "slept" and passed in (9, 10)


def test_a_cancellation_interrupts_the_function_where_it_waits():
    """As Ctrl-C does in a process."""
    seen: list[type[BaseException]] = []

    def function() -> None:
        try:
            time.sleep(600)
        except BaseException as error:
            seen.append(type(error))
            raise

    async def main() -> bool:
        call = asyncio.create_task(run_blocking(function))
        await asyncio.sleep(1)
        call.cancel()
        await asyncio.wait([call])
        return call.cancelled()

    assert simulate(main) and seen == [KeyboardInterrupt]


def test_two_functions_wait_beside_each_other():
    def function(seconds: int) -> int:
        time.sleep(seconds)
        return seconds

    async def main() -> tuple[list[int], float]:
        began = asyncio.get_running_loop().time()
        slept = await asyncio.gather(run_blocking(function, 60), run_blocking(function, 90))
        return slept, asyncio.get_running_loop().time() - began

    assert simulate(main) == ([60, 90], 90)


def test_a_connection_of_other_code_is_still_refused():
    """Not in a blocking function: there the loop itself would be blocked."""

    async def main() -> None:
        with blocking_connections():
            urllib.request.urlopen("http://127.0.0.1:9", timeout=TIMER_S)

    with pytest.raises(SimUnsupportedError):
        simulate(main)


def test_tls_of_a_blocking_client_is_refused_and_the_live_world_named():
    """An SSL context asks our socket what it is; the answer is no AttributeError."""

    port = 8080

    def ask() -> None:
        with socket.create_connection(("127.0.0.1", port)) as plain:
            ssl.create_default_context().wrap_socket(plain, server_hostname="localhost")

    async def main() -> None:
        async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", port):
            with blocking_connections():
                await run_blocking(ask)

    with pytest.raises(SimUnsupportedError, match="TLS of a blocking client is not simulated: it needs the live world"):
        simulate(main)


def test_without_greenlet_one_line_names_what_is_missing_and_the_live_world(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(blocking, "GREENLETS", None)

    def answer() -> None:
        raise AssertionError("it was called")

    async def main() -> None:
        await run_blocking(answer)

    with pytest.raises(BlockingError) as refused:
        simulate(main)
    assert str(refused.value) == (
        "answer, which is not `async def`, without greenlet (`pip install 'wedgehog[sync]'`) is not simulated: "
        "it needs the live world (`--world live`)"
    )
