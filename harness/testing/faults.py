"""The conformance suite for wire faults, stock ones and those of plugins, on every network.

```python
@pytest.mark.parametrize("case", conformance_cases("my_fault"), ids=str)
def test_my_fault(case):
    case.run()
```

Each case plays small agents against the real fake provider, through a real network, with the recorder of a real run. It
compares the delivered bytes in the history with the bytes that the agent's socket received.
"""

import asyncio
import contextlib
import itertools
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import MISSING, dataclass
from typing import Any, Literal, TypeVar

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.observer import BEFORE_HEAD, Point
from wedgehog.fake_llm.reply import Answer, Reply, Text
from wedgehog.fake_llm.script.position import CallPosition
from wedgehog.fake_llm.server import FakeLLM
from wedgehog.harness.faults.base import Fault, WireFault, parameters, registered
from wedgehog.harness.faults.parameters import Parameter, choices
from wedgehog.harness.inject import Injector, PartialDelivery
from wedgehog.harness.network.base import Address, Downstream, Link, Network, NetworkName, Target, WholeLink
from wedgehog.harness.network.choose import choose_network
from wedgehog.harness.record.clock import Clock, WallClock
from wedgehog.harness.record.events.call import HungUp, ReplyEnded
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.history import History
from wedgehog.harness.run.recorder import Recorder, SentReply
from wedgehog.harness.scenario.trigger import ALWAYS, AtReply, BeforeRequest, FaultPlan, PlannedFault, Trigger
from wedgehog.harness.sim.clock import SimClock
from wedgehog.harness.sim.network import SimNetwork
from wedgehog.harness.sim.world import simulate

SomeFault = TypeVar("SomeFault", bound=Fault)

NETWORKS: tuple[NetworkName, ...] = ("embedded", "toxiproxy", "sim")
REPLY = Reply((Text("The lighthouse keeper counted his otters."),))
AT = 150
"""The byte of the reply's body at which faults fire."""
HURRY_S = 0.3
"""An impatient agent hangs up so long after the first bytes."""
SILENT_S = 0.5
"""A reply that has not ended by then counts as silent."""
PATIENCE_S = 10.0
"""The timeout for a reply that must arrive."""
_BODY = b'{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"Hi"}]}'
REQUEST = (
    b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\nanthropic-version: 2023-06-01\r\n"
    b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
) % (len(_BODY), _BODY)
BRISK = 10_000
"""The time scale of a slowing fault for an agent that waits; most durations are 1 s."""


def examples(cls: type[SomeFault]) -> Iterator[SomeFault]:
    """The fault with each combination of its options; a required number is 1 s or the smallest allowed one."""
    known = parameters(cls)
    return (cls(**dict(zip(known, values, strict=True))) for values in itertools.product(*map(_values, known.values())))


def _values(parameter: Parameter) -> Sequence[object]:
    if "anyOf" not in parameter.schema and (words := choices(parameter.schema)):
        return words
    if parameter.default is not MISSING:
        return (parameter.default,)
    return (1.0,) if parameter.seconds else (math.ceil(parameter.schema.get("minimum", 1)),)


@dataclass(frozen=True)
class Case:
    """One fault on one network."""

    fault: WireFault
    network: NetworkName

    def __str__(self) -> str:
        """`stall(for_s='forever')-embedded`"""
        told = ", ".join(f"{name}={getattr(self.fault, name)!r}" for name in parameters(type(self.fault)))
        return f"{self.fault.name}({told})-{self.network}"

    def run(self) -> None:
        """Run every check that fits the fault; AssertionError has a note with the check that failed."""
        if self.network == "sim":
            simulate(self._run)
        else:
            asyncio.run(self._run())

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Network]:
        if self.network == "sim":
            async with SimNetwork() as simulated:
                yield simulated
        else:
            async with choose_network(self.network, lambda said: None) as network:
                yield network

    async def _run(self) -> None:
        async with self._opened() as network:
            for check in _CLOSED if self.fault.closes_port else _OPEN:
                try:
                    await check(Bench(network, self.fault))
                except Exception as wrong:
                    wrong.add_note(f"{self}: {check.__doc__}")
                    raise


def conformance_cases(*names: str, networks: Sequence[NetworkName] = NETWORKS) -> list[Case]:
    """Each example of the registered wire faults with these names (default: all), on each network."""
    classes = (cls for name, cls in registered("wire").items() if name in (names or registered("wire")))
    wire = (cls for cls in classes if issubclass(cls, WireFault))
    return [Case(fault, network) for cls in wire for fault in examples(cls) for network in networks]


# ---- the parts of a check


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

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connected."""
        self._reader, self._writer = reader, writer

    async def ask(self, patience_s: float = PATIENCE_S, *, first: int = 0) -> Got:
        """Send one request, and read until its reply ends or `patience_s` are over, after `first` bytes of body."""
        self._writer.write(REQUEST)
        got = await self._read(Got(), PATIENCE_S, first) if first else Got()
        return await self._read(got, patience_s)

    async def hurry(self, first: int = 0) -> Got:
        """Send one request, wait for the first bytes of its reply's body, and hang up a little later."""
        self._writer.write(REQUEST)
        got = await self._read(Got(), PATIENCE_S, first)
        await self._read(got, HURRY_S)
        await self.close()
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
        """Nothing is open yet."""
        self.history = History(clock)
        self.links: dict[str, Link] = {}
        self.injector = Injector(plan, self.links, self.history, clock, delivered=self._delivered)
        self.recorder = Recorder(self.history, clock, self, self.injector, lambda body: "")
        self.peers: list[Address] = []
        self.clients: list[Client] = []
        self._calls: dict[int, CallPosition] = {}

    def _delivered(self, call: int, cut: PartialDelivery | None) -> None:
        self.recorder.delivered(call, cut)

    async def connect(self) -> Client:
        """An agent connects."""
        client = Client(*await asyncio.open_connection(*self.links["llm"].address))
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

    def tokens_in_text(self, conversation: Conversation) -> Sequence[str]:
        """There are no tools."""
        return ()

    def quotes(self, conversation: Conversation) -> tuple[int, ...]:
        """There are no side conversations."""
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


FaultCheck = Callable[[Bench], Awaitable[None]]


# ---- the checks


def _equals(fault: WireFault, ended: ReplyEnded, got: Got) -> None:
    """History and socket have the same count; for a slow reply the history may be ahead by bytes in transit."""
    if fault.slows:
        assert got.body <= ended.bytes_delivered, f"{got.body} bytes arrived, {ended.bytes_delivered} are recorded"
    else:
        passed = (
            f"{got.body} bytes arrived and {ended.bytes_delivered} are recorded; a fault with `ends` lets {AT} pass"
        )
        assert (got.body, ended.bytes_delivered) == (AT, AT), passed
    assert (ended.bytes_delivered == ended.body_bytes) == (got.how == "whole")
    assert (ended.tokens_delivered == ended.output_tokens) == (got.how == "whole")


async def _agent_waits(bench: Bench) -> None:
    """An agent that waits receives exactly what the history says, and does not hang up."""
    async with bench.trial(AtReply(byte=AT), brisk=bench.fault.slows) as it:
        got = await (await it.connect()).ask(SILENT_S if bench.fault.ends == "stall" else PATIENCE_S, first=AT)
        (ended,) = await it.end()
        _equals(bench.fault, ended, got)
        assert got.how == {"stall": "silent", None: "whole"}.get(bench.fault.ends, bench.fault.ends)
        assert list(it.history.of(HungUp)) == []
        assert len(list(it.history.of(FaultFired))) == 1


async def _agent_hangs_up(bench: Bench) -> None:
    """An agent that hangs up early received what the history says; HungUp is recorded unless the reply had ended."""
    async with bench.trial(AtReply(byte=AT)) as it:
        got = await (await it.connect()).hurry(AT)
        (ended,) = await it.end()
        _equals(bench.fault, ended, got)
        assert [event.call for event in it.history.of(HungUp)] == ([1] if got.how == "silent" else [])


async def _agent_retries(bench: Bench) -> None:
    """The fault fires on each of three attempts, with its own proof and count."""
    async with bench.trial(AtReply(byte=AT), ALWAYS) as it:
        later = 0 if bench.fault.slows else AT  # on a slow link maybe no byte arrives
        got = [await (await it.connect()).hurry(first) for first in (AT, later, later)]
        for ended, each in zip(await it.end(), got, strict=True):
            _equals(bench.fault, ended, each)
        fired = sorted({event.call or 0 for event in it.history.of(FaultFired)})
        assert fired == [1, 2, 3], f"on three attempts it was proved on {fired}"


async def _agent_retries_after_fault(bench: Bench) -> None:
    """A second attempt without a fault of its own is counted right: late on a slow link, else whole."""
    async with bench.trial(AtReply(byte=AT)) as it:
        first = await (await it.connect()).hurry(AT)
        again = await it.connect()
        second = await again.hurry() if bench.fault.slows else await again.ask()
        ended = await it.end()
        _equals(bench.fault, ended[0], first)
        if bench.fault.slows:
            _equals(bench.fault, ended[1], second)
        else:
            assert (second.how, ended[1].bytes_delivered) == ("whole", ended[1].body_bytes)


async def _never_reached(bench: Bench) -> None:
    """A fault at a byte that does not come does not fire, and the reply is whole."""
    async with bench.trial(AtReply(byte=10**6)) as it:
        got = await (await it.connect()).ask()
        (ended,) = await it.end()
        assert got.how == "whole" and ended.bytes_delivered == ended.body_bytes == got.body
        assert list(it.history.of(FaultFired)) == []


async def _armed(bench: Bench) -> None:
    """Armed on a used connection, it is proved only by bytes after that; it can be healed twice."""
    async with bench.trial(None) as it:
        client, fault = await it.connect(), bench.fault
        carried = len((await client.ask()).data)
        target: Target = WholeLink(it.peers[0]) if fault.reach == "link" else Downstream(it.peers[0], carried + 10**6)
        strike = await it.links["llm"].strike(fault, target)
        assert await strike.fired(0.05) is None, "it was proved before any byte had come"
        if fault.slows:
            got = await client.ask(HURRY_S)
            assert (await strike.fired(0.1) is not None) == bool(got.data)
        await strike.heal()
        await strike.heal()
        assert (await (await it.connect()).ask()).how == "whole"


async def _refused(bench: Bench) -> None:
    """Before the first request it refuses every connection, with proof; after healing twice the port answers."""
    async with bench.trial(BeforeRequest(phase="connect")) as it:
        for _ in range(2):
            try:
                await it.connect()
            except ConnectionRefusedError:
                continue
            raise AssertionError("the port answered")
        (fired,) = it.history.of(FaultFired)
        assert "refused" in fired.proof and it.injector.keeps_requests_away
        await it.end()
        await it.end()
        assert (await (await it.connect()).ask()).how == "whole"


async def _closed_in_a_reply(bench: Bench) -> None:
    """A port that closes during a reply ends the connection; no HungUp is recorded."""
    async with bench.trial(AtReply(byte=AT)) as it:
        got = await (await it.connect()).ask(SILENT_S)
        (ended,) = await it.end()
        assert (got.how, got.body, ended.bytes_delivered, ended.how) == ("fin", AT, AT, "cut")
        assert list(it.history.of(HungUp)) == []


_OPEN: tuple[FaultCheck, ...] = (
    _agent_waits,
    _agent_hangs_up,
    _agent_retries,
    _agent_retries_after_fault,
    _never_reached,
    _armed,
)
_CLOSED: tuple[FaultCheck, ...] = (_refused, _closed_in_a_reply)
