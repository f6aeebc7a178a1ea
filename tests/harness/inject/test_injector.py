"""The injector: when each fault strikes, what proves it, and that it is always healed."""

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest

from wedgehog.fake_llm.observer import Conn, Point
from wedgehog.fake_llm.reply import MIDDLE as HALF
from wedgehog.fake_llm.reply import Failure, Reply, Text, ToolCall
from wedgehog.fake_llm.script.position import CallPosition
from wedgehog.harness.faults.reply_fault import Context
from wedgehog.harness.inject.injector import Injector
from wedgehog.harness.inject.limited_reply import PartialDelivery
from wedgehog.harness.network.base import (
    ConnectionGoneError,
    Downstream,
    LinkBusyError,
    NetworkError,
    Upstream,
    WholeLink,
)
from wedgehog.harness.record.events.fault import FaultArmed, FaultFired, FaultHealed, FaultUnproven
from wedgehog.harness.record.events.run import Note, RunStarted, Trouble
from wedgehog.harness.record.history import History
from wedgehog.harness.scenario.fault_config import FaultConfig
from wedgehog.harness.scenario.fault_plan import FaultPlan

HEAD, ENDS, BODY = 100, (50, 120, 200), 200
PEER = ("127.0.0.1", 4000)


class Rig:
    """An injector between a link that takes notes and calls that we make up."""

    def __init__(self, clock: Any, link: Any, faults: tuple[dict[str, Any], ...]) -> None:
        self.clock, self.link = clock, link
        self.history = History(clock)
        plan = FaultPlan(tuple(self.planned(words) for words in faults))
        self.delivered: list[tuple[int, PartialDelivery | None]] = []
        links = {"llm": link, "channel": link, "tool:web": link}
        self.injector = Injector(
            plan, links, self.history, clock, delivered=lambda call, cut: self.delivered.append((call, cut))
        )
        self.calls = 0

    planned = staticmethod(lambda words: FaultConfig.model_validate(words).planned())

    @property
    def strikes(self) -> list[Any]:
        return self.link.strikes

    @property
    def fired(self) -> list[FaultFired]:
        return list(self.history.of(FaultFired))

    def arrives(self, turn: int = 1, step: int = 1, attempt: int = 1, background: str = "", model: str = "m") -> int:
        """A request for the model; its number."""
        self.calls += 1
        self.injector.arrived(self.calls, CallPosition(turn, step, attempt, background), model)
        return self.calls

    async def ask(self, call: int, at: int = -1, conn: int = 1, carried: int = 0, stream: bool = True) -> Any:
        """The gate is asked about a reply."""
        peer = Conn(conn, (PEER[0], PEER[1] + conn))
        async with asyncio.timeout(10):  # a gate that nobody opens is a failure, and no test that never ends
            return await self.injector.gate(Point(call, peer, carried, HEAD, ENDS if stream else (), BODY, at, stream))

    async def call(self, conn: int = 1, carried: int = 0, **place: Any) -> Any:
        """A request whose reply is about to be written: the further stops."""
        return await self.ask(self.arrives(**place), conn=conn, carried=carried)

    def answer(self, call: int, answer: Any) -> Any:
        """The reply as the plan leaves it."""
        context = Context(None, 1000, self.clock.wall())
        altered = self.injector.alter(call, answer, context, on_script=True)
        return self.injector.alter(call, altered, context, on_script=False)


@pytest.fixture
def rig(manual_clock: Any, fake_link: Callable[..., Any]) -> Callable[..., Rig]:
    """Makes a rig for some lines of a fault plan, written as in a scenario."""
    return lambda *faults: Rig(manual_clock, fake_link(), faults)


# ---- spots in a reply


@pytest.mark.parametrize(
    ("at", "offset"),
    [
        ({"byte": 33}, HEAD + 33),
        ({"byte": 0}, HEAD),
        ({"event": 0}, HEAD),
        ({"event": 1}, HEAD + 50),
        ({"event": 3}, HEAD + 200),
        ({"phase": "body"}, HEAD),
        ({"phase": "terminal"}, HEAD + 160),
        ({"phase": "headers"}, 0),
        ({}, 0),
    ],
)
async def test_a_wire_fault_is_armed_at_the_absolute_byte_that_its_trigger_names(
    rig: Any, at: dict[str, Any], offset: int
):
    """What the connection carried before, the head and the body's offset add up; the fake need not stop on the way."""
    it = rig({"at": at, "do": {"cut": "fin"}})
    await it.injector.before_turn(1)
    stops = await it.call(carried=1000)
    assert list(stops) == []
    assert it.strikes[0].spot == Downstream((PEER[0], PEER[1] + 1), 1000 + offset)
    assert not it.fired, "armed is not fired"


@pytest.mark.parametrize("at", [{"byte": BODY}, {"byte": BODY + 1}, {"event": len(ENDS) + 1}])
async def test_a_place_that_the_reply_does_not_have_is_never_struck(rig: Any, at: dict[str, Any]):
    """A fault that cannot be reached never fires, and the turn ends without its healing being told."""
    it = rig({"at": at, "do": {"stall": "forever"}})
    await it.injector.before_turn(1)
    await it.call()
    await it.injector.after_turn(1)
    assert (it.strikes, it.fired, list(it.history.of(FaultHealed))) == ([], [], [])
    assert len(list(it.history.of(FaultArmed))) == 1


@pytest.mark.parametrize(("at", "byte"), [({"event": 1}, BODY // 2), ({"phase": "terminal"}, BODY - 1)])
async def test_a_reply_that_is_not_streamed_is_struck_too(rig: Any, at: dict[str, Any], byte: int):
    """There are no events in a JSON body: its middle counts, and for its end the byte before the last."""
    it = rig({"at": at, "do": "cut"})
    await it.injector.before_turn(1)
    await it.ask(it.arrives(), stream=False)
    assert [strike.spot.at for strike in it.strikes] == [HEAD + byte]


async def test_a_fault_that_begins_when_it_is_armed_makes_the_fake_stop_at_its_spot(rig: Any):
    """Drip has no byte of its own: the fake writes up to the trigger, and only then the link is struck."""
    it = rig({"at": {"event": 1}, "do": {"drip": 0.5}})
    await it.injector.before_turn(1)
    call = it.arrives()
    assert list(await it.ask(call)) == [50]
    assert not it.strikes
    await it.ask(call, at=50)
    assert it.strikes[0].spot == WholeLink((PEER[0], PEER[1] + 1), HEAD + 50)


async def test_every_write_is_admitted_by_the_link_with_what_the_connection_has_carried(rig: Any):
    """So that a limit which is armed for one connection cuts no other short."""
    it = rig()
    call = it.arrives()
    await it.ask(call, carried=10)
    await it.ask(call, at=50, carried=10)
    assert [carried for _, carried in it.link.admitted] == [10, 10 + HEAD + 50]


# ---- which call


@pytest.mark.parametrize(
    ("words", "struck"),
    [
        ({}, [1]),
        ({"at": {"attempt": 2}}, [2]),
        ({"times": 2}, [1, 2]),
        ({"at": {"attempt": 2}, "times": 2}, [2, 3]),
        ({"times": "always"}, [1, 2, 3, 4]),
    ],
)
async def test_attempt_and_times_choose_among_a_steps_attempts(rig: Any, words: dict[str, Any], struck: list[int]):
    """The first attempt that is hit, and how many from there on."""
    it = rig({"at": {"event": 1}, "do": "cut", **words})
    await it.injector.before_turn(1)
    hit = []
    for attempt in range(1, 5):
        before = len(it.strikes)
        await it.call(attempt=attempt, conn=attempt)
        hit += [attempt] if len(it.strikes) > before else []
    assert hit == struck


@pytest.mark.parametrize(
    "place", [{"step": 1}, {"step": 3}, {"turn": 2, "step": 2}, {"step": 2, "background": "title"}]
)
async def test_other_turns_steps_and_background_calls_are_left_alone(rig: Any, place: dict[str, Any]):
    """A title that happens to be asked for in step 2 is not step 2."""
    it = rig({"at": {"step": 2, "byte": 5}, "do": "cut"})
    await it.injector.before_turn(1)
    await it.call(**place)
    assert not it.strikes
    await it.call(step=2)
    assert len(it.strikes) == 1


async def test_a_fault_on_background_calls_leaves_the_conversation_alone(rig: Any):
    """Background calls have no step of their own: the first of the turn is hit."""
    it = rig({"at": {"byte": 5, "on": "background"}, "do": "cut"})
    await it.injector.before_turn(1)
    await it.call()
    assert not it.strikes
    await it.call(step=4, background="title")
    assert len(it.strikes) == 1


@pytest.mark.parametrize(("end", "fired"), [("hits", 1), ("ended", 0), ("waits", 0)])
async def test_a_title_that_is_asked_for_while_its_turn_ends_is_hit(rig: Any, manual_clock: Any, end: str, fired: int):
    """The turn's end waits a second at most for the proof of a fault on a background call that is under way."""
    it = rig({"at": {"byte": 5, "on": "background"}, "do": {"stall": "forever"}})
    await it.injector.before_turn(1)
    call = it.arrives(background="title")
    ending = asyncio.create_task(it.injector.after_turn(1))
    await manual_clock.advance(0.1)
    assert not ending.done()
    await it.ask(call)
    if end == "hits":
        await it.strikes[0].hits()
    elif end == "ended":
        it.injector.ended(call, paid=True)
    await manual_clock.advance(0.1 if end != "waits" else 1.0)
    assert ending.done() and len(it.fired) == fired
    assert it.strikes[0].healed


async def test_attempts_are_counted_for_the_model_that_the_trigger_names(rig: Any):
    """A candidate further down the list is hit at its own first attempt, which is not the step's."""
    it = rig({"at": {"byte": 5, "model_name": "m2"}, "do": "cut"})
    await it.injector.before_turn(1)
    for model in ("m1", "m1", "m2", "m2"):
        await it.call(model=model)
    assert [strike.spot.at for strike in it.strikes] == [HEAD + 5]
    await it.strikes[0].hits()
    assert it.fired[0].call == 3


@pytest.mark.parametrize(
    ("sticks_to", "hit"), [("call", [True, False, False]), ("connection", [True, True, False]), ("link", [True] * 3)]
)
async def test_a_fault_sticks_to_a_call_a_connection_or_the_link(rig: Any, sticks_to: str, hit: list[bool]):
    """The retry on the same connection, and the one on a fresh one."""
    it = rig({"at": {"byte": 5}, "do": "cut", "sticks_to": sticks_to})
    await it.injector.before_turn(1)
    seen = []
    for attempt, conn in enumerate((1, 1, 2), start=1):
        before = len(it.strikes)
        await it.call(attempt=attempt, conn=conn)
        seen.append(len(it.strikes) > before)
    assert seen == hit


async def test_a_request_that_our_own_validator_refused_is_not_struck(rig: Any):
    """Its 400 must reach the agent whole, or nobody could say why."""
    it = rig({"at": {"byte": 5}, "do": "cut"})
    await it.injector.before_turn(1)
    call = it.arrives()
    it.injector.refused(call)
    assert list(await it.ask(call)) == []
    assert not it.strikes


async def test_one_reply_is_limited_by_one_fault_only(rig: Any):
    """Two cuts of one reply would each have to prove itself; the first line of the plan counts."""
    it = rig({"at": {"byte": 5}, "do": "cut"}, {"at": {"byte": 50}, "do": "cut"})
    await it.injector.before_turn(1)
    await it.call()
    assert [strike.spot.at for strike in it.strikes] == [HEAD + 5]


async def test_a_healed_fault_does_not_strike_again(rig: Any):
    """The recovery message meets a whole world."""
    it = rig({"at": {"byte": 5}, "do": "cut", "times": "always", "sticks_to": "link"})
    await it.injector.before_turn(1)
    await it.call()
    await it.injector.after_turn(1)
    await it.injector.before_turn(2)
    await it.call(turn=2)
    await it.call(turn=1)
    assert len(it.strikes) == 1 and it.strikes[0].healed


# ---- proof


async def test_a_fault_has_fired_when_the_network_proves_it_and_says_which_call_it_hit(rig: Any):
    """The event carries the call's place and the bytes of its body that were let through."""
    it = rig({"at": {"step": 2, "event": 1}, "do": {"cut": {"then": "rst"}}})
    await it.injector.before_turn(1)
    await it.call(step=1)
    await it.call(step=2, attempt=1)
    assert not it.fired
    await it.strikes[0].hits("the kernel counted")
    (fired,) = it.fired
    assert (fired.turn, fired.step, fired.attempt, fired.call, fired.bytes) == (1, 2, 1, 2, 50)
    assert fired.proof == "the kernel counted"
    assert it.delivered[0] == (2, PartialDelivery(50, "cut"))


async def test_a_strike_that_hit_nothing_has_not_fired_and_no_more_than_its_limit_can_have_passed(rig: Any):
    """The connection ended before the byte: nobody is told of a fault that did not strike."""
    it = rig({"at": {"event": 1}, "do": "cut"})
    await it.injector.before_turn(1)
    await it.call()
    await it.injector.after_turn(1)
    assert not it.fired
    assert it.delivered == [(1, PartialDelivery(50, "cut"))]


async def test_faults_are_removed_in_the_reverse_order(rig: Any, settled: Any, manual_clock: Any):
    """A slow one that was made later stands behind the others, which wait until it has taken their bytes."""
    it = rig({"at": {"after_s": 1}, "do": {"latency": 2}}, {"at": {"after_s": 2}, "do": {"bandwidth": 1}})
    await it.injector.before_turn(1)
    await manual_clock.advance(3)
    latency, bandwidth = it.strikes
    bandwidth.heals.clear()
    healing = asyncio.create_task(it.injector.after_turn(1))
    await settled()
    assert not latency.healed
    bandwidth.heals.set()
    await healing
    assert latency.healed


async def test_a_fault_that_cannot_be_removed_breaks_the_run(rig: Any, settled: Any):
    """The next turn would meet it, and the agent would be blamed."""
    it = rig({"do": {"latency": 2}})
    await it.injector.before_turn(1)
    asking = asyncio.create_task(it.ask(it.arrives()))
    await settled()
    it.strikes[0].stays = NetworkError("the server is busy")
    await it.injector.after_turn(1)
    assert it.injector.broken.is_set()
    assert [event.what for event in it.history.of(Trouble)] == ["the network failed: the server is busy"]
    asking.cancel()


async def test_a_proof_that_is_found_while_the_fault_is_healed_still_counts(rig: Any, settled: Any):
    """An agent that ends at once can be faster than the network's count; its fault struck all the same."""
    it = rig({"at": {"event": 1}, "do": "cut"})
    await it.injector.before_turn(1)
    await it.call()
    it.strikes[0].proves_when_healed = True
    await it.injector.after_turn(1)
    await settled()
    assert [fired.proof for fired in it.fired] == ["counted at last"]
    assert set(it.delivered) == {(1, PartialDelivery(50, "cut"))}
    assert [healed.fault for healed in it.history.of(FaultHealed)] == [0]


async def test_a_strike_that_was_being_armed_when_its_turn_ended_is_healed_too(rig: Any, settled: Any):
    """Else the next turn would meet it."""
    it = rig({"at": {"event": 1}, "do": "cut"})
    await it.injector.before_turn(1)
    it.link.open.clear()
    asking = asyncio.create_task(it.call())
    await settled()
    await it.injector.after_turn(1)
    it.link.open.set()
    await asking
    assert [strike.healed for strike in it.strikes] == [True]


async def test_a_stall_that_ends_is_held_by_the_fake_and_never_asked_of_the_network(rig: Any, manual_clock: Any):
    """No byte is lost: the reply goes on after its time."""
    it = rig({"at": {"event": 1}, "do": {"stall": 30}})
    await it.injector.before_turn(1)
    call = it.arrives()
    assert list(await it.ask(call)) == [50]
    holding = asyncio.create_task(it.ask(call, at=50))
    await manual_clock.advance(29)
    assert not holding.done() and it.fired[0].bytes == 50
    await manual_clock.advance(1)
    assert holding.done() and not it.strikes
    assert it.injector.limits(call) is None


async def test_a_held_stall_is_let_go_when_its_turn_is_over(rig: Any, manual_clock: Any):
    """Nobody waits for the rest of it."""
    it = rig({"at": {"event": 1}, "do": {"stall": 30}})
    await it.injector.before_turn(1)
    call = it.arrives()
    await it.ask(call)
    holding = asyncio.create_task(it.ask(call, at=50))
    await manual_clock.advance(1)
    await it.injector.after_turn(1)
    await manual_clock.advance(0)
    assert holding.done()


async def test_after_s_delays_a_strike_at_its_spot(rig: Any, manual_clock: Any):
    """The reply stands at the event until the time has come."""
    it = rig({"at": {"event": 2, "after_s": 3}, "do": "cut"})
    await it.injector.before_turn(1)
    call = it.arrives()
    assert list(await it.ask(call)) == [120]
    holding = asyncio.create_task(it.ask(call, at=120))
    await manual_clock.advance(2.9)
    assert not it.strikes
    await manual_clock.advance(0.2)
    assert holding.done() and it.strikes[0].spot.at == HEAD + 120


async def test_every_reply_on_a_slow_link_is_late_though_only_the_first_was_struck(rig: Any, manual_clock: Any):
    """The second attempt hangs up too soon, the third waits: it is whole when its last byte can have arrived."""
    it = rig({"do": {"latency": 2}})
    await it.injector.before_turn(1)
    for call in (1, 2, 3):
        it.arrives(attempt=call)
        for stop in (-1, *([-1] if call == 1 else [])):
            await it.ask(call, at=stop, conn=call)
        it.injector.ended(call, True)
        assert it.injector.limits(call) == "slowed"
    await manual_clock.advance(1.9)
    it.injector.closed(2)
    assert it.delivered == [(2, PartialDelivery(0, "slowed", headers=False))]
    await manual_clock.advance(0.2)
    assert it.delivered[1:] == [(1, None), (3, None)]
    assert len(it.strikes) == 1


async def test_who_leaves_a_slow_link_as_the_last_byte_arrives_has_the_whole_reply(rig: Any, manual_clock: Any):
    """Its close is told some milliseconds before or after that moment; it must not count as half a reply."""
    it = rig({"do": {"latency": 2}})
    await it.injector.before_turn(1)
    call = it.arrives()
    for _ in range(2):
        await it.ask(call)
    it.injector.ended(call, True)
    await manual_clock.advance(1.99)
    it.injector.closed(call)
    assert it.delivered == [(call, None)]


async def test_a_fault_on_every_attempt_slows_its_link_once(rig: Any, settled: Any):
    """Delays of one fault do not add up; each attempt has its own proof."""
    it = rig({"do": {"latency": 60}, "times": "always"})
    await it.injector.before_turn(1)
    for attempt in (1, 2, 3):
        await it.call(attempt=attempt, conn=attempt)
    assert len(it.strikes) == 1
    await it.strikes[0].hits()
    await settled()
    assert [event.call for event in it.fired] == [1, 2, 3]
    await it.injector.after_turn(1)
    assert it.strikes[0].healed


async def test_a_slow_link_delays_the_first_bytes_of_a_second_attempt_too(rig: Any, manual_clock: Any):
    """The trigger names a byte; only in the first attempt have the bytes before it arrived."""
    it = rig({"at": {"byte": 120}, "do": {"latency": 60}, "times": "always"})
    await it.injector.before_turn(1)
    for attempt in (1, 2):
        call = it.arrives(attempt=attempt)
        assert list(await it.ask(call, conn=attempt)) == [120]
        await it.ask(call, at=120, conn=attempt)
        it.injector.ended(call, True)
        await manual_clock.advance(1)
        it.injector.closed(call)
    assert it.delivered == [(1, PartialDelivery(120, "slowed")), (2, PartialDelivery(0, "slowed", headers=False))]


async def test_an_agent_that_reads_a_short_reply_on_a_narrow_link_and_closes_has_all_of_it(rig: Any, manual_clock: Any):
    """The fault sticks to the link, and the reply is written in two parts: 300 bytes at 1.67 MB/s."""
    it = rig({"at": {"byte": 1}, "do": {"bandwidth": 1670}, "times": "always", "sticks_to": "link"})
    await it.injector.before_turn(1)
    for call in (1, 2):
        it.arrives(step=call)
        assert list(await it.ask(call, conn=call)) == [1]
        await manual_clock.advance(0.004)
        await it.ask(call, at=1, conn=call)
        it.injector.ended(call, True)
        await manual_clock.advance(0.07)
        it.injector.closed(call)
    assert dict(it.delivered) == {1: None, 2: None}


async def test_who_waits_until_a_slow_link_is_healed_gets_the_whole_reply(rig: Any, manual_clock: Any):
    """Healed in its turn it lets pass what was late; what comes after the turn is too late for it."""
    for heals, cut in ((3, None), (9, PartialDelivery(0, "slowed", headers=False))):
        it = rig({"do": {"latency": 60}, "heal": {"after_s": heals}})
        await it.injector.before_turn(1)
        call = it.arrives()
        await it.ask(call)
        it.injector.ended(call, True)
        await it.strikes[0].hits()
        await manual_clock.advance(5)
        await it.injector.after_turn(1)
        assert it.delivered == [(call, cut)]


async def test_a_reply_that_is_under_way_when_its_link_becomes_slow_is_late_from_there_on(rig: Any, manual_clock: Any):
    """What was written before has arrived."""
    it = rig({"at": {"after_s": 3}, "do": {"latency": 60}})
    await it.injector.before_turn(1)
    call = it.arrives()
    await it.ask(call)
    await manual_clock.advance(4)
    await it.ask(call, at=120)
    await manual_clock.advance(5)
    it.injector.closed(call)
    assert it.delivered == [(call, PartialDelivery(120, "slowed"))]


@pytest.mark.parametrize(("seconds", "at"), [(0.4, 51), (0.6, 52), (2.0, 55)])
async def test_a_drip_has_let_through_what_its_time_allowed(rig: Any, manual_clock: Any, seconds: float, at: int):
    """One byte every half second, from its trigger until the agent hung up."""
    it = rig({"at": {"event": 1}, "do": {"drip": 0.5}})
    await it.injector.before_turn(1)
    call = it.arrives()
    await it.ask(call)
    await it.ask(call, at=50)
    assert it.injector.limits(call) == "slowed"
    await manual_clock.advance(seconds)
    it.injector.closed(call)
    assert it.delivered == [(call, PartialDelivery(at, "slowed"))]
    assert it.injector.limits(call) is None


# ---- before a request


async def test_a_refused_connection_is_armed_before_the_turn_and_keeps_requests_away(rig: Any, settled: Any):
    """It counts as fired when our own probe was refused; healing opens the port again."""
    it = rig({"at": {"phase": "connect"}, "do": "refuse"})
    await it.injector.before_turn(1)
    assert it.strikes[0].spot == WholeLink()
    assert it.injector.keeps_requests_away
    await it.strikes[0].hits("our own connect was refused")
    assert (it.fired[0].call, it.fired[0].turn) == (None, 1)
    await it.injector.after_turn(1)
    await settled()
    assert it.strikes[0].healed and not it.injector.keeps_requests_away


@pytest.mark.parametrize(("paid", "armed"), [(True, 1), (False, 0)])
async def test_a_connection_is_refused_for_step_two_once_the_reply_of_step_one_has_arrived(
    rig: Any, manual_clock: Any, paid: bool, armed: int
):
    """Not before its bytes have crossed, and not after a reply that was itself an error."""
    it = rig({"at": {"step": 2, "phase": "connect"}, "do": "refuse"})
    await it.injector.before_turn(1)
    call = it.arrives(step=1)
    await it.ask(call)
    it.injector.ended(call, paid)
    assert not it.strikes
    await manual_clock.advance(0.1)
    assert len(it.strikes) == armed


async def test_an_upload_is_stalled_by_arming_while_the_reply_before_it_holds_its_last_byte(rig: Any):
    """The agent cannot send its next request before it has the whole reply, and then the link is ready."""
    it = rig({"at": {"step": 2, "phase": "request", "byte": 300}, "do": {"stall": "forever"}})
    await it.injector.before_turn(1)
    call = it.arrives(step=1)
    assert list(await it.ask(call)) == [BODY - 1]
    assert not it.strikes
    await it.ask(call, at=BODY - 1)
    assert it.strikes[0].spot == Upstream(300)
    assert it.injector.closes_after(call), "the next request must come on a fresh connection"


async def test_an_upload_of_the_first_step_is_armed_before_the_turn(rig: Any):
    """And the reply of the turn before it closes its connection."""
    it = rig({"at": {"turn": 2, "phase": "request"}, "do": "cut"})
    await it.injector.before_turn(1)
    assert not it.strikes
    assert it.injector.closes_after(it.arrives(turn=1, step=3))
    await it.injector.after_turn(1)
    await it.injector.before_turn(2)
    assert it.strikes[0].spot == Upstream(0)


async def test_a_reply_that_was_cut_while_it_was_still_being_written_ends_as_soon_as_that_is_noticed(rig: Any):
    """A paced reply: the proof comes before the fake's own end of it, and not with the end of the turn."""
    it = rig({"at": {"event": 1}, "do": "cut"})
    await it.injector.before_turn(1)
    await it.call()
    await it.strikes[0].hits()
    it.delivered.clear()
    it.injector.ended(1, paid=True)
    assert it.delivered == [(1, PartialDelivery(50, "cut"))]


@pytest.mark.parametrize(
    "words", [{"at": {"phase": "request"}, "do": "cut"}, {"at": {"phase": "connect"}, "do": "refuse"}]
)
async def test_of_a_request_that_never_arrived_nobody_says_which_it_was(rig: Any, words: dict[str, Any]):
    """It is the next one, and a title may come before the conversation."""
    it = rig(words)
    await it.injector.before_turn(1)
    await it.strikes[0].hits()
    assert (it.fired[0].turn, it.fired[0].step, it.fired[0].attempt, it.fired[0].call) == (1, None, None, None)


async def test_a_fault_on_every_upload_rests_when_it_is_healed(rig: Any, settled: Any):
    """`times: always` arms once more after each proof, and never after the end."""
    it = rig({"at": {"phase": "request", "byte": 9}, "do": "cut", "times": "always"})
    await it.injector.before_turn(1)
    for count in range(3):
        await it.strikes[count].hits()
    await it.injector.after_turn(1)
    await settled()
    assert len(it.strikes) == 4 and all(strike.healed for strike in it.strikes)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_fault_on_uploads_strikes_as_many_requests_as_it_says(rig: Any):
    """Each is armed when the one before has hit."""
    it = rig({"at": {"phase": "request", "byte": 9}, "do": "cut", "times": 2})
    await it.injector.before_turn(1)
    await it.strikes[0].hits()
    assert len(it.strikes) == 2
    await it.strikes[1].hits()
    assert (len(it.strikes), len(it.fired)) == (2, 2)


async def test_closes_after_is_said_of_no_other_reply(rig: Any):
    """Keep-alive is part of what agents live with."""
    it = rig({"at": {"step": 3, "phase": "request"}, "do": "cut"})
    await it.injector.before_turn(1)
    assert [it.injector.closes_after(it.arrives(step=step)) for step in (1, 2, 3)] == [False, True, False]
    assert it.injector.closes_after(99) is False


# ---- timers and beacons


async def test_an_abort_is_demanded_when_its_time_has_come(rig: Any, manual_clock: Any):
    """Seconds count from the turn's start, and the demand says how long the front end waits by its own rule."""
    it = rig({"link": "channel", "at": {"after_s": 8}, "do": "give_up"})
    await it.injector.before_turn(1)
    await manual_clock.advance(7.9)
    assert it.injector.demands.empty() and not it.fired
    await manual_clock.advance(0.2)
    assert it.injector.demands.get_nowait() == ("give_up", 8)
    assert it.fired[0].proof == "the harness did it"


async def test_a_timer_that_its_turn_outran_never_fires(rig: Any, manual_clock: Any):
    """The turn was over before."""
    it = rig({"at": {"after_s": 8}, "do": "abort"})
    await it.injector.before_turn(1)
    await manual_clock.advance(5)
    await it.injector.after_turn(1)
    await manual_clock.advance(10)
    assert it.injector.demands.empty() and not it.fired


async def test_a_demand_that_nobody_obeyed_in_its_turn_does_not_reach_the_next(rig: Any, manual_clock: Any):
    """The agent ended in the same moment: the recovery message must not be aborted for it."""
    it = rig({"at": {"after_s": 8}, "do": "abort"})
    await it.injector.before_turn(1)
    await manual_clock.advance(9)
    await it.injector.after_turn(1)
    await it.injector.before_turn(2)
    assert it.injector.demands.empty()


async def test_a_link_goes_down_for_its_time_and_comes_back_in_mid_turn(rig: Any, manual_clock: Any):
    """`down: 5` at second 2 is healed at second 7."""
    it = rig({"at": {"after_s": 2}, "do": {"down": 5}})
    await it.injector.before_turn(1)
    assert not it.strikes
    await manual_clock.advance(2)
    await it.strikes[0].hits()
    await manual_clock.advance(4.9)
    assert not it.strikes[0].healed
    await manual_clock.advance(0.2)
    assert it.strikes[0].healed
    assert [event.fault for event in it.history.of(FaultHealed)] == [0]


@pytest.mark.parametrize(
    ("at", "back_s"), [({"phase": "connect"}, 11.0), ({"step": 2, "phase": "connect"}, 3.0), ({"after_s": 2}, 3.0)]
)
async def test_the_time_in_which_a_link_is_down_begins_when_the_agent_would_ask(
    rig: Any, manual_clock: Any, at: dict[str, Any], back_s: float
):
    """An agent that takes 8 s to start would never meet 3 s at the turn's beginning; later it has started."""
    it = rig({"at": at, "do": {"down": 3}})
    it.history.add(RunStarted(scenario="s", agent="a", network="n", time_scale=1, started="", start_up_s=8.0))
    await it.injector.before_turn(1)
    call = it.arrives()
    if "step" in at:
        await it.ask(call)
        it.injector.ended(call, paid=True)
    await manual_clock.advance(2.1)
    await it.strikes[0].hits()
    await manual_clock.advance(back_s - 0.1)
    assert not it.strikes[0].healed
    await manual_clock.advance(0.2)
    assert it.strikes[0].healed


async def test_heal_after_s_counts_from_the_proof(rig: Any, manual_clock: Any):
    """`heal: {after_s: 30}` in the middle of a turn."""
    it = rig({"at": {"byte": 5}, "do": {"stall": "forever"}, "heal": {"after_s": 30}})
    await it.injector.before_turn(1)
    await it.call()
    await manual_clock.advance(50)
    assert not it.strikes[0].healed, "nothing to heal before it has hit"
    await it.strikes[0].hits()
    await manual_clock.advance(29)
    assert not it.strikes[0].healed
    await manual_clock.advance(2)
    assert it.strikes[0].healed


@pytest.mark.parametrize(
    ("token", "phase", "meets"),
    [
        ("1.1.1", "started", True),
        ("1.1.1", "done", False),
        ("1.1.2", "started", False),
        ("1.2.1", "started", False),
        ("2.1.1", "started", False),
    ],
)
async def test_a_beacon_sets_off_the_fault_of_exactly_its_tool_call(
    rig: Any, settled: Any, token: str, phase: Any, meets: bool
):
    """Turn, step and call, and whether the command has started or is done."""
    it = rig({"at": {"tool": 1}, "do": "abort"})
    await it.injector.before_turn(1)
    await it.call()
    assert not it.strikes, "a trigger on a tool is none on the reply"
    it.injector.beacon(token, phase)
    await settled()
    assert it.injector.demands.empty() is not meets


async def test_a_beacon_sets_its_fault_off_once(rig: Any, settled: Any):
    """A command that is run again leaves the same trace."""
    it = rig({"at": {"tool": 1, "when": "done"}, "do": "abort"})
    await it.injector.before_turn(1)
    it.injector.beacon("1.1.1", "done")
    it.injector.beacon("1.1.1", "done")
    await settled()
    assert it.injector.demands.qsize() == 1 and len(it.fired) == 1


# ---- what the model says


async def test_a_status_replaces_the_answer_and_has_fired_when_it_was_said(rig: Any):
    """Asked twice for one call, it counts one attempt."""
    it = rig({"do": {"status": {"code": 429, "retry_after": 7}}, "times": 2})
    await it.injector.before_turn(1)
    said = [it.answer(it.arrives(attempt=attempt), Reply((Text("Hi"),))) for attempt in (1, 2, 3)]
    assert [isinstance(answer, Failure) for answer in said] == [True, True, False]
    assert said[0].status == 429
    assert [fired.call for fired in it.fired] == [1, 2]


async def test_an_edit_of_the_stream_has_fired_only_where_the_fake_says_it_applied(rig: Any):
    """A reply that is not streamed, or too short, has nothing to edit."""
    it = rig({"at": {"event": 2}, "do": "early_end"})
    await it.injector.before_turn(1)
    call = it.arrives()
    answer = it.answer(call, Reply((Text("Hi"),)))
    assert answer.edits[0].event == 2 and not it.fired
    it.injector.edited(call, ())
    assert not it.fired
    it.injector.edited(call, ("early_end",))
    assert [fired.call for fired in it.fired] == [call]


async def test_an_edit_in_the_middle_leaves_its_event_to_the_stream(rig: Any):
    """Only the fake provider knows how many events a reply has."""
    it = rig({"at": {"phase": "middle"}, "do": "early_end"})
    await it.injector.before_turn(1)
    assert it.answer(it.arrives(), Reply((Text("Hi"),))).edits[0].event == HALF


async def test_a_fault_that_finds_nothing_to_harm_has_not_fired(rig: Any):
    """Arguments cannot be garbage where no tool is called; where one is, they are, and the fault is proved."""
    it = rig({"do": "garbage_arguments", "times": 2})
    await it.injector.before_turn(1)
    words = Reply((Text("Hi"),))
    assert it.answer(it.arrives(), words) == words
    assert not it.fired
    call = it.arrives()
    harmed = it.answer(call, Reply((ToolCall("shell", {"command": "ls"}),)))
    assert harmed.items[0].raw_args
    assert [fired.call for fired in it.fired] == [call]


async def test_endless_tools_go_on_in_every_later_step(rig: Any):
    """From the trigger's step to the end of the turn, whatever the script says there."""
    it = rig({"at": {"step": 2}, "do": "endless_tools"})
    await it.injector.before_turn(1)
    script = Reply((ToolCall("shell", {"command": "ls"}),))
    said = [it.answer(it.arrives(step=step), script) for step in (1, 2, 3, 9)]
    assert [answer == script for answer in said] == [True, False, False, False]
    assert it.answer(it.arrives(turn=2), script) == script


async def test_endless_tools_of_one_model_leave_the_others_alone(rig: Any):
    """A fallback model answers as it should."""
    it = rig({"at": {"model_name": "m1"}, "do": "endless_tools"})
    await it.injector.before_turn(1)
    script = Reply((ToolCall("shell", {"command": "ls"}),))
    assert it.answer(it.arrives(model="m2", step=2), script) == script
    assert it.answer(it.arrives(model="m1"), script) != script
    assert it.answer(it.arrives(model="m1", step=2), script) != script


# ---- connections that a fault ends, and agents that do not wait


@pytest.mark.parametrize("do", ["refuse", {"down": "forever"}])
async def test_a_link_that_closes_in_mid_reply_is_opened_again_though_its_own_reply_died_with_it(
    rig: Any, manual_clock: Any, do: Any
):
    """The fault ends the very connection whose gate is being asked; nobody is left there who could heal it."""
    it = rig({"at": {"event": 1}, "do": do})
    await it.injector.before_turn(1)
    call = it.arrives()
    assert list(await it.ask(call)) == [50]
    it.link.told.clear()
    asking = asyncio.create_task(it.ask(call, at=50))
    await manual_clock.advance(0.1)
    assert [strike.spot for strike in it.strikes] == [WholeLink()], "the port is shut, and our probe is on its way"
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    it.injector.ended(call, paid=True)
    assert it.delivered == [(call, PartialDelivery(50, "cut"))]
    it.link.told.set()
    await manual_clock.advance(0)
    await it.strikes[0].hits("our own connect was refused")
    assert [(fired.call, fired.bytes) for fired in it.fired] == [(call, 50)]
    await it.injector.after_turn(1)
    assert [strike.healed for strike in it.strikes] == [True]


@pytest.mark.parametrize("at", [{"phase": "connect"}, {"after_s": 1}, {"event": 1}])
async def test_healing_waits_for_a_port_that_is_just_being_closed(rig: Any, manual_clock: Any, at: dict[str, Any]):
    """It would come too early otherwise, and the port would stay closed."""
    it = rig({"at": {"step": 2, **at} if "phase" in at else at, "do": "refuse"})
    await it.injector.before_turn(1)
    call = it.arrives()
    await it.ask(call)
    it.link.told.clear()
    asking = asyncio.create_task(it.ask(call, at=50))
    it.injector.ended(call, paid=True)
    await manual_clock.advance(1.1)
    healing = asyncio.create_task(it.injector.after_turn(1))
    await manual_clock.advance(0)
    assert len(it.strikes) == 1 and not healing.done()
    it.link.told.set()
    await asyncio.gather(healing, asking)
    assert it.strikes[0].healed


@pytest.mark.parametrize("do", ["refuse", {"down": "forever"}])
async def test_a_link_closes_at_the_event_that_its_trigger_names_and_not_before(rig: Any, manual_clock: Any, do: Any):
    """The fake stops there, the bytes before it get their moment to arrive, and no more follow until it is healed."""
    it = rig({"at": {"event": 2}, "do": do})
    await it.injector.before_turn(1)
    call = it.arrives()
    assert list(await it.ask(call)) == [120]
    await manual_clock.advance(5)
    assert not it.strikes and it.injector.limits(call) is None
    holding = asyncio.create_task(it.ask(call, at=120))
    await manual_clock.advance(0)
    assert not it.strikes and it.injector.limits(call) == "cut"
    await manual_clock.advance(0.1)
    assert [strike.spot for strike in it.strikes] == [WholeLink()]
    assert not holding.done()
    await it.injector.after_turn(1)
    await holding


@pytest.mark.parametrize("do", ["refuse", {"down": "forever"}])
async def test_a_request_that_is_faster_than_the_refusal_before_it_is_held_and_was_cut(
    rig: Any, manual_clock: Any, do: Any
):
    """It came on the open connection in the moment before that was closed; without a hold it would slip through."""
    it = rig({"at": {"step": 2, "phase": "connect"}, "do": do})
    await it.injector.before_turn(1)
    first = it.arrives(step=1)
    await it.ask(first)
    it.injector.ended(first, paid=True)
    fast = it.arrives(step=2)
    asking = asyncio.create_task(it.ask(fast))
    await manual_clock.advance(0)
    assert not it.strikes, "the reply before it is still on its way"
    assert it.injector.limits(fast) == "cut"
    await manual_clock.advance(0.1)
    assert len(it.strikes) == 1 and not asking.done()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    it.injector.ended(fast, paid=True)
    assert it.delivered == [(fast, PartialDelivery(0, "cut", headers=False))]
    await it.injector.after_turn(1)
    assert it.strikes[0].healed


async def test_only_the_step_that_is_refused_is_held(rig: Any, manual_clock: Any):
    """A background call passes, and so does the next step once all is healed."""
    it = rig({"at": {"step": 2, "phase": "connect"}, "do": "refuse"})
    await it.injector.before_turn(1)
    first = it.arrives(step=1)
    await it.ask(first)
    it.injector.ended(first, paid=True)
    await it.call(step=2, background="title")
    await it.injector.after_turn(1)
    await it.call(step=2)
    assert it.link.admitted[-1][0] == (PEER[0], PEER[1] + 1)


async def test_a_closing_link_drops_every_reply_that_is_under_way(rig: Any, manual_clock: Any):
    """It takes all its connections with it, not only the one that set it off; nobody hung up on them."""
    it = rig({"at": {"after_s": 2}, "do": {"down": 5}})
    await it.injector.before_turn(1)
    over, open_ = it.arrives(), it.arrives(background="title")
    it.injector.ended(over, paid=True)
    await it.ask(open_)
    await manual_clock.advance(2)
    later = it.arrives(attempt=2)
    assert [it.injector.dropped(call) for call in (over, open_, later)] == [False, True, False]


async def test_a_refusal_of_our_own_validator_is_late_on_a_slow_link_too(rig: Any, manual_clock: Any):
    """The link slows whatever passes; an agent that hangs up before has not read it."""
    it = rig({"do": {"latency": 2}})
    await it.injector.before_turn(1)
    await it.call()
    wrong = it.arrives(step=2)
    it.injector.refused(wrong)
    await it.ask(wrong, conn=2)
    it.injector.ended(wrong, False)
    await manual_clock.advance(1)
    it.injector.closed(wrong)
    assert it.delivered == [(wrong, PartialDelivery(0, "slowed", headers=False))]
    assert len(it.strikes) == 1


@pytest.mark.parametrize(("at", "headers"), [({"phase": "headers"}, False), ({"byte": 0}, True), ({"byte": 9}, True)])
@pytest.mark.parametrize("do", ["cut", {"stall": "forever"}, {"drip": 1}])
async def test_the_headers_have_arrived_if_they_come_before_the_fault(rig: Any, at: Any, headers: bool, do: Any):
    """Then the agent knows the status, whatever becomes of the body."""
    it = rig({"at": at, "do": do})
    await it.injector.before_turn(1)
    call = it.arrives()
    for stop in await it.ask(call):
        await it.ask(call, at=stop)
    await it.strikes[0].hits()
    it.injector.ended(call, True)
    await it.injector.after_turn(1)
    (_, cut), *_ = it.delivered
    assert cut.headers is headers


async def test_a_page_link_that_closes_drops_no_reply_of_the_model(rig: Any, manual_clock: Any):
    """Each link has connections of its own."""
    it = rig({"link": "tool:web", "at": {"after_s": 2}, "do": "refuse"})
    await it.injector.before_turn(1)
    call = it.arrives()
    await manual_clock.advance(2)
    assert it.strikes and not it.injector.dropped(call)


@pytest.mark.parametrize(("fault", "before"), [({"cut": "fin"}, True), ({"stall": "forever"}, False)])
async def test_a_connection_that_a_cut_or_the_end_of_a_stall_closes_is_dropped(rig: Any, fault: Any, before: bool):
    """The fake may see it close when the fault is healed already; nobody hung up on it."""
    it = rig({"at": {"event": 1}, "do": fault})
    await it.injector.before_turn(1)
    await it.call()
    assert it.injector.dropped(1) is before
    await it.injector.after_turn(1)
    assert it.injector.limits(1) is None and it.injector.dropped(1)


async def test_a_stall_that_the_agent_left_drops_nothing_when_it_is_healed(rig: Any):
    """The agent hung up before."""
    it = rig({"at": {"event": 1}, "do": {"stall": "forever"}})
    await it.injector.before_turn(1)
    await it.call()
    it.injector.closed(1)
    await it.injector.after_turn(1)
    assert not it.injector.dropped(1)


# ---- stalls that nobody waits at


@pytest.mark.parametrize("hung_up_first", [False, True])
async def test_a_proven_stall_whose_agent_hung_up_is_healed_at_once(rig: Any, settled: Any, hung_up_first: bool):
    """Held ends add up on a link; one whose agent still waits is left alone until its turn is over."""
    it = rig({"at": {"event": 1}, "do": {"stall": "forever"}, "times": "always"})
    await it.injector.before_turn(1)
    left, waiting = it.arrives(), it.arrives(attempt=2)
    await it.ask(left, conn=1)
    await it.ask(waiting, conn=2)
    await it.strikes[1].hits()
    if hung_up_first:
        it.injector.closed(left)
        await settled()
        assert not it.strikes[0].healed, "nothing proves yet how much it got"
    await it.strikes[0].hits()
    if not hung_up_first:
        assert not it.strikes[0].healed
        it.injector.closed(left)
        await settled()
    assert [strike.healed for strike in it.strikes] == [True, False]
    assert not list(it.history.of(FaultHealed)), "the fault itself goes on"
    await it.injector.after_turn(1)
    assert it.strikes[1].healed and not list(it.history.of(FaultUnproven))


async def test_a_heal_that_is_under_way_is_finished_before_the_turn_is_over(rig: Any, settled: Any):
    """Else the next turn's first strike would meet an end that is still held."""
    it = rig({"at": {"event": 1}, "do": {"stall": "forever"}})
    await it.injector.before_turn(1)
    await it.call()
    strike = it.strikes[0]
    await strike.hits()
    strike.heals.clear()
    it.injector.closed(1)
    ending = asyncio.create_task(it.injector.after_turn(1))
    await settled()
    assert not ending.done()
    strike.heals.set()
    await ending
    assert strike.healed


async def test_a_turn_that_ends_while_its_fault_is_being_healed_waits_for_it(rig: Any, manual_clock: Any):
    """`heal: {after_s: 30}`, and the agent ends in the same moment."""
    it = rig({"at": {"byte": 5}, "do": {"stall": "forever"}, "heal": {"after_s": 30}})
    await it.injector.before_turn(1)
    await it.call()
    await it.strikes[0].hits()
    it.strikes[0].heals.clear()
    await manual_clock.advance(31)
    ending = asyncio.create_task(it.injector.after_turn(1))
    await manual_clock.advance(0)
    assert not ending.done()
    it.strikes[0].heals.set()
    await ending
    assert [event.fault for event in it.history.of(FaultHealed)] == [0]


# ---- strikes without a proof


@pytest.mark.parametrize("do", ["cut", {"cut": "rst"}, {"stall": "forever"}])
async def test_a_strike_that_never_proves_itself_is_told_when_it_is_healed(rig: Any, do: Any):
    """How much the agent got is unknown, and no verdict can rest on it."""
    it = rig({"at": {"event": 1}, "do": do}, {"at": {"attempt": 2, "event": 1}, "do": do})
    await it.injector.before_turn(1)
    await it.call()
    await it.call(attempt=2)
    await it.strikes[1].hits()
    assert not list(it.history.of(FaultUnproven)), "it may still prove itself"
    await it.injector.after_turn(1)
    assert [(event.fault, event.name, event.call) for event in it.history.of(FaultUnproven)] == [
        (0, it.strikes[0].fault.name, 1)
    ]


@pytest.mark.parametrize(
    "words",
    [
        {"at": {"event": 1}, "do": {"drip": 0.5}},
        {"at": {"event": 1}, "do": {"latency": 1}},
        {"at": {"phase": "request", "byte": 5}, "do": "cut"},
    ],
)
async def test_what_loses_no_byte_of_a_reply_needs_no_proof(rig: Any, words: dict[str, Any]):
    """A pace, a delay, an upload: such a fault has fired or it has not."""
    it = rig(words)
    await it.injector.before_turn(1)
    call = it.arrives()
    await it.ask(call)
    await it.ask(call, at=50)
    assert it.strikes
    await it.injector.after_turn(1)
    assert not list(it.history.of(FaultUnproven))


# ---- the gate's last question


async def test_the_link_admits_a_write_after_all_else(rig: Any, settled: Any):
    """While a strike is being armed nothing is admitted: the armed limit might be another's by then."""
    it = rig({"at": {"event": 1}, "do": "cut"})
    await it.injector.before_turn(1)
    it.link.open.clear()
    asking = asyncio.create_task(it.call(carried=7))
    await settled()
    assert it.link.admitted == []
    it.link.open.set()
    await asking
    assert [carried for _, carried in it.link.admitted] == [7]


async def test_a_reply_that_was_held_is_admitted_after_its_hold(rig: Any, manual_clock: Any):
    """Thirty seconds ago the link was free; that says nothing about now."""
    it = rig({"at": {"event": 1}, "do": {"stall": 30}})
    await it.injector.before_turn(1)
    call = it.arrives()
    await it.ask(call)
    holding = asyncio.create_task(it.ask(call, at=50))
    await manual_clock.advance(29)
    assert len(it.link.admitted) == 1
    await manual_clock.advance(2)
    await holding
    assert [carried for _, carried in it.link.admitted] == [0, HEAD + 50]


async def test_a_reply_that_comes_out_of_its_hold_waits_for_a_limit_armed_meanwhile(rig: Any, manual_clock: Any):
    """Two gates at once: one is held, the other is struck, and the first may not write into the other's limit."""
    it = rig({"at": {"event": 1}, "do": {"stall": 30}}, {"at": {"attempt": 2, "byte": 0}, "do": "cut"})
    await it.injector.before_turn(1)
    held, struck = it.arrives(), it.arrives(attempt=2)
    await it.ask(held, conn=1)
    holding = asyncio.create_task(it.ask(held, at=50, conn=1))
    await manual_clock.advance(10)
    await it.ask(struck, conn=2)
    it.link.alone = it.strikes[0].spot.conn
    await manual_clock.advance(30)
    assert not holding.done(), "the hold is over, and the link is not free"
    it.link.give_way()
    await manual_clock.advance(0)
    assert holding.done()


async def test_two_gates_at_once_are_struck_and_proved_each_by_its_own(rig: Any, settled: Any):
    """Parallel requests: each limit lies on its own connection, and their proofs may come in any order."""
    it = rig({"at": {"event": 1}, "do": "cut", "times": 2})
    await it.injector.before_turn(1)
    it.link.open.clear()
    calls = [it.arrives(), it.arrives(attempt=2)]
    asking = [asyncio.create_task(it.ask(call, conn=call, carried=1000 * call)) for call in calls]
    await settled()
    it.link.open.set()
    await asyncio.gather(*asking)
    assert [strike.spot for strike in it.strikes] == [
        Downstream((PEER[0], PEER[1] + call), 1000 * call + HEAD + 50) for call in calls
    ]
    await it.strikes[1].hits()
    assert it.delivered == [(2, PartialDelivery(50, "cut"))]
    await it.strikes[0].hits()
    assert it.delivered[1:] == [(1, PartialDelivery(50, "cut"))]
    assert [fired.call for fired in it.fired] == [2, 1]


async def test_a_strike_whose_gate_is_cancelled_while_it_is_armed_is_healed_all_the_same(rig: Any, settled: Any):
    """The agent hung up in that very moment; half a strike would be healed by nobody."""
    it = rig({"at": {"event": 1}, "do": "cut"})
    await it.injector.before_turn(1)
    it.link.told.clear()
    asking = asyncio.create_task(it.call())
    await settled()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    it.link.told.set()
    await settled()
    await it.injector.after_turn(1)
    assert [strike.healed for strike in it.strikes] == [True]


# ---- turns and trouble


async def test_only_the_faults_of_a_turn_are_armed_with_it(rig: Any):
    """Each is told once, with its place in the plan."""
    it = rig({"do": "cut"}, {"at": {"turn": 2}, "do": "cut"})
    await it.injector.before_turn(1)
    assert [armed.fault for armed in it.history.of(FaultArmed)] == [0]
    await it.injector.before_turn(2)
    assert [armed.fault for armed in it.history.of(FaultArmed)] == [0, 1]


async def test_a_network_that_fails_while_a_fault_is_armed_makes_the_run_an_error(rig: Any, settled: Any):
    """The reply stays held, the run is told to stop, and the trouble is said once."""
    it = rig({"at": {"byte": 5}, "do": "cut"})
    await it.injector.before_turn(1)
    it.link.broken = NetworkError("it died")
    asking = asyncio.create_task(it.call())
    await settled()
    assert it.injector.broken.is_set() and not asking.done()
    it.injector.network_died()
    assert [trouble.what for trouble in it.history.of(Trouble)] == ["the network failed: it died"]
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


async def test_a_network_that_fails_before_a_turn_makes_the_run_an_error_too(rig: Any):
    """Arming a refused connection must not raise into the runner."""
    it = rig({"at": {"phase": "connect"}, "do": "refuse"})
    it.link.broken = NetworkError("it died")
    await it.injector.before_turn(1)
    assert it.injector.broken.is_set()


@pytest.mark.parametrize(
    ("wrong", "is_error"),
    [
        (NetworkError("it died"), True),
        (LinkBusyError("another reply is under way"), False),
        (ConnectionGoneError("it is gone"), False),
    ],
)
async def test_a_network_that_fails_behind_a_client_that_has_gone_is_told_once(
    rig: Any, settled: Any, wrong: NetworkError, is_error: bool
):
    """The run is an error, unless only the client's own connection was missing; no traceback is printed."""
    printed: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: printed.append(context))
    it = rig({"at": {"byte": 5}, "do": "cut"})
    await it.injector.before_turn(1)
    it.link.open.clear()
    asking = asyncio.create_task(it.call())
    await settled()
    asking.cancel()
    await settled()
    it.link.broken = wrong
    it.link.open.set()
    await settled()
    gc.collect()
    assert (printed, it.injector.broken.is_set()) == ([], is_error)


async def test_a_client_that_left_just_before_its_fault_was_armed_is_no_failure_of_the_network(rig: Any):
    """The fake may hear of it a moment later than the network: its reply goes on, and the fault hit nobody."""
    it = rig({"at": {"byte": 5}, "do": "cut"})
    await it.injector.before_turn(1)
    it.link.broken = ConnectionGoneError("no open connection")
    assert list(await it.call()) == []
    assert not it.injector.broken.is_set() and not list(it.history.of(Trouble))
    assert [note.what for note in it.history.of(Note)] == ["cut on llm at 1.1: there was nothing to hit"]
    await it.injector.after_turn(1)
    assert not it.fired and not list(it.history.of(FaultUnproven))


async def test_two_calls_at_the_same_time_make_their_link_slow_once(rig: Any, settled: Any):
    """One fault on two requests is no delay of twice its time."""
    it = rig({"do": {"latency": 2}, "times": "always"})
    await it.injector.before_turn(1)
    it.link.open.clear()
    asking = [asyncio.create_task(it.call(conn=conn)) for conn in (1, 2)]
    await settled()
    it.link.open.set()
    await settled()
    assert len(it.strikes) == 1
    for one in asking:
        one.cancel()


async def test_closing_heals_everything_and_leaves_no_task(rig: Any, manual_clock: Any):
    """Timers of a turn that was broken off too."""
    it = rig({"at": {"byte": 5}, "do": {"stall": "forever"}}, {"at": {"after_s": 100}, "do": "abort"})
    await it.injector.before_turn(1)
    await it.call()
    await it.injector.close()
    assert it.strikes[0].healed
    await manual_clock.advance(200)
    assert not it.fired
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_closing_right_after_a_turn_began_leaves_nothing_half_begun(rig: Any):
    """A timer that was never waited for is no warning about a coroutine that nobody awaited."""
    it = rig({"at": {"after_s": 100}, "do": "abort"})
    await it.injector.before_turn(1)
    await it.injector.close()
    gc.collect()
    assert asyncio.all_tasks() == {asyncio.current_task()}


# ---- a break in the middle of a reply

MIDDLE = {"do": {"cut": {"then": "rst"}}, "at": {"byte": 33}}


@pytest.mark.parametrize(
    ("words", "paused"),
    [
        (MIDDLE, True),
        ({**MIDDLE, "at": {"byte": 33, "after_s": 0}}, False),
        ({**MIDDLE, "do": {"stall": "forever"}}, False),
        ({**MIDDLE, "at": {"event": 2}}, False),
        ({**MIDDLE, "at": {"phase": "linger"}}, False),
        ({**MIDDLE, "at": {"phase": "headers"}}, False),
    ],
)
async def test_a_break_in_the_middle_comes_a_moment_after_the_bytes_before_it(
    rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch, settled: Any, words: dict[str, Any], paused: bool
):
    """A client reads them in that time. A silence needs no pause, nor does the end of a stream."""
    monkeypatch.setattr(Rig, "planned", staticmethod(lambda it: FaultConfig.model_validate(it).planned().paused()))
    it = rig(words)
    call = it.arrives()
    stops = await it.ask(call)
    if not paused:
        assert it.strikes or stops
        return
    assert (stops, it.strikes) == ([33], [])
    holding = asyncio.create_task(it.ask(call, 33))
    await settled()
    await it.clock.advance(0.19)
    await settled()
    assert not holding.done() and not it.strikes
    await it.clock.advance(0.02)
    await holding
    assert it.strikes[0].spot.at == HEAD + 33
