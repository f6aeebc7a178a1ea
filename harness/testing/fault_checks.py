"""The checks of the conformance suite for wire faults."""

from collections.abc import Awaitable, Callable

from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.network.base import Downstream, Target, WholeLink
from wedgehog.harness.record.events.call import HungUp, ReplyEnded
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.scenario.fault_plan import ALWAYS
from wedgehog.harness.scenario.trigger import AtReply, BeforeRequest
from wedgehog.harness.testing.fault_trial import HURRY_S, PATIENCE_S, Bench, Got

AT = 150
"""The byte of the reply's body at which faults fire."""

SILENT_S = 0.5
"""A reply that has not ended by then counts as silent."""

FaultCheck = Callable[[Bench], Awaitable[None]]


def _equals(fault: WireFault, ended: ReplyEnded, got: Got) -> None:
    """History and socket have the same count; for a slow reply the history may be ahead by bytes in transit."""
    if fault.slows:
        assert got.body <= ended.bytes_delivered, f"{got.body} bytes arrived, {ended.bytes_delivered} are recorded"
    else:
        passed = (
            f"{got.body} bytes arrived and {ended.bytes_delivered} are recorded; a fault with `ends` lets {AT} pass"
        )
        assert (got.body, ended.bytes_delivered) == (AT, AT), passed
    has_all = ended.bytes_delivered == ended.body_bytes, ended.tokens_delivered == ended.output_tokens
    if fault.slows:  # the last bytes may be in transit when the client hangs up
        assert got.how != "whole" or all(has_all)
    else:
        assert has_all == (got.how == "whole",) * 2


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
            proof = await strike.fired(PATIENCE_S if got.data else 0.1)
            assert proof is not None or not got.data, "bytes came under it, and it was not proved"
            # On a busy machine the bytes of the proof may not be read yet.
            assert proof is None or (await client.more(got)).data, "it was proved, and no byte came"
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


OPEN: tuple[FaultCheck, ...] = (
    _agent_waits,
    _agent_hangs_up,
    _agent_retries,
    _agent_retries_after_fault,
    _never_reached,
    _armed,
)
CLOSED: tuple[FaultCheck, ...] = (_refused, _closed_in_a_reply)
