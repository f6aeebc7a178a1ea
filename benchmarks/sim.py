"""How many simulated scenarios a processor plays in a second: `python -m benchmarks.sim`.

A scenario takes 794 virtual seconds: an agent makes ten streamed calls through the relay. Four replies stall until its
timer of 180 s, two requests get 429 with `Retry-After: 30`, one reply is reset, one ends early; the agent tries again.
The injector arms every fault, and the recorder writes the history, as in a run. Then every invariant judges it.

`looptime` plays the same on real sockets of the loopback, with the embedded relay: it moves the clock of asyncio's own
loop when nothing is ready. Both take turns, so that other load on the machine affects both.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import platform
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.gauge import machine, write
from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.reply import Answer, Failure, Reply, Text
from wedgehog.fake_llm.server import FakeLLM
from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.faults.wire.cut import Cut
from wedgehog.harness.faults.wire.stall import Stall
from wedgehog.harness.invariants import check, known
from wedgehog.harness.network.base import Network
from wedgehog.harness.network.relay import EmbeddedNetwork
from wedgehog.harness.record.clock import Clock
from wedgehog.harness.record.events.turn import StimulusGiven, TurnEnded
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.scenario.fault_plan import FaultPlan, PlannedFault
from wedgehog.harness.scenario.trigger import AtReply
from wedgehog.harness.sim.byte_stream import ByteStreamEnd
from wedgehog.harness.sim.clock import SimClock
from wedgehog.harness.sim.net import Net
from wedgehog.harness.sim.network import SimNetwork
from wedgehog.harness.sim.world import SimWorld
from wedgehog.harness.testing.fault_trial import Trial

TIMER_S: Final = 180.0
WAIT_S: Final = 30.0
CALLS: Final = 10
FAULTS: Final[dict[int, WireFault]] = {
    2: Stall(),
    4: Stall(),
    7: Cut("rst"),
    9: Stall(),
    12: Cut("fin"),
    15: Stall(),
}
"""By the number of the request."""
TOO_MANY: Final = {5, 10}
REPLY: Final = Reply((Text("It is noon in Oslo.", pace_ms=250),))
MESSAGES: Final[Any] = [{"role": "user", "content": "Hi"}]
ANSWERED: Final = TurnEnded(
    turn=1, ended="by itself", answer="It is noon in Oslo.", error="", exit_code=0, status=None, raised=None
)
BODY: Final = {"model": "m", "stream": True, "messages": MESSAGES}


class RefusedError(Exception):
    """The provider said 429."""


def refuse(status: int) -> None:
    """Raise RefusedError for 429."""
    if status == 429:
        raise RefusedError


class Scenario(Trial):
    """The provider's replies by the number of the request."""

    def answer(self, call: int, conversation: Conversation) -> Answer:
        """429 or a reply."""
        return Failure(429, retry_after=WAIT_S) if call in TOO_MANY else REPLY


Ask = Callable[[], Awaitable[object]]


async def ten_calls(ask: Ask, retries: tuple[type[Exception], ...]) -> list[str]:
    """Make ten calls; try again after each error, and return what went wrong."""
    wrong = []
    for _ in range(CALLS):
        while True:
            try:
                await ask()
                break
            except RefusedError:
                wrong.append("429")
                await asyncio.sleep(WAIT_S)
            except retries as error:
                wrong.append(type(error).__name__)
    return wrong


async def on_aiohttp(url: str) -> list[str]:
    """An agent on aiohttp."""
    import aiohttp

    async def ask() -> None:
        async with client.post(f"{url}/v1/chat/completions", json=BODY, headers={"authorization": "Bearer k"}) as reply:
            refuse(reply.status)
            await reply.read()

    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(sock_read=TIMER_S)) as client:
        return await ten_calls(ask, (TimeoutError, aiohttp.ClientError))


async def on_httpx(url: str) -> list[str]:
    """An agent on httpx."""
    import httpx

    async def ask() -> None:
        path, key = f"{url}/v1/chat/completions", {"authorization": "Bearer k"}
        async with client.stream("POST", path, json=BODY, headers=key) as reply:
            refuse(reply.status_code)
            await reply.aread()

    async with httpx.AsyncClient(timeout=TIMER_S) as client:
        return await ten_calls(ask, (httpx.TransportError,))


async def on_openai(url: str) -> list[str]:
    """An agent on openai."""
    import openai

    async def ask() -> None:
        try:
            stream = await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        except openai.RateLimitError:
            raise RefusedError from None
        async for _ in stream:
            pass

    async with openai.AsyncOpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0, timeout=TIMER_S) as client:
        return await ten_calls(ask, (openai.APIConnectionError,))


async def on_anthropic(url: str) -> list[str]:
    """An agent on anthropic."""
    import anthropic
    import httpx2

    async def ask() -> None:
        try:
            async with client.messages.stream(model="m", max_tokens=99, messages=MESSAGES) as stream:
                await stream.get_final_message()
        except anthropic.RateLimitError:
            raise RefusedError from None

    async with anthropic.AsyncAnthropic(api_key="k", base_url=url, max_retries=0, timeout=TIMER_S) as client:
        return await ten_calls(ask, (anthropic.APIConnectionError, httpx2.TransportError))


async def on_pydantic_ai(url: str) -> list[str]:
    """An agent on pydantic-ai, over openai."""
    import openai
    from pydantic_ai import Agent
    from pydantic_ai.exceptions import ModelAPIError
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async def ask() -> None:
        try:
            async with agent.run_stream("Hi") as reply:
                await reply.get_output()
        except ModelAPIError as error:
            refuse(getattr(error, "status_code", 0))
            raise

    async with openai.AsyncOpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0, timeout=TIMER_S) as client:
        agent = Agent(OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client)))
        return await ten_calls(ask, (ModelAPIError,))


AGENTS: Final[dict[str, Callable[[str], Awaitable[list[str]]]]] = {
    "aiohttp": on_aiohttp,
    "httpx": on_httpx,
    "openai": on_openai,
    "anthropic": on_anthropic,
    "pydantic-ai": on_pydantic_ai,
}


async def play(agent: str) -> tuple[list[str], History, float]:
    """Play the scenario: what went wrong for the agent, the history, and the virtual seconds that it took."""
    return await play_on(SimNetwork(), SimClock(), agent)


async def play_on(opens: Network, clock: Clock, agent: str) -> tuple[list[str], History, float]:
    """Play the scenario on a network."""
    trial = Scenario(FaultPlan(tuple(_planned(*item) for item in FAULTS.items())), clock)
    async with opens as network, FakeLLM(trial, trial, clock=clock) as llm:
        link = trial.links["llm"] = await network.open_link("llm", (llm.host, llm.port), resets=True)
        trial.history.add(StimulusGiven(turn=1, stimulus="user", marker="", nonce="", text="Hi"))
        await trial.injector.before_turn(1)
        wrong = await AGENTS[agent]("http://{}:{}".format(*link.address))
        took_s = clock.now()
        trial.history.add(ANSWERED)
        await trial.end()
        await trial.injector.close()
    return wrong, trial.history.seal(), took_s


def _planned(call: int, fault: WireFault) -> PlannedFault:
    return PlannedFault("llm", AtReply(attempt=call, byte=150), fault, 1)


def digest(world: SimWorld, agent: str, seed: int = 0) -> str:
    """A hash of every byte on the simulated network with its time, of the history, and of what the agent saw."""
    net, seen = Net(), hashlib.sha256()

    def observe(now: float, label: str, part: bytes | ByteStreamEnd) -> None:
        seen.update(f"{now!r} {label} {part!r}\n".encode())

    net.observe = observe
    wrong, history, took_s = world.run(lambda: play(agent), seed=seed, net=net)
    seen.update(repr((wrong, [event.as_json() for event in history.events], took_s)).encode())
    return seen.hexdigest()


def in_sim(world: SimWorld, agent: str) -> Callable[[], list[Verdict]]:
    """Return a function that plays and judges one scenario in the simulated world."""
    return lambda: judge(world.run(lambda: play(agent))[1])


def on_looptime(agent: str) -> Callable[[], list[Verdict]]:
    """Return a function that plays and judges one scenario with looptime on the loopback."""
    import looptime

    def played() -> list[Verdict]:
        loop = looptime.new_event_loop(start=0)
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            return judge(runner.run(_on_loopback(agent))[1])

    return played


async def _on_loopback(agent: str) -> tuple[list[str], History, float]:
    return await play_on(EmbeddedNetwork(), SimClock(), agent)


def judge(history: History) -> list[Verdict]:
    """Ask every invariant."""
    return [check(name, history) for name, it in known().items() if not it.asked]


def main() -> None:
    """Measure each agent, and write a table."""
    told = argparse.ArgumentParser(description=__doc__)
    told.add_argument("agents", nargs="*", default=list(AGENTS))
    told.add_argument("--seconds", type=float, default=1.0, help="processor time of each measurement")
    told.add_argument("--rounds", type=int, default=9, help="measurements of each world")
    told.add_argument("--into", type=Path, help="a document with marks for the table")
    options = told.parse_args()
    result = f"{_measured(options.rounds)}\n\n" + "\n".join([_HEAD, *(_row(it, options) for it in options.agents), ""])
    print(result)
    if options.into:
        write(options.into, "sim", result)


_COLUMNS: Final = ("agent", "simulated: scenarios in a second of CPU", "looptime", "ratio, with its range")
_HEAD: Final = f"| {' | '.join(_COLUMNS)} |\n| --- | ---: | ---: | ---: |"


def _measured(rounds: int) -> str:
    day, python = time.strftime("%Y-%m-%d"), platform.python_version()
    return f"Measured on {day}: {machine()}; Python {python}. Medians of {rounds} rounds, which took turns."


def _row(agent: str, options: argparse.Namespace) -> str:
    rounds = [_round(agent, options.seconds) for _ in range(options.rounds)]
    ratios = sorted(sim / real for sim, real in rounds)
    sim, real = (median(rates) for rates in zip(*rounds, strict=True))
    return f"| {agent} | {sim:.1f} | {real:.1f} | {median(ratios):.1f} ({ratios[0]:.1f} to {ratios[-1]:.1f}) |"


def _round(agent: str, seconds: float) -> tuple[float, float]:
    """One measurement of each world, in turn: looptime needs the real `time`."""
    with SimWorld() as world:
        simulated = rate(in_sim(world, agent), seconds)
    return simulated, rate(on_looptime(agent), seconds)


def rate(play_once: Callable[[], object], seconds: float) -> float:
    """Scenarios in a second of processor time, after one that does not count."""
    play_once()
    count, began = 0, time.process_time()
    while time.process_time() - began < seconds:
        play_once()
        count += 1
    return count / (time.process_time() - began)


if __name__ == "__main__":
    main()
