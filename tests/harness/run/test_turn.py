"""One turn: handed over, watched, stopped when its time is over, and its faults healed whatever happened."""

import asyncio
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import PropertyMock

import pytest

from wedgehog.fake_llm.script.position import Positions
from wedgehog.harness.agents.base import AgentError, Outcome
from wedgehog.harness.inject.injector import Injector
from wedgehog.harness.record.events.call import ReplyEnded, ReplyStarted, RequestArrived
from wedgehog.harness.record.events.run import CpuWaitSeen
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.events.turn import AbortSent, DeadlineHit, GaveUp, StartMissed, StimulusGiven, TurnEnded
from wedgehog.harness.record.history import History
from wedgehog.harness.run.count_bounds import CountBounds
from wedgehog.harness.run.deadline import LONGEST_STRETCH_S, Bounds, Deadline
from wedgehog.harness.run.messages import UserMessage
from wedgehog.harness.run.run_parts import RunParts
from wedgehog.harness.run.turn import (
    TEXT_KEPT,
    TICK_S,
    AfterStop,
    NetworkBrokeError,
    TurnPlayer,
    kept_text,
)
from wedgehog.harness.run.watching.cpu_wait import LagMonitor
from wedgehog.harness.scenario.fault_plan import FaultPlan

COUNTS = CountBounds(rounds=3)


@dataclass
class FakeSession:
    """An agent that ends when it is told to; what it was told is kept."""

    outcome: Outcome = field(default_factory=Outcome)
    told: list[Any] = field(default_factory=list)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    fails: AgentError | None = None
    cancelled: bool = False
    stops_by_hanging_up: bool = False

    def answers(self, permission: str, asked: object) -> None:
        """No permission is asked for here."""

    def choose(self, model: str | None) -> None:
        """There is one model."""

    async def say(self, text: str, *, kind: str = "user", first: bool) -> Outcome:
        self.told.append(("say", text, kind, first))
        if self.fails:
            raise self.fails
        try:
            await self.over.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return self.outcome

    async def abort(self) -> None:
        self._stop("abort", "aborted")

    async def give_up(self) -> None:
        self._stop("give_up", "gave up")

    async def end_turn(self, grace_s: float = 5.0) -> None:
        self._stop("end_turn", "deadline")

    def _stop(self, told: str, ended: Any) -> None:
        self.told.append(told)
        self.outcome = Outcome(ended=ended)
        self.over.set()


class Rig:
    """A player of one agent with a clock of ours."""

    def __init__(self, clock: Any, **more: Any) -> None:
        self.clock = clock
        self.session = FakeSession()
        self.history = History(clock)
        self.injector = Injector(FaultPlan(), {}, self.history, clock)
        self.positions = Positions("w")
        self.watchdog = LagMonitor(clock)
        bounds = Bounds(
            turn_s=10, start_s=60, start_up_s=2, exit_s=more.get("exit_s", 0.0), counts=more.get("counts", COUNTS)
        )
        self.run = RunParts(self.history, self.injector, self.positions, clock, self.watchdog)
        self.player = TurnPlayer(
            self.run,
            Deadline(self.run, bounds, more.get("tick_s", TICK_S)),
            self.session,  # type: ignore[arg-type]
            stays=more.get("stays", False),
        )

    def plays(self, kind: Any = "user", number: int = 1) -> "asyncio.Task[None]":
        message = UserMessage(number, kind, "List the files", "mk1q", "nonce", opens=number == 1)
        return asyncio.create_task(self.player.play(message))

    def request(self, turn: int = 1, **more: Any) -> None:
        said = {"call": 1, "step": 1, **more}
        self.history.add(
            RequestArrived(conn=1, wire="x", path="/", model="m", stream=True, turn=turn, attempt=1, **said)
        )

    def paid(self, call: int, **more: Any) -> None:
        """A request that the provider accepts."""
        self.request(call=call, **more)
        self.history.add(ReplyStarted(call=call, input_tokens=1))

    def kinds(self) -> list[str]:
        return [event.kind for event in self.history.events]


@pytest.fixture
def rig(manual_clock: Any) -> Rig:
    return Rig(manual_clock)


async def until(met: Any) -> None:
    """Wait for real until something holds: the player's own tick is real."""
    async with asyncio.timeout(10):
        while not met():
            await asyncio.sleep(0.005)


async def test_a_turn_is_a_stimulus_and_an_end(rig: Rig):
    """The agent gets the marker before the words, and is told whether it is its first message."""
    rig.session.outcome = Outcome("nonce", exit_code=0, stdout="nonce")
    rig.session.over.set()
    await rig.plays()
    assert rig.session.told == [("say", "mk1q List the files", "user", True)]
    assert rig.kinds() == ["stimulus_given", "turn_ended"]
    assert next(rig.history.of(StimulusGiven)).text == "List the files"
    assert rig.positions.under_way == 0


@pytest.mark.parametrize(("kind", "said"), [("user", "user"), ("wake_up", "wake_up"), ("recovery", "user")])
async def test_the_recovery_message_is_a_message_like_any_other(rig: Rig, kind: str, said: str):
    """The agent cannot tell."""
    rig.session.over.set()
    await rig.plays(kind, number=2)
    assert rig.session.told[0][2:] == (said, False)


async def test_a_turn_over_its_deadline_is_stopped(rig: Rig, manual_clock: Any):
    """Counted from the first request, with a second of ours on top."""
    playing = rig.plays()
    await until(lambda: rig.session.told)
    await manual_clock.advance(30)
    rig.request()
    await manual_clock.advance(10.9)
    await asyncio.sleep(0.15)
    assert rig.session.told[1:] == []
    await manual_clock.advance(0.3)
    await playing
    assert rig.session.told[1:] == ["end_turn"]
    assert next(rig.history.of(DeadlineHit)).bound_s == 10
    assert next(rig.history.of(TurnEnded)).ended == "deadline"


async def test_a_turn_of_too_many_rounds_is_stopped_before_its_deadline(rig: Rig, manual_clock: Any):
    """Each round sends all results before it again: the time until the deadline would grow with their square."""
    playing = rig.plays()
    await until(lambda: rig.session.told)
    rig.request()
    rig.positions._rounds[1] = 3
    await manual_clock.advance(1)
    await asyncio.sleep(0.15)
    assert rig.session.told[1:] == []
    await manual_clock.advance(1)
    rig.positions._rounds[1] = 4  # (the turn is looked at in real time, so at any moment from here on)
    await playing
    assert [(it.too_many, it.bound_s) for it in rig.history.of(DeadlineHit)] == [("4 rounds of tool calls", 2.0)]
    assert next(rig.history.of(TurnEnded)).ended == "deadline"


async def test_a_turn_of_too_many_rounds_is_stopped_between_two_ticks(manual_clock: Any):
    """In virtual time a round can take less than a thousandth of a tick."""
    rig = Rig(manual_clock, tick_s=1000)
    playing = rig.plays()
    await until(lambda: rig.session.told)
    rig.request()
    rig.positions._rounds[1] = 4
    rig.injector.demands.put_nowait(("look", None))
    async with asyncio.timeout(10):
        await playing
    assert next(rig.history.of(DeadlineHit)).too_many == "4 rounds of tool calls"


async def _goes_on(rig: Rig, clock: Any) -> bool:
    """Whether the turn is not stopped within a second."""
    await clock.advance(1)
    await asyncio.sleep(0.15)
    return rig.session.told[1:] == []


async def test_a_turn_is_stopped_once_one_step_is_surely_paid_too_often(manual_clock: Any):
    """Refused calls, calls beside the conversation, and those of another step or turn do not count."""
    rig = Rig(manual_clock, counts=CountBounds(paid_calls=2))
    looks: list[int] = []
    rig.player.hung = _noting(looks)
    playing = rig.plays()
    await until(lambda: rig.session.told)
    for call, of in enumerate(({}, {}, {"step": 2}, {"background": "title"}, {"turn": 2}), 1):
        rig.paid(call, **of)
    rig.request(call=6)
    assert await _goes_on(rig, manual_clock)
    await manual_clock.advance(1)
    rig.paid(7)  # from now on the player may look at any moment
    await playing
    assert rig.session.told[1:] == ["end_turn"]
    assert [(it.too_many, it.bound_s) for it in rig.history.of(DeadlineHit)] == [("3 paid calls of one step", 2.0)]
    assert looks == [], "it hangs nowhere"


def _noting(looks: list[int]) -> Any:
    async def look(turn: int) -> None:
        looks.append(turn)

    return look


async def test_a_turn_is_stopped_once_all_its_calls_are_surely_too_many(manual_clock: Any):
    """Refused ones and those beside the conversation count too, as `calls_per_turn` does."""
    rig = Rig(manual_clock, counts=CountBounds(calls=2))
    playing = rig.plays()
    await until(lambda: rig.session.told)
    rig.request(call=1)
    rig.paid(2, background="title")
    rig.paid(3, turn=2)
    assert await _goes_on(rig, manual_clock)
    rig.request(call=4, step=2)
    await manual_clock.advance(1)
    await playing
    assert [it.too_many for it in rig.history.of(DeadlineHit)] == ["3 calls"]


async def test_an_agent_that_is_being_killed_is_not_stopped_for_its_calls(manual_clock: Any):
    """The kill ends its turn."""
    rig = Rig(manual_clock, counts=CountBounds(calls=0))
    rig.injector.agent.dying_until_s = 5.0
    playing = rig.plays()
    await until(lambda: rig.session.told)
    rig.request()
    assert await _goes_on(rig, manual_clock)
    await manual_clock.advance(5)
    await playing
    assert list(rig.history.of(DeadlineHit))


@pytest.mark.parametrize("stop", ["end", "tool"])
async def test_an_agent_that_has_its_answer_may_take_as_long_to_exit_as_ever(manual_clock: Any, stop: str):
    """Behind its last words, and nowhere else."""
    rig = Rig(manual_clock, exit_s=20.0)
    playing = rig.plays()
    await until(lambda: rig.session.told)
    rig.request()
    rig.history.add(_ended(stop))
    await manual_clock.advance(30.9)
    await asyncio.sleep(0.15)
    assert rig.session.told[1:] == ([] if stop == "end" else ["end_turn"])
    await manual_clock.advance(0.3)
    await playing
    assert rig.session.told[1:] == ["end_turn"]


def _ended(stop: str) -> ReplyEnded:
    sizes = dict.fromkeys(("output_tokens", "tokens_delivered", "body_bytes", "bytes_delivered", "blocks_delivered"), 1)
    return ReplyEnded(call=1, how="complete", stop=stop, **sizes)


@pytest.mark.parametrize("asked", [True, False])
async def test_an_agent_over_its_time_is_looked_at_before_anything_is_ended(rig: Rig, manual_clock: Any, asked: bool):
    """At a deadline, and where it never asked the model; when it is known to be over its time."""
    seen: list[tuple[int, list[Any], str]] = []

    async def look(turn: int) -> None:
        seen.append((turn, rig.session.told[1:], rig.kinds()[-1]))

    rig.player.hung = look
    playing = rig.plays()
    await until(lambda: rig.session.told)
    if asked:
        rig.request()
    await manual_clock.advance(62)
    await playing
    assert seen == [(1, [], "deadline_hit" if asked else "start_missed")]
    assert rig.session.told[1:] == ["end_turn"]


async def _hits_its_deadline_after_14_s(rig: Rig, clock: Any) -> None:
    """Ten of the bound, one of grace, and three that the machine or the harness lost."""
    playing = rig.plays()
    await until(lambda: rig.session.told)
    rig.request()
    await clock.advance(13.9)
    await asyncio.sleep(0.15)
    assert not list(rig.history.of(DeadlineHit))
    await clock.advance(0.3)
    await playing
    assert list(rig.history.of(DeadlineHit))


async def test_our_own_lag_stretches_the_deadline(rig: Rig, manual_clock: Any):
    """Three seconds that we lost are not the agent's."""
    rig.watchdog.worst_s = 3
    await _hits_its_deadline_after_14_s(rig, manual_clock)


@dataclass
class FakeMeter:
    """So much was waited for a processor, whenever it is asked."""

    waits_s: float
    harness_s: float = 0.0

    def waited_s(self, since_s: float, *, with_harness: bool = False) -> float:
        return self.waits_s + (self.harness_s if with_harness else 0.0)

    def seen(self, turn: int) -> CpuWaitSeen:
        return CpuWaitSeen(turn=turn, waits=())


async def test_what_the_run_waited_for_processors_puts_the_deadline_off(rig: Rig, manual_clock: Any):
    """All of it was granted, so the silence is the agent's own."""
    rig.run.cpu = FakeMeter(3)  # type: ignore[assignment]
    await _hits_its_deadline_after_14_s(rig, manual_clock)
    assert [it.cpu_wait_s for it in rig.history.of(DeadlineHit)] == [0.0]


async def test_the_wait_for_an_agent_that_gets_no_processor_has_an_end(rig: Rig, manual_clock: Any):
    """That it was granted less than it had waited is said."""
    rig.run.cpu = FakeMeter(LONGEST_STRETCH_S + 20)  # type: ignore[assignment]
    playing = rig.plays()
    await until(lambda: rig.session.told)
    rig.request()
    await manual_clock.advance(10.9 + LONGEST_STRETCH_S)
    await asyncio.sleep(0.15)
    assert not list(rig.history.of(DeadlineHit))
    await manual_clock.advance(0.3)
    await playing
    assert [it.cpu_wait_s for it in rig.history.of(DeadlineHit)] == [LONGEST_STRETCH_S + 20]


async def test_waits_of_the_harness_do_not_put_off_the_start(rig: Rig, manual_clock: Any):
    """Before its first request the agent waits for no reply of ours."""
    rig.run.cpu = FakeMeter(0, harness_s=3)  # type: ignore[assignment]
    playing = rig.plays()
    await until(lambda: rig.session.told)
    await manual_clock.advance(61.3)
    await playing
    assert list(rig.history.of(StartMissed))


async def test_waits_of_the_harness_while_it_replies_put_off_the_deadline(rig: Rig, manual_clock: Any):
    """A starved model is late with every reply."""
    rig.run.cpu = FakeMeter(0, harness_s=3)  # type: ignore[assignment]
    await _hits_its_deadline_after_14_s(rig, manual_clock)


async def test_each_turn_tells_of_its_waits_before_its_end(rig: Rig):
    """So that a history that ends with it holds them."""
    rig.run.cpu = FakeMeter(1)  # type: ignore[assignment]
    rig.session.over.set()
    await rig.plays()
    assert rig.kinds() == ["stimulus_given", "cpu_wait_seen", "turn_ended"]


async def test_a_start_is_put_off_the_same_way(rig: Rig, manual_clock: Any):
    """It is then that an interpreter needs its processor most."""
    rig.run.cpu = FakeMeter(3)  # type: ignore[assignment]
    playing = rig.plays()
    await until(lambda: rig.session.told)
    await manual_clock.advance(63.9)
    await asyncio.sleep(0.15)
    assert not list(rig.history.of(StartMissed))
    await manual_clock.advance(0.3)
    await playing
    assert list(rig.history.of(StartMissed))


async def test_no_request_within_the_start_bound_ends_the_turn(rig: Rig, manual_clock: Any):
    """It is told as such, and not as a deadline."""
    playing = rig.plays()
    await until(lambda: rig.session.told)
    await manual_clock.advance(60.9)
    await asyncio.sleep(0.15)
    assert not list(rig.history.of(StartMissed))
    await manual_clock.advance(0.3)
    await playing
    assert next(rig.history.of(StartMissed)).bound_s == 60
    assert not list(rig.history.of(DeadlineHit))


async def test_the_time_for_the_first_request_begins_when_no_fault_keeps_it_away(
    rig: Rig, manual_clock: Any, monkeypatch: pytest.MonkeyPatch
):
    """An agent that has just left a silent connection asks its model a moment later."""
    away = PropertyMock(return_value=True)
    monkeypatch.setattr(Injector, "keeps_requests_away", away)
    playing = rig.plays()
    await until(lambda: rig.session.told)
    await manual_clock.advance(10)
    await asyncio.sleep(0.15)
    away.return_value = False
    await manual_clock.advance(60.5)
    await asyncio.sleep(0.15)
    assert not list(rig.history.of(StartMissed))
    await manual_clock.advance(0.8)
    await playing
    assert next(rig.history.of(StartMissed)).bound_s == 60


async def test_while_a_fault_keeps_requests_away_the_deadline_counts_from_the_usual_start(rig: Rig, manual_clock: Any):
    """Start-up as the control measured it: 2 s, then 10, then ours."""
    type(rig.injector).keeps_requests_away  # noqa: B018  it is a property of the class
    rig.run.injector = away = type("Away", (), {"keeps_requests_away": True})()
    for name in (
        "before_turn",
        "after_turn",
        "demands",
        "broken",
        "open_calls",
        "agent",
        "frozen_s",
        "messages",
    ):
        setattr(away, name, getattr(rig.injector, name))
    playing = rig.plays()
    await until(lambda: rig.session.told)
    await manual_clock.advance(12.9)
    await asyncio.sleep(0.15)
    assert not list(rig.history.of(DeadlineHit))
    await manual_clock.advance(0.3)
    await playing
    assert list(rig.history.of(DeadlineHit)) and not list(rig.history.of(StartMissed))


@pytest.mark.parametrize(
    ("demand", "told", "event"), [(("abort", None), "abort", AbortSent), (("give_up", 8.0), "give_up", GaveUp)]
)
async def test_a_demand_of_the_plan_is_obeyed_at_once(rig: Rig, demand: Any, told: str, event: Any):
    """The event comes before the deed."""
    playing = rig.plays()
    await until(lambda: rig.session.told)
    await rig.injector.demands.put(demand)
    await playing
    assert rig.session.told[-1] == told
    assert rig.kinds() == ["stimulus_given", event.kind, "turn_ended"]


async def test_a_service_is_watched_after_it_was_stopped_and_a_command_is_not(manual_clock: Any):
    """What lives on might go on spending: four seconds of quiet are enough."""
    for stays in (False, True):
        rig = Rig(manual_clock, stays=stays)
        playing = rig.plays()
        await until(lambda rig=rig: rig.session.told)
        await rig.injector.demands.put(("abort", None))
        await until(lambda rig=rig: list(rig.history.of(TurnEnded)))
        await asyncio.sleep(0.05)
        assert playing.done() is not stays
        await manual_clock.advance(4.2)
        assert playing.done()


async def test_a_service_that_spends_after_its_stop_has_shown_what_there_is_to_see(manual_clock: Any):
    """A request later than the stretched bound ends the watching; before that it does not."""
    rig = Rig(manual_clock, stays=True)
    rig.injector.open_calls.add(1)
    playing = rig.plays()
    await until(lambda: rig.session.told)
    await rig.injector.demands.put(("abort", None))
    await until(lambda: list(rig.history.of(TurnEnded)))
    await manual_clock.advance(1)
    rig.request()
    await manual_clock.advance(3)
    assert not playing.done(), "a call is still open"
    rig.request()
    await manual_clock.advance(0.1)
    assert playing.done()


async def test_a_request_that_the_waits_for_processors_may_have_delayed_does_not_end_the_watch(manual_clock: Any):
    """Those of the harness count too: the judge would find the run inconclusive."""
    rig = Rig(manual_clock, stays=True)
    rig.run.cpu = FakeMeter(1, harness_s=1)  # type: ignore[assignment]
    playing = rig.plays()
    await until(lambda: rig.session.told)
    await rig.injector.demands.put(("abort", None))
    await until(lambda: list(rig.history.of(TurnEnded)))
    for at_s, shown in ((4.5, False), (5.1, False), (5.4, True)):
        await manual_clock.advance(at_s - manual_clock.now())
        rig.request()
        await manual_clock.advance(0.05)
        assert playing.done() is shown, at_s


async def test_a_service_is_watched_while_a_tool_of_the_stopped_turn_still_runs(manual_clock: Any):
    """What it does with the result will show; a tool of another turn does not matter here."""
    rig = Rig(manual_clock, stays=True)
    rig.history.add(BeaconSeen(token="11.1.1", phase="started"))
    for phase in ("started", "done"):
        rig.history.add(BeaconSeen(token="1.1.1", phase=phase))
    rig.history.add(BeaconSeen(token="1.1.2", phase="started"))
    playing = rig.plays()
    await until(lambda: rig.session.told)
    await rig.injector.demands.put(("abort", None))
    await until(lambda: list(rig.history.of(TurnEnded)))
    await manual_clock.advance(5)
    assert not playing.done(), "the second command has not come to its end"
    rig.history.add(BeaconSeen(token="1.1.2", phase="done", exit_code=0))
    await manual_clock.advance(0.2)
    assert playing.done()


async def test_the_watch_after_a_stop_comes_to_an_end(manual_clock: Any):
    """Also with a call that never ends."""
    rig = Rig(manual_clock, stays=True)
    rig.injector.open_calls.add(1)
    playing = rig.plays()
    await until(lambda: rig.session.told)
    await rig.injector.demands.put(("abort", None))
    await until(lambda: list(rig.history.of(TurnEnded)))
    await manual_clock.advance(AfterStop().longest_s + 0.2)
    assert playing.done()


@pytest.mark.parametrize(("waits_s", "granted_s"), [(8.0, 8.0), (LONGEST_STRETCH_S + 20, LONGEST_STRETCH_S)])
async def test_waits_for_processors_put_off_the_end_of_the_watch(manual_clock: Any, waits_s: float, granted_s: float):
    """Else a service that spends for ever would be undecided on a busy machine; the wait for it has an end."""
    rig = Rig(manual_clock, stays=True)
    rig.run.cpu = FakeMeter(0, harness_s=waits_s)  # type: ignore[assignment]
    rig.injector.open_calls.add(1)
    playing = rig.plays()
    await until(lambda: rig.session.told)
    await rig.injector.demands.put(("abort", None))
    await until(lambda: list(rig.history.of(TurnEnded)))
    await manual_clock.advance(AfterStop().longest_s + granted_s - 0.2)
    assert not playing.done()
    await manual_clock.advance(0.4)
    assert playing.done()


async def test_a_network_that_breaks_in_mid_turn_stops_it(rig: Rig):
    """The agent is ended first, so that nothing half-owned stays."""
    playing = rig.plays()
    await until(lambda: rig.session.told)
    rig.injector.network_died()
    with pytest.raises(NetworkBrokeError):
        await playing
    assert rig.session.told[-1] == "end_turn"


async def test_an_agent_that_cannot_be_run_says_so(rig: Rig):
    """The error passes to the caller."""
    rig.session.fails = AgentError("no such program")
    with pytest.raises(AgentError, match="no such program"):
        await rig.plays()


async def test_a_cancelled_turn_leaves_no_task_waiting(rig: Rig):
    """Ctrl-C in mid turn: the session's own task is cancelled and awaited."""
    playing = rig.plays()
    await until(lambda: rig.session.told)
    playing.cancel()
    await asyncio.gather(playing, return_exceptions=True)
    assert rig.session.cancelled
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_of_an_endless_talker_the_last_words_are_kept(rig: Rig):
    """The log has all of it."""
    rig.session.outcome = Outcome(stdout="x" * TEXT_KEPT + "end", stderr="y")
    rig.session.over.set()
    await rig.plays()
    ended = next(rig.history.of(TurnEnded))
    assert len(ended.stdout) < TEXT_KEPT and ended.stdout.endswith("xend")
    assert ended.stdout.startswith("xxx") and "[… 18,003 characters are left out]" in ended.stdout


@pytest.mark.parametrize("before", ["", "step\n" * 500])
def test_a_long_line_hides_nothing_before_or_after_it(before: str):
    """Long lines are shortened first; what is still too long keeps its beginning and its end."""
    kept = kept_text(f"{before}Done nonce-1\n{'x' * 10_000_000}\nbye\n")
    assert "Done nonce-1\nxxx" in kept and kept.endswith("xxx\nbye\n") and len(kept) < TEXT_KEPT
    many = kept_text("first\n" + "a line\n" * 10_000 + "last\n")
    assert many.startswith("first\n") and many.endswith("last\n") and len(many) < TEXT_KEPT + 100
    assert kept_text("y" * TEXT_KEPT) == "y" * TEXT_KEPT
