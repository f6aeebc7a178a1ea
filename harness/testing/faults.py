"""What must hold of every fault of bytes on every network: of the stock ones, and of a plugin's.

```python
@pytest.mark.parametrize("case", conformance_cases("my_fault"), ids=str)
def test_my_fault(case):
    case.run()
```

Each case plays small agents against the real fake provider, through a real network, with the recorder of a real run:
what the history says was delivered is compared with what came out of the agent's socket.
"""

import asyncio
import contextlib
import itertools
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import MISSING, dataclass, fields
from typing import Any, Literal, get_args, get_origin

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.observer import BEFORE_HEAD, Point
from wedgehog.fake_llm.reply import Answer, Reply, Text
from wedgehog.fake_llm.script.position import CallPosition
from wedgehog.fake_llm.server import FakeLLM
from wedgehog.harness.faults.base import WireFault, registered
from wedgehog.harness.faults.parameters import bounds, hints, is_duration
from wedgehog.harness.inject import Injector
from wedgehog.harness.network.base import Address, Downstream, Link, Network, Target, WholeLink
from wedgehog.harness.network.choose import choose_network
from wedgehog.harness.record.clock import WallClock
from wedgehog.harness.record.event import FaultFired, HungUp, ReplyEnded
from wedgehog.harness.record.history import History
from wedgehog.harness.run.recorder import Recorder
from wedgehog.harness.scenario.plan import ALWAYS, FaultPlan, PlannedFault
from wedgehog.harness.scenario.trigger import AtReply, BeforeRequest, Trigger

NetworkName = Literal["embedded", "toxiproxy"]
NETWORKS: tuple[NetworkName, ...] = ("embedded", "toxiproxy")
AT = 150
"""The byte of the reply's body at which faults strike."""
HURRY_S = 0.3
"""A hasty agent hangs up so long after the first bytes."""
SILENT_S = 0.5
"""A reply that has not ended by then is taken to be silent."""
PATIENCE_S = 10.0
"""For a reply that must come."""
_BODY = b'{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"Hi"}]}'
REQUEST = (
    b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\nanthropic-version: 2023-06-01\r\n"
    b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
) % (len(_BODY), _BODY)
BRISK = 10_000
"""By so much a fault that slows is shortened for an agent that waits: its durations are 1 s as a rule."""


def examples(cls: type[WireFault]) -> Iterator[WireFault]:
    """The fault with each of its words; a number that it demands is 1 s, or the least that is allowed."""
    names, values = [it.name for it in fields(cls)], [_choices(cls, it) for it in fields(cls)]  # type: ignore[arg-type]
    return (cls(**dict(zip(names, choice, strict=True))) for choice in itertools.product(*values))


def _choices(cls: type[WireFault], item: Any) -> Sequence[object]:
    hint = hints(cls)[item.name]
    if get_origin(hint) is Literal:
        return get_args(hint)
    if item.default is not MISSING:
        return (item.default,)
    return (1.0,) if is_duration(hint) else (math.ceil(bounds(hint).low),)


@dataclass(frozen=True)
class Case:
    """One fault on one network; its name is its id."""

    fault: WireFault
    network: NetworkName

    def __str__(self) -> str:
        """`stall(for_s='forever')-embedded`"""
        told = ", ".join(f"{name}={getattr(self.fault, name)!r}" for name in hints(type(self.fault)))
        return f"{self.fault.name}({told})-{self.network}"

    def run(self) -> None:
        """Play every check that fits the fault; raises AssertionError with the sentence that does not hold."""
        asyncio.run(self._run())

    async def _run(self) -> None:
        async with choose_network(self.network, lambda said: None) as network:
            for check in _CLOSED if self.fault.closes_port else _OPEN:
                try:
                    await check(Bench(network, self.fault))
                except AssertionError as wrong:
                    wrong.add_note(f"{self}: {check.__doc__}")
                    raise


def conformance_cases(*names: str, networks: Sequence[NetworkName] = NETWORKS) -> list[Case]:
    """Every example of the registered faults of these names, or of all faults of bytes, on each network."""
    classes = (cls for name, cls in registered("wire").items() if name in (names or registered("wire")))
    wire = (cls for cls in classes if issubclass(cls, WireFault))
    return [Case(fault, network) for cls in wire for fault in examples(cls) for network in networks]


# ---- what is played


@dataclass
class Got:
    """What came out of an agent's socket."""

    data: bytes = b""
    how: Literal["whole", "fin", "rst", "silent"] = "silent"

    @property
    def body(self) -> int:
        """Bytes of the reply's body, chunk framing included."""
        _, found, body = self.data.partition(b"\r\n\r\n")
        return len(body) if found else 0


class Client:
    """An agent's end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connected."""
        self._reader, self._writer = reader, writer

    async def ask(self, patience_s: float = PATIENCE_S) -> Got:
        """Send one request, and read until its reply is over, or for so long."""
        self._writer.write(REQUEST)
        return await self._read(Got(), patience_s)

    async def hurry(self, first: int = 0) -> Got:
        """Send one request, wait for the first bytes of its reply's body, and hang up a little later."""
        self._writer.write(REQUEST)
        got = await self._read(Got(), PATIENCE_S, first)
        await self._read(got, HURRY_S)
        await self.close()
        return got

    async def _read(self, got: Got, for_s: float, body: float = math.inf) -> Got:
        """Read on for so long, or until the reply has so many bytes of body, or is over."""
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
    """A fake provider, its link, and one planned fault: the script and the places of a run in small."""

    def __init__(self, plan: FaultPlan) -> None:
        """Nothing is open yet."""
        self.history, clock = History(WallClock()), WallClock()
        self.nemesis = Injector(plan, {}, self.history, clock)
        self.recorder = Recorder(self.history, clock, self, self.nemesis, lambda body: "")
        self.nemesis.state.delivered = self.recorder.delivered
        self.link: Link
        self.peers: list[Address] = []
        self.clients: list[Client] = []
        self._calls: dict[int, CallPosition] = {}

    async def connect(self) -> Client:
        """An agent connects."""
        client = Client(*await asyncio.open_connection(*self.link.address))
        self.clients.append(client)
        return client

    async def end(self) -> list[ReplyEnded]:
        """The turn is over: what was delivered of each reply."""
        await asyncio.sleep(0.05)  # for a hang-up to reach the provider
        await self.nemesis.after_turn(1)
        self.recorder.flush()
        return sorted(self.history.of(ReplyEnded), key=lambda ended: ended.call)

    # ---- as the fake provider and the recorder see it

    def saw(self, fact: Any) -> None:
        """Record it."""
        self.recorder.saw(fact)

    async def gate(self, point: Point) -> Sequence[int]:
        """Strike here."""
        if point.at == BEFORE_HEAD:
            self.peers.append(point.conn.peer)
        return await self.recorder.gate(point)

    def answer(self, call: int, conversation: Conversation) -> Answer:
        """The same words for each request."""
        reply = Reply((Text("The lighthouse keeper counted his otters."),))
        self.recorder.answering(call, reply, ())
        return reply

    def place(self, call: int, conversation: Conversation) -> CallPosition:
        """Each request is one more attempt."""
        if call not in self._calls:
            self._calls[call] = CallPosition(1, 1, call)
            self.nemesis.arrived(call, self._calls[call], "m")
        return self._calls[call]

    def token_of_result(self, call_id: str, text: str) -> str:
        """There are no tools."""
        return ""


@dataclass(frozen=True)
class Bench:
    """A network and the fault that is tried on it."""

    network: Network
    fault: WireFault

    @asynccontextmanager
    async def trial(self, trigger: Trigger | None, times: int = 1, *, brisk: bool = False) -> AsyncIterator[Trial]:
        """A turn with the fault in its plan, or nothing without a trigger; `brisk`: for agents that wait."""
        fault = self.fault.scaled(BRISK) if brisk else self.fault
        trial = Trial(FaultPlan(() if trigger is None else (PlannedFault("llm", trigger, fault, times),)))
        async with AsyncExitStack() as stack:
            llm = await stack.enter_async_context(FakeLLM(trial, trial))
            trial.link = await self.network.open_link("llm", (llm.host, llm.port), fault.ends == "rst")
            stack.push_async_callback(trial.link.close)
            trial.nemesis.use({"llm": trial.link})
            stack.push_async_callback(trial.nemesis.close)
            await trial.nemesis.before_turn(1)
            yield trial
            for client in trial.clients:
                await client.close()


FaultCheck = Callable[[Bench], Awaitable[None]]


# ---- what must hold


def _equals(fault: WireFault, ended: ReplyEnded, got: Got) -> None:
    """The history's count is the socket's; of a slow reply it may be ahead by what was on its way."""
    if fault.slows:
        assert got.body <= ended.bytes_delivered, f"{got.body} bytes arrived, {ended.bytes_delivered} are recorded"
    else:
        assert (got.body, ended.bytes_delivered) == (AT, AT)
    assert (ended.bytes_delivered == ended.body_bytes) == (got.how == "whole")
    assert (ended.tokens_delivered == ended.output_tokens) == (got.how == "whole")


async def _who_waits(bench: Bench) -> None:
    """An agent that waits gets exactly what the history says, and does not hang up."""
    async with bench.trial(AtReply(byte=AT), brisk=bench.fault.slows) as it:
        got = await (await it.connect()).ask(PATIENCE_S if bench.fault.slows else SILENT_S)
        (ended,) = await it.end()
        _equals(bench.fault, ended, got)
        assert got.how == {"stall": "silent", None: "whole"}.get(bench.fault.ends, bench.fault.ends)
        assert list(it.history.of(HungUp)) == []
        assert len(list(it.history.of(FaultFired))) == 1


async def _who_hangs_up(bench: Bench) -> None:
    """An agent that hangs up too soon has what the history says, and hung up, unless the reply was over before."""
    async with bench.trial(AtReply(byte=AT)) as it:
        got = await (await it.connect()).hurry(AT)
        (ended,) = await it.end()
        _equals(bench.fault, ended, got)
        assert [event.call for event in it.history.of(HungUp)] == ([1] if got.how == "silent" else [])


async def _who_asks_again(bench: Bench) -> None:
    """Each of three attempts is struck, proved and counted for itself."""
    async with bench.trial(AtReply(byte=AT), ALWAYS) as it:
        later = 0 if bench.fault.slows else AT  # on a slow link perhaps nothing comes
        got = [await (await it.connect()).hurry(first) for first in (AT, later, later)]
        for ended, each in zip(await it.end(), got, strict=True):
            _equals(bench.fault, ended, each)
        assert {event.call for event in it.history.of(FaultFired)} == {1, 2, 3}


async def _who_asks_again_later(bench: Bench) -> None:
    """A second attempt, which is not struck itself, is counted right: late where the link is slow, else whole."""
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
    """A fault whose byte never comes has not fired, and the reply is whole."""
    async with bench.trial(AtReply(byte=10**6)) as it:
        got = await (await it.connect()).ask()
        (ended,) = await it.end()
        assert got.how == "whole" and ended.bytes_delivered == ended.body_bytes == got.body
        assert list(it.history.of(FaultFired)) == []


async def _armed(bench: Bench) -> None:
    """Armed on a connection that has carried a reply, it is proved by bytes that it met alone, and healed twice."""
    async with bench.trial(None) as it:
        client, fault = await it.connect(), bench.fault
        carried = len((await client.ask()).data)
        spot: Target = WholeLink(it.peers[0]) if fault.reach == "link" else Downstream(it.peers[0], carried + 10**6)
        strike = await it.link.strike(fault, spot)
        assert await strike.fired(0.05) is None, "it was proved before any byte had come"
        if fault.slows:
            got = await client.ask(HURRY_S)
            assert (await strike.fired(0.1) is not None) == bool(got.data)
        await strike.heal()
        await strike.heal()
        assert (await (await it.connect()).ask()).how == "whole"


async def _refused(bench: Bench) -> None:
    """Before the turn's first request it refuses every connection, with proof; healed twice the port answers again."""
    async with bench.trial(BeforeRequest(phase="connect")) as it:
        for _ in range(2):
            try:
                await it.connect()
            except ConnectionRefusedError:
                continue
            raise AssertionError("the port answered")
        (fired,) = it.history.of(FaultFired)
        assert "refused" in fired.proof and it.nemesis.keeps_requests_away
        await it.end()
        await it.end()
        assert (await (await it.connect()).ask()).how == "whole"


async def _closed_in_a_reply(bench: Bench) -> None:
    """A port that closes while a reply is under way ends its connection, and nobody hung up."""
    async with bench.trial(AtReply(byte=AT)) as it:
        got = await (await it.connect()).ask(SILENT_S)
        (ended,) = await it.end()
        assert (got.how, got.body, ended.bytes_delivered, ended.how) == ("fin", AT, AT, "cut")
        assert list(it.history.of(HungUp)) == []


_OPEN: tuple[FaultCheck, ...] = (
    _who_waits,
    _who_hangs_up,
    _who_asks_again,
    _who_asks_again_later,
    _never_reached,
    _armed,
)
_CLOSED: tuple[FaultCheck, ...] = (_refused, _closed_in_a_reply)
