"""The injector and processes: when a kill, a freeze or a full disk strikes, whom, what proves it, and that it heals."""

import asyncio
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from wedgehog.fake_llm.observer import Conn, Point
from wedgehog.fake_llm.script.position import CallPosition
from wedgehog.harness.faults.process_fault import Speak
from wedgehog.harness.inject.agent_hands import GONE_WITHIN_S
from wedgehog.harness.inject.injector import Injector
from wedgehog.harness.inject.process_faults import HANG_UP_S
from wedgehog.harness.inject.targets import Hit, Targets
from wedgehog.harness.record.events.call import ReplyEnded, RequestRefused
from wedgehog.harness.record.events.fault import FaultArmed, FaultFired, FaultHealed, FaultUnproven
from wedgehog.harness.record.events.run import Note
from wedgehog.harness.record.events.turn import AgentKilled, Frozen, Thawed
from wedgehog.harness.record.history import History
from wedgehog.harness.scenario.fault_config import FaultConfig
from wedgehog.harness.scenario.fault_plan import FaultPlan, PlannedFault
from wedgehog.harness.scenario.trigger import AtReply

HEAD, ENDS, BODY = 100, (50, 120, 200), 200


@dataclass(eq=False)
class FakeProcess:
    """A process that takes signals as processes do; an `immortal` one survives even SIGKILL."""

    pid: int
    immortal: bool = False
    got: list[signal.Signals] = field(default_factory=list)

    @property
    def dead(self) -> bool:
        return signal.SIGKILL in self.got and not self.immortal

    def is_running(self) -> bool:
        return not self.dead

    def status(self) -> str:
        last = next((it for it in reversed(self.got) if it in (signal.SIGSTOP, signal.SIGCONT)), None)
        return psutil.STATUS_STOPPED if last == signal.SIGSTOP else psutil.STATUS_SLEEPING

    def send_signal(self, number: signal.Signals) -> None:
        if self.dead:
            raise psutil.NoSuchProcess(self.pid)
        self.got.append(number)


@dataclass
class FakeAgent:
    """Victims, sessions and a disk that take notes."""

    living: list[FakeProcess] = field(default_factory=lambda: [FakeProcess(900_001), FakeProcess(900_002)])
    asked: list[tuple[str, str]] = field(default_factory=list)
    told: list[Any] = field(default_factory=list)
    leaders: frozenset[int] = frozenset({900_001})
    written: int = 0
    tearable: bool = True
    room: list[Any] = field(default_factory=list)
    proof: str = "ENOSPC"

    def find(self, whom: str, token: str, turn: int) -> Iterable[Any]:
        self.asked.append((whom, token))
        yield from self.living[:1] if whom == "leader" else self.living

    def struck(self, number: signal.Signals, grace_s: float, turn: int) -> None:
        self.told.append((number, grace_s))

    def look(self) -> int:
        return self.written

    def save(self, turn: int, *, tear: bool) -> bool:
        self.told.append(("saved", turn, tear))
        return self.tearable or not tear

    async def fill(self, free_bytes: int) -> str:
        self.room.append(free_bytes)
        return self.proof

    async def heal(self) -> None:
        self.room.append("again")


class Rig:
    """An injector between made-up calls and a made-up agent."""

    def __init__(self, clock: Any, link: Any, faults: tuple[dict[str, Any], ...], messages: Any = ()) -> None:
        self.clock, self.agent = clock, FakeAgent()
        self.history = History(clock)
        planned = (FaultConfig.model_validate({"link": "agent", **words}).planned() for words in faults)
        self.server: Any = None
        targets = Targets(self.agent, self.agent, lambda: self.agent, 5.0, lambda: self.server)
        plan = FaultPlan(tuple(planned))
        self.injector = Injector(plan, {"llm": link}, self.history, clock, messages, targets=targets)
        self.calls = 0

    def arrives(self, turn: int = 1, step: int = 1, attempt: int = 1, background: str = "") -> int:
        self.calls += 1
        self.injector.arrived(self.calls, CallPosition(turn, step, attempt, background), "m")
        return self.calls

    async def ask(self, call: int, at: int = -1, stream: bool = True) -> Any:
        """The gate is asked; it opens within some seconds of the manual clock, or it is a failure."""
        point = Point(call, Conn(1, ("127.0.0.1", 4001)), 0, HEAD, ENDS if stream else (), BODY, at, stream)
        asking = asyncio.create_task(self.injector.gate(point))
        for _ in range(100):
            await self.clock.advance(0.1)
            if asking.done():
                return asking.result()
        asking.cancel()
        raise TimeoutError("the gate never opened")

    def of(self, kind: Any) -> list[Any]:
        return list(self.history.of(kind))

    @property
    def hit(self) -> list[int]:
        return [pid for kill in self.of(AgentKilled) for pid in kill.pids]


@pytest.fixture
def rig(manual_clock: Any, fake_link: Callable[..., Any]) -> Callable[..., Rig]:
    """Makes a rig for some lines of a fault plan on the link `agent`."""
    return lambda *faults, **more: Rig(manual_clock, fake_link(), faults, **more)


# ---- kills: when


async def test_without_a_spot_a_kill_strikes_when_the_request_has_arrived(rig: Any):
    """The reply is held, everybody is gone, and only then it goes on."""
    it = rig({"do": "kill"})
    await it.injector.before_turn(1)
    assert list(await it.ask(it.arrives())) == []
    assert it.hit == [900_001, 900_002]
    assert all(process.dead for process in it.agent.living)
    (fired,) = it.of(FaultFired)
    assert "all were gone" in fired.proof and (fired.turn, fired.step) == (1, 1)
    assert it.of(AgentKilled)[0].id < fired.id, "the deed, and then its proof"


@pytest.mark.parametrize(("whom", "waits"), [("worker", True), ("tool", False)])
async def test_the_reply_to_a_worker_that_is_gone_goes_on_only_after_its_connection_has_ended(
    rig: Any, whom: str, waits: bool
):
    """Else it would seem to have arrived; a tool has no connection to the model."""
    it = rig({"at": {"byte": 40}, "do": {"kill": {"whom": whom}}})
    it.agent.leaders = frozenset()
    await it.injector.before_turn(1)
    call, since_s = it.arrives(), it.clock.now()
    assert list(await it.ask(call, at=-2)) == [40]
    await it.ask(call, at=40)
    assert it.hit == [900_001, 900_002]
    assert (it.clock.now() - since_s >= HANG_UP_S) == waits


async def test_of_a_late_reply_the_request_alone_is_waited_for(rig: Any):
    """It fires before the time passes that the reply takes, and not again when that is over."""
    it = rig({"do": "kill", "times": "always"}, {"at": {"byte": 40}, "do": "kill"})
    await it.injector.before_turn(1)
    call = it.arrives()
    assert list(await it.ask(call, at=-2)) == [40]
    assert it.hit == [900_001, 900_002] and len(it.of(FaultFired)) == 1
    it.agent.living = [FakeProcess(900_003)]
    assert list(await it.ask(call)) == []
    assert it.hit == [900_001, 900_002], "that call was met already"
    await it.ask(call, at=40)
    assert it.hit == [900_001, 900_002, 900_003]


@pytest.mark.parametrize(
    ("at", "stop"), [({"byte": 33}, 33), ({"event": 2}, 120), ({"phase": "body"}, 0), ({"phase": "terminal"}, 160)]
)
async def test_a_kill_in_a_reply_waits_until_so_much_of_it_was_delivered(rig: Any, at: dict[str, Any], stop: int):
    """The fake stops there; before that nothing is hit."""
    it = rig({"at": at, "do": "kill"})
    await it.injector.before_turn(1)
    call = it.arrives()
    assert list(await it.ask(call)) == [stop] and it.hit == []
    await it.ask(call, at=stop)
    assert it.hit == [900_001, 900_002]


async def test_two_faults_may_strike_at_the_same_byte(rig: Any):
    """A freeze and a stall that resumes, say: neither hides the other."""
    it = rig({"at": {"byte": 33}, "do": {"freeze": 1}}, {"link": "llm", "at": {"byte": 33}, "do": {"stall": 1}})
    await it.injector.before_turn(1)
    call = it.arrives()
    await it.ask(call)
    await it.ask(call, at=33)
    assert {fired.name for fired in it.of(FaultFired)} == {"freeze", "stall"}


@pytest.mark.parametrize(("how", "hits"), [("complete", True), ("hung up", False), ("cut", False)])
async def test_a_kill_at_linger_comes_behind_the_last_byte_of_a_whole_reply(rig: Any, how: Any, hits: bool):
    """A reply that did not arrive whole has no last byte."""
    it = rig({"at": {"phase": "linger"}, "do": "kill"})
    await it.injector.before_turn(1)
    call = it.arrives()
    assert list(await it.ask(call)) == [] and it.hit == []
    it.history.add(
        ReplyEnded(call=call, how=how, stop="end", output_tokens=1, tokens_delivered=1, body_bytes=BODY,
                   bytes_delivered=BODY, blocks_delivered=1)
    )  # fmt: skip
    it.injector.ended(call, True)
    await it.clock.advance(0.1)
    assert bool(it.hit) is hits


async def test_a_refusal_has_a_last_byte_too(rig: Any):
    """A user may stop an agent that waits before its next try: the refusal has reached the agent."""
    it = rig({"at": {"phase": "linger"}, "do": "kill"})
    await it.injector.before_turn(1)
    call = it.arrives()
    assert list(await it.ask(call)) == [] and it.hit == []
    it.history.add(
        RequestRefused(call=call, status=429, error="rate_limit", message="later", pairing=False, scripted=True)
    )
    it.injector.ended(call, False)
    await it.clock.advance(0.1)
    assert it.hit


@pytest.mark.parametrize(("when", "phases"), [("started", 1), ("done", 2)])
async def test_a_kill_at_a_beacon_strikes_once(rig: Any, when: str, phases: int):
    """At the phase it names, and not again when the command is run again."""
    it = rig({"at": {"step": 2, "tool": 1, "when": when}, "do": "kill"})
    await it.injector.before_turn(1)
    for number, phase in enumerate(("started", "done"), start=1):
        it.injector.beacon("1.2.1", phase)
        await it.clock.advance(0.1)
        assert bool(it.hit) is (number >= phases)
    it.injector.beacon("1.2.1", when)
    await it.clock.advance(0.1)
    assert len(it.of(AgentKilled)) == 1


async def test_a_kill_at_a_session_file_waits_for_its_first_change_after_the_request(rig: Any):
    """What was written before does not count."""
    it = rig({"at": {"step": 2, "session": "written"}, "do": "kill"})
    await it.injector.before_turn(1)
    await it.ask(it.arrives())
    it.agent.written += 1
    await it.clock.advance(1)
    await it.ask(it.arrives(step=2))
    await it.clock.advance(1)
    assert it.hit == []
    it.agent.written += 1
    await it.clock.advance(0.01)
    assert it.hit == [900_001, 900_002]


async def test_a_session_file_may_change_as_soon_as_the_reply_goes_on(rig: Any):
    """A quick agent writes before the harness has done anything else."""
    it = rig({"at": {"session": "written"}, "do": "kill"})
    await it.injector.before_turn(1)
    assert (
        list(await it.injector.gate(Point(it.arrives(), Conn(1, ("127.0.0.1", 4001)), 0, HEAD, ENDS, BODY, -1, True)))
        == []
    )
    it.agent.written += 1
    await it.clock.advance(0.01)
    assert it.hit == [900_001, 900_002]


async def test_alone_a_delay_counts_from_the_turns_start_and_else_from_the_spot(rig: Any):
    """Both are the scenario's seconds."""
    it = rig({"at": {"after_s": 3}, "do": "kill"})
    await it.injector.before_turn(1)
    await it.clock.advance(2.9)
    assert it.hit == []
    await it.clock.advance(0.2)
    assert it.hit != []
    it = rig({"at": {"tool": 1, "after_s": 3}, "do": "kill"})
    await it.injector.before_turn(1)
    it.injector.beacon("1.1.1", "started")
    await it.clock.advance(2.9)
    assert it.hit == []
    await it.clock.advance(0.2)
    assert it.hit != []


async def test_a_moment_that_comes_after_its_turn_is_none(rig: Any):
    """A healed fault hits nothing in the next turn."""
    it = rig({"at": {"after_s": 3}, "do": "kill"}, {"at": {"session": "written"}, "do": "kill"})
    await it.injector.before_turn(1)
    await it.ask(it.arrives())
    await it.injector.after_turn(1)
    it.agent.written += 1
    await it.clock.advance(5)
    assert (it.hit, it.of(FaultFired), it.of(FaultHealed)) == ([], [], [])


@pytest.mark.parametrize("place", [{"step": 2}, {"turn": 2}, {"attempt": 2}, {"background": "title"}])
async def test_other_calls_kill_nothing(rig: Any, place: dict[str, Any]):
    """A title that is asked for in between is not step 1."""
    it = rig({"at": {"step": 1, "attempt": 1}, "do": "kill"})
    await it.injector.before_turn(1)
    if "attempt" in place:
        it.agent.living.clear()
        await it.ask(it.arrives())
    await it.ask(it.arrives(**place))
    assert it.hit == []


# ---- kills: whom, and what proves it


@pytest.mark.parametrize(
    ("do", "asked", "pids"),
    [
        ("kill", ("tree", "1.1.2"), [900_001, 900_002]),
        ({"kill": {"whom": "leader"}}, ("leader", "1.1.2"), [900_001]),
        ({"kill": {"whom": "tool"}}, ("tool", "1.1.2"), [900_001, 900_002]),
        ({"kill": {"whom": "worker"}}, ("worker", "1.1.2"), [900_001, 900_002]),
    ],
)
async def test_the_run_says_whom_a_word_means(rig: Any, do: Any, asked: Any, pids: list[int]):
    """With the token of the tool call that the trigger names."""
    it = rig({"at": {"tool": 2}, "do": do})
    await it.injector.before_turn(1)
    it.injector.beacon("1.1.2", "started")
    await it.clock.advance(0.1)
    assert it.agent.asked[0] == asked and it.hit == pids


async def test_without_a_tool_in_the_trigger_the_youngest_that_runs_is_meant(rig: Any):
    """One that is done runs no more."""
    it = rig({"at": {"step": 2}, "do": {"kill": {"whom": "tool"}}})
    await it.injector.before_turn(1)
    for token, phase in (("1.1.1", "started"), ("1.1.2", "started"), ("1.1.3", "started"), ("1.1.3", "done")):
        it.injector.beacon(token, phase)
    await it.ask(it.arrives(step=2))
    assert it.agent.asked[0] == ("tool", "1.1.2")


async def test_a_kill_that_hits_no_process_leaves_no_proof(rig: Any):
    """The fault never fired, a note says why, and nothing is healed."""
    it = rig({"do": "kill"})
    it.agent.living.clear()
    await it.injector.before_turn(1)
    await it.ask(it.arrives())
    await it.injector.after_turn(1)
    assert (it.hit, it.of(FaultFired), it.of(FaultHealed)) == ([], [], [])
    assert "there was nothing to hit" in it.of(Note)[0].what


async def test_a_process_that_lives_on_makes_the_kill_unproven(rig: Any):
    """Whatever else is true then, the agent is not to blame for it."""
    it = rig({"do": "kill"})
    it.agent.living[1].immortal = True
    await it.injector.before_turn(1)
    await it.ask(it.arrives())
    await it.clock.advance(GONE_WITHIN_S)
    assert it.of(FaultFired) == [] and it.of(FaultUnproven)[0].name == "kill"


async def test_a_line_that_could_not_be_torn_makes_the_kill_unproven(rig: Any):
    """The scenario is about half a line."""
    it = rig({"do": {"kill": {"tear": True}}})
    it.agent.tearable = False
    await it.injector.before_turn(1)
    await it.ask(it.arrives())
    assert it.of(FaultFired) == [] and len(it.of(FaultUnproven)) == 1
    assert it.agent.told[-1] == ("saved", 1, True)


async def test_a_signal_that_can_be_handled_is_proved_by_its_delivery(rig: Any):
    """Whether the agent ends by it is its own business; it gets the time that it has for that."""
    it = rig({"do": {"kill": "SIGTERM"}})
    await it.injector.before_turn(1)
    await it.ask(it.arrives())
    (fired,) = it.of(FaultFired)
    assert fired.proof.startswith("SIGTERM was delivered to 900001, 900002")
    assert [process.got for process in it.agent.living] == [[signal.SIGTERM]] * 2
    assert it.agent.told[0] == (signal.SIGTERM, 5.0)
    assert it.clock.now() < it.injector.agent.dying_until_s <= 5.0


async def test_a_tools_death_ends_no_turn(rig: Any):
    """Nobody is told that the agent was hit, and no session is kept."""
    it = rig({"at": {"tool": 1}, "do": {"kill": {"whom": "tool"}}})
    await it.injector.before_turn(1)
    it.injector.beacon("1.1.1", "started")
    await it.clock.advance(0.1)
    assert it.hit and it.agent.told == [] and it.injector.agent.dying_until_s == 0


@pytest.mark.parametrize("hit", [Hit((7,), "SIGKILL ended it"), None])
async def test_a_server_is_killed_by_the_host_that_runs_it(rig: Any, hit: Any):
    """Its pids and its proof are the tool host's to say."""
    asked = []

    async def kill(number: signal.Signals) -> Hit | None:
        asked.append(number)
        return hit

    it = rig({"link": "tool:mcp", "at": {"tool": 1}, "do": {"kill": {"whom": "server"}}})
    it.server = SimpleNamespace(kill_server=kill)
    await it.injector.before_turn(1)
    it.injector.beacon("1.1.1", "started")
    await it.clock.advance(0.1)
    assert asked == [signal.SIGKILL]
    assert it.hit == ([7] if hit else []) and len(it.of(FaultFired)) == bool(hit)
    assert all(not process.got for process in it.agent.living)


async def test_nothing_is_started_again_before_everybody_is_gone(rig: Any):
    """The end of the turn waits for the kill that is under way."""
    it = rig({"at": {"tool": 1}, "do": "kill"})
    it.agent.living[1].immortal = True
    await it.injector.before_turn(1)
    it.injector.beacon("1.1.1", "started")
    await it.clock.advance(0.1)
    ending = asyncio.create_task(it.injector.after_turn(1))
    await it.clock.advance(1)
    assert it.hit and not ending.done()
    await it.clock.advance(GONE_WITHIN_S)
    assert ending.done() and len(it.of(FaultUnproven)) == 1


async def test_a_hang_up_by_the_killed_agent_does_not_stop_the_kill(rig: Any, settled: Any):
    """It ends the reply that waits at the gate; the proof comes all the same."""
    it = rig({"do": "kill"})
    it.agent.living[1].immortal = True
    await it.injector.before_turn(1)
    point = Point(it.arrives(), Conn(1, ("127.0.0.1", 4001)), 0, HEAD, ENDS, BODY, -1, True)
    asking = asyncio.create_task(it.injector.gate(point))
    await settled()
    assert it.hit
    asking.cancel()
    it.agent.living[1].immortal = False
    await it.clock.advance(0.1)
    assert asking.cancelled() and len(it.of(FaultFired)) == 1


# ---- freezes


async def test_a_frozen_agent_goes_on_after_its_time(rig: Any):
    """The reply goes on at once: what is sent arrives when it runs again."""
    it = rig({"do": {"freeze": 3}})
    await it.injector.before_turn(1)
    await it.ask(it.arrives())
    assert [process.status() for process in it.agent.living] == [psutil.STATUS_STOPPED] * 2
    assert "stood still" in it.of(FaultFired)[0].proof and it.of(Frozen)[0].for_s == 3
    await it.clock.advance(1)
    assert 1 <= it.injector.frozen_s <= 1.2 and not it.of(Thawed)
    await it.clock.advance(2)
    assert [process.status() for process in it.agent.living] == [psutil.STATUS_SLEEPING] * 2
    assert it.of(Thawed)[0].after_s == pytest.approx(3)
    await it.clock.advance(5)
    assert it.injector.frozen_s == pytest.approx(3, abs=0.05)


async def test_a_freeze_is_over_at_the_end_of_its_turn_at_the_latest(rig: Any):
    """Nobody is left standing."""
    it = rig({"do": {"freeze": 300}})
    await it.injector.before_turn(1)
    await it.ask(it.arrives())
    await it.injector.after_turn(1)
    assert [process.got[-1] for process in it.agent.living] == [signal.SIGCONT] * 2
    assert it.of(Thawed)[0].after_s < 10


@pytest.mark.parametrize("whom", ["tool", "worker"])
async def test_while_a_tool_or_a_worker_stands_still_the_agents_time_runs(rig: Any, whom: str):
    """It may be expected to stop waiting."""
    it = rig({"at": {"tool": 1}, "do": {"freeze": {"for_s": 3, "whom": whom}}})
    await it.injector.before_turn(1)
    it.injector.beacon("1.1.1", "started")
    await it.clock.advance(2)
    assert it.of(Frozen)[0].whom == whom and it.injector.frozen_s == 0


async def test_a_freeze_that_finds_no_process_can_be_healed(rig: Any):
    """And proves nothing."""
    it = rig({"do": {"freeze": 3}})
    it.agent.living.clear()
    await it.injector.before_turn(1)
    await it.ask(it.arrives())
    await it.injector.after_turn(1)
    assert (it.of(FaultFired), it.of(Frozen)) == ([], [])


# ---- disks


async def test_a_full_disk_has_room_again_when_it_is_healed(rig: Any):
    """At the end of its turn, or so long after it was full."""
    for heal, room_s in (({}, 0), ({"heal": {"after_s": 2}}, 2)):
        it = rig({"do": {"disk_full": 4096}, **heal})
        await it.injector.before_turn(1)
        await it.ask(it.arrives())
        assert it.agent.room == [4096] and it.of(FaultFired)[0].proof == "ENOSPC"
        if room_s:
            await it.clock.advance(room_s)
        else:
            await it.injector.after_turn(1)
        assert it.agent.room == [4096, "again"] and len(it.of(FaultHealed)) == 1
        await it.injector.close()


async def test_a_disk_that_still_takes_bytes_is_not_full(rig: Any):
    """Nothing proves it, so it never fired; it gets room again all the same."""
    it = rig({"do": "disk_full"})
    it.agent.proof = ""
    await it.injector.before_turn(1)
    await it.ask(it.arrives())
    await it.injector.after_turn(1)
    assert it.of(FaultFired) == [] and it.agent.room == [0, "again"]


# ---- messages


async def test_a_message_is_asked_for_at_its_moment_and_is_no_fault(rig: Any):
    """Nothing is armed, fired or healed."""
    message = PlannedFault("agent", AtReply(turn=1, step=2, event=1), Speak(2))
    it = rig(messages=(message,))
    await it.injector.before_turn(1)
    await it.ask(it.arrives())
    call = it.arrives(step=2)
    assert list(await it.ask(call)) == [50] and it.injector.messages.empty()
    await it.ask(call, at=50)
    assert it.injector.messages.get_nowait() == 2
    await it.injector.after_turn(1)
    assert not [event for kind in (FaultArmed, FaultFired, FaultHealed) for event in it.of(kind)]


async def test_what_one_turn_asks_for_is_not_forgotten_at_the_end_of_another(rig: Any):
    """Only between turns is the demand void."""
    it = rig()
    await it.injector.before_turn(1)
    await it.injector.before_turn(2)
    await it.injector.demands.put(("abort", None))
    await it.injector.after_turn(2)
    assert not it.injector.demands.empty()
    await it.injector.after_turn(1)
    assert it.injector.demands.empty()


# ---- a user who stops the turn


@pytest.mark.parametrize("words", [{"do": "abort", "link": "agent"}, {"do": "give_up", "link": "channel"}])
@pytest.mark.parametrize(("at", "stops"), [({"step": 2}, []), ({"step": 2, "byte": 40}, [40])])
async def test_a_turn_is_stopped_in_the_call_that_the_trigger_names(rig: Any, words: Any, at: Any, stops: list[int]):
    """No earlier call sets it off, and the reply waits a moment for the agent to hang up."""
    it = rig({**words, "at": at})
    await it.injector.before_turn(1)
    await it.ask(it.arrives())
    assert it.injector.demands.empty(), "the first step goes on"
    asked_s = it.clock.now()
    call = it.arrives(step=2)
    assert list(await it.ask(call)) == stops
    if stops:
        assert it.injector.demands.empty(), "before its byte nothing happens"
        await it.ask(call, at=40)
    assert it.injector.demands.get_nowait() == (words["do"], None)
    assert it.of(FaultFired)[0].step == 2
    assert it.clock.now() - asked_s >= 0.5, "a reply that went on at once would have arrived"
