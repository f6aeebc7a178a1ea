"""A small run for the conformance suite: a client, the fake provider, one planned fault on a network."""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.observer import BEFORE_HEAD, Point, WriteEnded
from wedgehog.fake_llm.reply import Answer, Reply, Text
from wedgehog.fake_llm.script.position import CallPosition
from wedgehog.fake_llm.server import FakeLLM
from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.inject.injector import Injector
from wedgehog.harness.inject.limited_reply import PartialDelivery
from wedgehog.harness.network.base import Address, Link, Network
from wedgehog.harness.record.clock import Clock, WallClock
from wedgehog.harness.record.events.call import ReplyEnded
from wedgehog.harness.record.history import History
from wedgehog.harness.run.recording.placing import SentReply
from wedgehog.harness.run.recording.recorder import Recorder
from wedgehog.harness.scenario.fault_plan import FaultPlan, PlannedFault
from wedgehog.harness.scenario.trigger import Trigger
from wedgehog.harness.sim.clock import SimClock

REPLY = Reply((Text("The lighthouse keeper counted his otters."),))

HURRY_S = 0.3
"""An impatient agent hangs up so long after the first bytes."""

PATIENCE_S = 60.0
"""The timeout for a reply that must arrive, however busy the machine is: a slow link sends it byte by byte."""
_BODY = b'{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"Hi"}]}'
REQUEST = (
    b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\nanthropic-version: 2023-06-01\r\n"
    b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
) % (len(_BODY), _BODY)
BRISK = 10_000
"""The time scale of a slowing fault for an agent that waits; most durations are 1 s."""


@dataclass
class Got:
    """The bytes that an agent's socket received."""

    data: bytes = b""
    how: Literal["whole", "fin", "rst", "silent"] = "silent"

    @property
    def body(self) -> int:
        """Bytes of the reply's body, chunk framing included."""
        _, found, body = self.data.partition(b"\r\n\r\n")
        return len(body) if found else 0


class Client:
    """A connection of an agent."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, written: asyncio.Semaphore) -> None:
        self._reader, self._writer, self._written = reader, writer, written

    async def ask(self, patience_s: float = PATIENCE_S, *, first: int = 0) -> Got:
        """Send one request, and read until its reply ends or `patience_s` are over, after `first` bytes of body."""
        self._writer.write(REQUEST)
        got = await self._first_bytes(first) if first else Got()
        return await self._read(got, patience_s)

    async def more(self, got: Got) -> Got:
        """Read on until a byte has come, or the reply ends."""
        async with asyncio.timeout(PATIENCE_S):
            while not got.data and got.how == "silent":
                await self._read_once(got)
        return got

    async def hurry(self, first: int = 0) -> Got:
        """Send one request, wait for the first bytes of its reply's body, and hang up a little later."""
        self._writer.write(REQUEST)
        got = await self._first_bytes(first)
        await self._read(got, HURRY_S)
        await self.close()
        return got

    async def _first_bytes(self, body: int) -> Got:
        """Read `body` bytes of the body, and wait until the provider wrote the rest too: a strike can take long."""
        got = await self._read(Got(), PATIENCE_S, body)
        async with asyncio.timeout(PATIENCE_S):
            await self._written.acquire()
        return got

    async def _read(self, got: Got, for_s: float, body: float = math.inf) -> Got:
        """Read until the reply ends, has `body` bytes of body, or `for_s` are over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(for_s):
                while got.how == "silent" and got.body < body:
                    await self._read_once(got)
        return got

    async def _read_once(self, got: Got) -> None:
        try:
            data = await self._reader.read(65536)
        except ConnectionResetError:
            got.how = "rst"
            return
        got.data += data
        got.how = "fin" if not data else "whole" if got.data.endswith(b"0\r\n\r\n") else "silent"

    async def close(self) -> None:
        """Hang up."""
        self._writer.close()
        await asyncio.wait([asyncio.ensure_future(self._writer.wait_closed())], timeout=1)


class Trial:
    """A small run: a fake provider, its link, and one planned fault."""

    def __init__(self, plan: FaultPlan, clock: Clock) -> None:
        self.history = History(clock)
        self.links: dict[str, Link] = {}
        self.injector = Injector(plan, self.links, self.history, clock, delivered=self._delivered)
        self.recorder = Recorder(self.history, clock, self, self.injector, lambda body: "")
        self.peers: list[Address] = []
        self.clients: list[Client] = []
        self._written = asyncio.Semaphore(0)
        self._calls: dict[int, CallPosition] = {}

    def _delivered(self, call: int, cut: PartialDelivery | None) -> None:
        self.recorder.delivered(call, cut)

    async def connect(self) -> Client:
        """An agent connects."""
        client = Client(*await asyncio.open_connection(*self.links["llm"].address), self._written)
        self.clients.append(client)
        return client

    async def end(self) -> list[ReplyEnded]:
        """End the turn, and return the end of each reply."""
        await asyncio.sleep(0.05)  # the provider must see a hang-up
        await self.injector.after_turn(1)
        self.recorder.flush()
        return sorted(self.history.of(ReplyEnded), key=lambda ended: ended.call)

    # ---- as the fake provider and the recorder see it

    def saw(self, fact: Any) -> None:
        """Record it."""
        self.recorder.saw(fact)
        if isinstance(fact, WriteEnded):
            self._written.release()

    async def gate(self, point: Point) -> Sequence[int]:
        """Fire the fault here."""
        if point.at == BEFORE_HEAD:
            self.peers.append(point.conn.peer)
        return await self.recorder.gate(point)

    def answer(self, call: int, conversation: Conversation) -> Answer:
        """The same reply for each request."""
        return REPLY

    def place(self, call: int, conversation: Conversation) -> CallPosition:
        """Each request is one more attempt."""
        if call not in self._calls:
            self._calls[call] = CallPosition(1, 1, call)
            self.injector.arrived(call, self._calls[call], "m")
        return self._calls[call]

    def token_of_result(self, call_id: str, text: str) -> str:
        """There are no tools."""
        return ""

    def read(self, conversation: Conversation) -> Conversation:
        """The same request: there are no tools."""
        return conversation

    def tokens_in_text(self, conversation: Conversation) -> Sequence[str]:
        """There are no tools."""
        return ()

    def answered_in_text(self, conversation: Conversation) -> Sequence[str]:
        """There are no tools."""
        return ()

    def quotes(self, conversation: Conversation) -> tuple[int, ...]:
        """There are no side conversations."""
        return ()

    def replies_in(self, conversation: Conversation) -> tuple[int, ...]:
        """One request is the whole conversation."""
        return ()

    def replies_begun(self, conversation: Conversation) -> tuple[int, ...]:
        """One request is the whole conversation."""
        return ()

    def replies_twice(self, conversation: Conversation) -> tuple[int, ...]:
        """One request is the whole conversation."""
        return ()

    def sent(self, call: int) -> SentReply:
        """The same reply for each request."""
        return SentReply(REPLY)


@dataclass(frozen=True)
class Bench:
    """A network and the fault to check on it."""

    network: Network
    fault: WireFault

    @asynccontextmanager
    async def trial(self, trigger: Trigger | None, times: int = 1, *, brisk: bool = False) -> AsyncIterator[Trial]:
        """A turn with the fault in its plan if there is a trigger; `brisk` shortens it for agents that wait."""
        fault = self.fault.scaled(BRISK) if brisk else self.fault
        clock = SimClock() if self.network.name == "sim" else WallClock()
        trial = Trial(FaultPlan(() if trigger is None else (PlannedFault("llm", trigger, fault, times),)), clock)
        async with AsyncExitStack() as stack:
            llm = await stack.enter_async_context(FakeLLM(trial, trial))
            trial.links["llm"] = await self.network.open_link("llm", (llm.host, llm.port), fault.ends == "rst")
            stack.push_async_callback(trial.links["llm"].close)
            stack.push_async_callback(trial.injector.close)
            await trial.injector.before_turn(1)
            yield trial
            for client in trial.clients:
                await client.close()
