"""Which pipe a fault strikes, where, and what proves it: the injector beside pipes that only take notes."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from wedgehog.harness.inject import stdio_faults as pipes
from wedgehog.harness.inject.injector import Injector
from wedgehog.harness.network.base import Downstream, NetworkError, WholeLink
from wedgehog.harness.record.events.fault import FaultArmed, FaultFired, FaultHealed
from wedgehog.harness.record.events.run import Note, Trouble
from wedgehog.harness.record.events.service import PipeClosed, PipeOpened
from wedgehog.harness.record.history import History
from wedgehog.harness.scenario.fault_config import FaultConfig
from wedgehog.harness.scenario.fault_plan import FaultPlan
from wedgehog.harness.stdio_proxy.session import Direction, StdioSession, StreamEnd


class FakePipe:
    """A `wedgehog-pipe` without a process: it stands where it is told to, and `writes` when we say so."""

    def __init__(self, make_link: Callable[..., Any], name: str = "db") -> None:
        self.sent = {"out": 0, "in": 0}
        self.until: dict[str, Any] = {"out": 0, "in": 0}
        self.links = {"out": make_link(), "in": make_link()}
        ways = {way: Direction(way, link, self._hears, ("127.0.0.1", 5)) for way, link in self.links.items()}
        self.pipe = StdioSession(name, 100, ways, child=101)

    def _hears(self, word: str, way: str, byte: Any, asked: int) -> None:
        assert word == "until"
        self.until[way] = None if byte == "none" else self.sent[way] if byte == "now" else byte
        self.asked = {**getattr(self, "asked", {}), way: asked}
        asyncio.get_running_loop().call_soon(self._stands, way)

    def _stands(self, way: str) -> None:
        if self.until[way] is not None and self.sent[way] >= self.until[way]:
            self.pipe.ways[way].stopped(self.sent[way], self.asked[way])

    def writes(self, way: str, count: int) -> int:
        """Let it write so many bytes, as far as it may; where it is then."""
        most = self.sent[way] + count
        self.sent[way] = most if self.until[way] is None else min(most, max(self.until[way], self.sent[way]))
        self._stands(way)
        return self.sent[way]

    def ends(self, passed: int | None = 0, status: int | None = 0) -> None:
        """It has ended."""
        self.pipe.status = status
        for direction in self.pipe.ways.values():
            direction.close(passed)
        self.pipe.closed.set()


class Rig:
    """An injector, and pipes that open."""

    def __init__(self, clock: Any, make_link: Any, settle: Any, faults: tuple[dict[str, Any], ...]) -> None:
        self.history, self.clock, self.settle, self._make_link = History(clock), clock, settle, make_link
        plan = FaultPlan(tuple(FaultConfig.model_validate(words).planned() for words in faults))
        self.injector = Injector(plan, {"llm": make_link()}, self.history, clock)

    async def opens(self, name: str = "db") -> FakePipe:
        """A pipe opens, and is let go."""
        fake = FakePipe(self._make_link, name)
        held = [direction.stop(0) for direction in fake.pipe.ways.values()]
        await self.injector.pipes.opened(fake.pipe)
        for direction, stop in zip(fake.pipe.ways.values(), held, strict=True):
            direction.go(stop)
        await self.settle()
        return fake

    def of(self, kind: Any) -> list[Any]:
        return list(self.history.of(kind))


@pytest.fixture
def rig(manual_clock: Any, fake_link: Any, settled: Any) -> Callable[..., Rig]:
    """Makes a rig for some lines of a fault plan."""
    return lambda *faults: Rig(manual_clock, fake_link, settled, faults)


def on(fake: FakePipe, way: str = "out") -> list[Any]:
    """Where the strikes on that way hit."""
    return [strike.spot for strike in fake.links[way].strikes]


def at(byte: int) -> Downstream:
    return Downstream(("127.0.0.1", 5), byte)


async def test_a_fault_is_armed_before_the_first_byte_of_the_pipe_of_its_name(rig: Any):
    """On its stdout, or with `phase: request` on its stdin; other pipes go free."""
    it = rig(
        {"link": "ipc:db", "at": {"byte": 7}, "do": "cut"},
        {"link": "ipc:db", "at": {"phase": "request", "byte": 9}, "do": "stall"},
    )
    await it.injector.before_turn(1)
    assert len(it.of(FaultArmed)) == 2
    other, db = await it.opens("web"), await it.opens("db")
    assert (on(other), on(other, "in"), on(db), on(db, "in")) == ([], [], [at(7)], [at(9)])
    assert db.writes("out", 50) == 50, "nothing holds it once the fault is armed"
    assert it.of(PipeOpened)[1].child == 101
    await it.injector.close()


async def test_a_pipe_of_another_turn_goes_free(rig: Any):
    """And so does every second one of the turn, unless the plan says how many."""
    it = rig({"link": "ipc:db", "at": {"turn": 2, "byte": 7}, "do": "cut"})
    await it.injector.before_turn(1)
    first = await it.opens()
    first.ends()
    await it.injector.pipes.closed(first.pipe)
    await it.injector.after_turn(1)
    await it.injector.before_turn(2)
    second, third = await it.opens(), await it.opens()
    assert (on(first), on(second), on(third)) == ([], [at(7)], [])
    await it.injector.close()


@pytest.mark.parametrize(
    ("more", "struck"),
    [
        ({"at": {"attempt": 2, "byte": 1}}, [0, 1, 0]),
        ({"at": {"byte": 1}, "times": 2}, [1, 1, 0]),
        ({"at": {"byte": 1}, "times": "always"}, [1, 1, 1]),
        ({"at": {"byte": 1, "attempt": 2}, "sticks_to": "link"}, [0, 1, 1]),
    ],
)
async def test_an_attempt_is_one_pipe_of_that_name(rig: Any, more: dict[str, Any], struck: list[int]):
    """A server that is started again is the next attempt."""
    it = rig({"link": "ipc:db", "do": "cut", **more})
    await it.injector.before_turn(1)
    pipes = [await it.opens() for _ in range(3)]
    assert [len(on(fake)) for fake in pipes] == struck
    await it.injector.close()


async def test_on_a_pipe_that_is_open_bytes_count_from_the_start_of_the_turn(rig: Any):
    """A server that lives on from turn to turn has said no one knows how much by then."""
    it = rig({"link": "ipc:db", "at": {"turn": 2, "byte": 7}, "do": "stall"})
    await it.injector.before_turn(1)
    fake = await it.opens()
    fake.writes("out", 500)
    await it.injector.after_turn(1)
    await it.injector.before_turn(2)
    assert on(fake) == [at(507)]
    await it.injector.close()


async def test_a_pipe_that_an_earlier_agent_left_behind_is_no_attempt(rig: Any):
    """The next turn's agent opens its own, and that is the first one."""
    it = rig({"link": "ipc:db", "at": {"turn": 2, "byte": 7}, "do": "stall"})
    await it.injector.before_turn(1)
    left = await it.opens()
    left.pipe.abandoned = True
    await it.injector.before_turn(2)
    fresh = await it.opens()
    assert (on(left), on(fresh)) == ([], [at(7)])
    await it.injector.close()


@pytest.mark.parametrize("over", [True, False])
async def test_a_pipe_that_ends_while_it_is_struck_is_no_trouble_of_the_network(
    rig: Any, over: bool, monkeypatch: pytest.MonkeyPatch
):
    """Its connection is gone; where the pipe lives on, something is wrong."""
    it = rig({"link": "ipc:db", "at": {"turn": 2, "byte": 7}, "do": "stall"})
    await it.injector.before_turn(1)
    fake = await it.opens()
    fake.links["out"].broken = NetworkError("no open connection")
    if over:
        asyncio.get_running_loop().call_later(0.02, fake.pipe.closed.set)
    monkeypatch.setattr(pipes, "CLOSING_S", 0.1)
    await it.injector.before_turn(2)
    assert (len(it.of(Trouble)), len(it.of(Note))) == ((0, 1) if over else (1, 0))
    await it.injector.close()


@pytest.mark.parametrize("while_arming", [False, True])
@pytest.mark.parametrize("does", ["stall", {"stall": 0.5}])
async def test_a_way_that_a_fault_has_cut_is_not_struck_again(rig: Any, while_arming: bool, does: Any):
    """Its link is gone and the pipe lives on: there is nothing to hit, and the network is well."""
    it = rig(
        {"link": "ipc:db", "at": {"byte": 7}, "do": "cut"},
        {"link": "ipc:db", "at": {"tool": 1}, "do": "stall" if while_arming else does},
    )
    await it.injector.before_turn(1)
    fake = await it.opens()
    fake.writes("out", 7)
    fake.links["out"].broken = NetworkError("no open connection")
    delay_s = 0.02 if while_arming else 0
    asyncio.get_running_loop().call_later(delay_s, fake.pipe.ways["out"].ended.set_result, StreamEnd("fin", 7))
    if not while_arming:
        await asyncio.sleep(0.001)
        await it.settle()
    await asyncio.wait(it.injector.beacon("1.1.1", "started"))
    assert (on(fake), len(it.of(Note)), it.of(Trouble)) == ([at(7)], 1, [])
    assert [fired.name for fired in it.of(FaultFired)] == ["cut"]
    await it.injector.close()


async def test_with_a_beacon_bytes_count_from_the_beacon_on_the_youngest_pipe(rig: Any):
    """And what the beacon's sender must wait for is done when the fault is armed."""
    it = rig({"link": "ipc:db", "at": {"step": 2, "tool": 1, "byte": 3}, "do": "cut"})
    await it.injector.before_turn(1)
    old, young = await it.opens(), await it.opens()
    young.writes("out", 40)
    assert it.injector.beacon("1.1.1", "started") == [] and it.injector.beacon("1.2.1", "done") == []
    await asyncio.wait(it.injector.beacon("1.2.1", "started"))
    assert (on(old), on(young)) == ([], [at(43)])
    assert it.injector.beacon("1.2.1", "started") == [], "once"
    await it.injector.close()


async def test_what_begins_at_once_waits_for_its_byte(rig: Any):
    """A delay or a drip is armed while the pipe stands exactly there, which then goes on."""
    it = rig({"link": "ipc:db", "at": {"byte": 30}, "do": {"latency": 1}})
    await it.injector.before_turn(1)
    fake = await it.opens()
    assert on(fake) == []
    assert fake.writes("out", 100) == 30
    await it.settle()
    assert on(fake) == [WholeLink(("127.0.0.1", 5), 30)]
    assert fake.writes("out", 100) == 130
    await it.injector.close()


async def test_a_stall_that_ends_is_the_pipe_standing_for_so_long(rig: Any):
    """It fires when the byte is reached, and nothing is lost."""
    it = rig({"link": "ipc:db", "at": {"byte": 30}, "do": {"stall": 5}})
    await it.injector.before_turn(1)
    fake = await it.opens()
    assert it.of(FaultFired) == []
    fake.writes("out", 100)
    await it.clock.advance(4)
    (fired,) = it.of(FaultFired)
    assert (fired.bytes, fake.writes("out", 100)) == (30, 30)
    await it.clock.advance(2)
    assert fake.writes("out", 100) == 130
    await it.injector.close()


async def test_a_stall_that_is_healed_before_its_byte_lets_the_pipe_go(rig: Any):
    """The turn is over: a message that comes to that byte later passes."""
    it = rig({"link": "ipc:db", "at": {"byte": 30}, "do": {"stall": 5}})
    await it.injector.before_turn(1)
    fake = await it.opens()
    await it.injector.after_turn(1)
    await it.settle()
    assert (fake.writes("out", 100), it.of(FaultFired)) == (100, [])


async def test_after_s_lets_the_pipe_run_on_before_it_is_struck(rig: Any):
    """Its bytes count from then on."""
    it = rig({"link": "ipc:db", "at": {"after_s": 2, "byte": 4}, "do": "cut"})
    await it.injector.before_turn(1)
    fake = await it.opens()
    fake.writes("out", 10)
    assert on(fake) == []
    await it.clock.advance(3)
    assert on(fake) == [at(14)]
    await it.injector.close()


async def test_the_pipes_own_count_proves_a_cut(rig: Any):
    """What came out at the agent's end is as good as the kernel's count, and both are one proof."""
    it = rig({"link": "ipc:db", "at": {"byte": 7}, "do": "cut"})
    await it.injector.before_turn(1)
    fake = await it.opens()
    fake.pipe.ways["out"].ended.set_result(StreamEnd("fin", 7))
    await it.settle()
    await fake.links["out"].strikes[0].hits()
    (fired,) = it.of(FaultFired)
    assert (fired.link, fired.bytes, fired.proof) == ("ipc:db", 7, "wedgehog-pipe got 7 bytes, then FIN")
    await it.injector.after_turn(1)
    assert len(it.of(FaultHealed)) == 1 and it.of(Trouble) == []


@pytest.mark.parametrize("ended", [StreamEnd("fin", 6), StreamEnd("rst", 7)])
async def test_a_cut_at_another_byte_or_of_another_kind_is_our_trouble(rig: Any, ended: StreamEnd):
    """It is an error of the run, and never blamed on the agent."""
    it = rig({"link": "ipc:db", "at": {"byte": 7}, "do": "cut"})
    await it.injector.before_turn(1)
    fake = await it.opens()
    fake.pipe.ways["out"].ended.set_result(ended)
    await it.settle()
    (trouble,) = it.of(Trouble)
    assert f"ended after {ended.received} bytes with {ended.how.upper()}" in trouble.what
    assert it.of(FaultFired) == [] and it.injector.broken.is_set()


async def test_a_link_that_ends_by_itself_is_our_trouble(rig: Any):
    """No fault is armed on it."""
    it = rig()
    fake = await it.opens()
    fake.pipe.ways["in"].ended.set_result(StreamEnd("rst", 0))
    await it.settle()
    assert "no fault did it" in it.of(Trouble)[0].what


async def test_a_link_that_ends_in_the_same_breath_as_its_pipe_is_heard_first(rig: Any):
    """A tool that is over as soon as its output is cut was still cut."""
    it = rig({"link": "ipc:db", "at": {"byte": 7}, "do": "cut"})
    await it.injector.before_turn(1)
    fake = await it.opens()
    fake.pipe.ways["out"].ended.set_result(StreamEnd("fin", 7))
    fake.ends(7)
    await it.injector.pipes.closed(fake.pipe)
    assert len(it.of(FaultFired)) == 1 and it.of(Trouble) == []


async def test_a_stall_that_is_healed_ends_its_link_and_that_is_no_trouble(rig: Any):
    """Healing sends FIN."""
    it = rig({"link": "ipc:db", "at": {"byte": 7}, "do": "stall"})
    await it.injector.before_turn(1)
    fake = await it.opens()
    await fake.links["out"].strikes[0].hits()
    await it.injector.after_turn(1)
    fake.pipe.ways["out"].ended.set_result(StreamEnd("fin", 7))
    await it.settle()
    assert it.of(Trouble) == []


async def test_bytes_that_crossed_under_a_delay_prove_it_when_the_pipe_has_ended(rig: Any):
    """A short command is over before anybody could look at its sockets."""
    it = rig({"link": "ipc:db", "at": {"byte": 3}, "do": {"latency": 1}})
    await it.injector.before_turn(1)
    fake = await it.opens()
    fake.writes("out", 3)
    await it.settle()
    fake.ends(10)
    await it.injector.pipes.closed(fake.pipe)
    (fired,) = it.of(FaultFired)
    assert fired.proof == "7 bytes crossed the pipe under it"
    (closed,) = it.of(PipeClosed)
    assert (closed.exit_code, closed.stdout_bytes) == (0, 10)


async def test_a_fault_whose_byte_never_came_has_not_fired(rig: Any):
    """The pipe ended before."""
    it = rig(
        {"link": "ipc:db", "at": {"byte": 30}, "do": {"latency": 1}},
        {"link": "ipc:db", "at": {"byte": 30}, "do": "cut"},
    )
    await it.injector.before_turn(1)
    fake = await it.opens()
    fake.writes("out", 3)
    fake.ends(3)
    await it.injector.pipes.closed(fake.pipe)
    await it.injector.after_turn(1)
    assert it.of(FaultFired) == [] and it.of(FaultHealed) == []


async def test_a_pipe_does_not_touch_the_models_calls(rig: Any):
    """`phase: request` on a pipe closes no connection of the fake provider."""
    from wedgehog.fake_llm.script.position import CallPosition

    it = rig({"link": "ipc:db", "at": {"phase": "request", "byte": 1}, "do": "cut"})
    await it.injector.before_turn(1)
    it.injector.arrived(1, CallPosition(1, 1, 1, ""), "m")
    assert not it.injector.closes_after(1)
    assert not it.injector.keeps_requests_away


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"link": "ipc:a b", "do": "cut"}, "unknown link"),
        ({"link": "ipc:db", "do": "refuse"}, "nothing that happens to a pipe"),
        ({"link": "ipc:db", "do": {"status": 500}}, "link: llm"),
        ({"link": "ipc:db", "at": {"event": 1}, "do": "cut"}, "only bytes"),
        ({"link": "ipc:db", "at": {"phase": "headers"}, "do": "cut"}, "only bytes"),
        ({"link": "ipc:db", "at": {"step": 2}, "do": "cut"}, "has no steps"),
    ],
)
def test_a_line_that_means_nothing_on_a_pipe_is_refused(words: dict[str, Any], says: str):
    """When the file is read, with what would."""
    with pytest.raises(ValueError, match=says):
        FaultConfig.model_validate(words)
