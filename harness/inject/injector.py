"""The injector as others see it: turns begin and end, replies are held at the gate, tools leave beacons."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from wedgehog.fake_llm.observer import Point
from wedgehog.fake_llm.reply import Answer, Reply
from wedgehog.fake_llm.script.position import CallPosition
from wedgehog.harness.faults.chat_fault import ChatFault
from wedgehog.harness.faults.process_fault import ActorFault, HostFault
from wedgehog.harness.faults.reply_fault import Context, ReplyFault
from wedgehog.harness.faults.result_fault import ResultFault
from wedgehog.harness.inject.agent_hands import AgentHands
from wedgehog.harness.inject.backend_faults import BackendFaults
from wedgehog.harness.inject.fault_state import FaultState
from wedgehog.harness.inject.injector_state import SETTLE_S, DeliveryListener
from wedgehog.harness.inject.limited_reply import LimitKind
from wedgehog.harness.inject.link_faults import LinkFaults
from wedgehog.harness.inject.process_faults import ProcessFaults
from wedgehog.harness.inject.reply_gate import ReplyGate
from wedgehog.harness.inject.service_faults import ServiceFaults
from wedgehog.harness.inject.stdio_faults import StdioFaults
from wedgehog.harness.inject.targets import Targets
from wedgehog.harness.inject.token_faults import TokenFaults
from wedgehog.harness.network.base import Link, NetworkError
from wedgehog.harness.record.clock import Clock
from wedgehog.harness.record.events.fault import FaultArmed
from wedgehog.harness.record.history import History
from wedgehog.harness.scenario.fault_plan import FaultPlan, PlannedFault
from wedgehog.harness.scenario.link_triggers import AtBackend, AtChat, AtPipe
from wedgehog.harness.scenario.trigger import (
    AfterStart,
    AtCall,
    AtReply,
    AtTool,
    BeforeRequest,
    SessionIdle,
)

BACKGROUND_PROOF_S = 1.0
"""The end of a turn waits at most this long for the proof of a fault on a background call."""


class Injector(LinkFaults):
    """The faults of one run: services ask `tools`, `wedgehog-pipe` asks `pipes`, the turn player obeys the rest."""

    def __init__(
        self,
        plan: FaultPlan,
        links: Mapping[str, Link],
        history: History,
        clock: Clock,
        messages: Sequence[PlannedFault] = (),
        *,
        targets: Targets | None = None,
        delivered: DeliveryListener = lambda call, cut: None,
    ) -> None:
        """Nothing is armed before the first turn. `links` may be empty: each is looked up when a fault is armed."""
        super().__init__(plan, links, history, clock, messages, delivered)
        self.agent = ProcessFaults(self, targets or Targets(), AgentHands)
        self._gate = ReplyGate(self, self.agent)
        self.tools, self.pipes, self.backends = ServiceFaults(self), StdioFaults(self), BackendFaults(self)
        self.tokens = TokenFaults(self)
        self.demands, self.messages = self.agent.demands, self.agent.messages
        self._turns: set[int] = set()

    @property
    def frozen_s(self) -> float:
        """How long the agent has stood still so far: no bound of its time runs meanwhile."""
        return self.agent.frozen_s

    # ---- turns

    async def while_idle(self, turn: int) -> None:
        """Cause what happens in the pause before the turn's message."""
        for state in self.of_turn(turn):
            if isinstance(state.at, SessionIdle):
                self._tell_armed(state)
                await self.agent.act(state)

    async def before_turn(self, turn: int) -> None:
        """Arm what must be there before the turn's first request, and start its timers."""
        self._turns.add(turn)
        self.turn = turn
        self.backends.before_turn()
        for state in self.of_turn(turn):
            if not isinstance(state.at, SessionIdle):
                self._tell_armed(state)
            if isinstance(state.at, BeforeRequest) and state.at.step == 1:
                await self.guarded(self.before_request(state))
            elif isinstance(state.at, AfterStart):
                self.spawn(self._after(state))
        await self.pipes.before_turn()

    def _tell_armed(self, state: FaultState) -> None:
        name, link = state.planned.fault.name, state.planned.link
        if state.index < len(self.plan.faults):
            self.history.add(FaultArmed(fault=state.index, name=name, link=link))

    async def after_turn(self, turn: int) -> None:
        """Heal all that this turn's faults left, and settle how much of limited replies arrived."""
        await self._until_titles_are_hit(turn)
        # The last one first: Toxiproxy removes a toxic only when a slow one behind it has taken all its bytes.
        for state in reversed(self.of_turn(turn)):
            if not state.lasts and not self._may_strike_later(state):
                await self.heal(state)
        self.backends.after_turn(turn)
        self._turns.discard(turn)
        if not self._turns:
            self.agent.forget()

    async def _until_titles_are_hit(self, turn: int) -> None:
        """Wait for the proof of faults on background calls: a title is often asked for while its turn ends."""
        until = self.clock.now() + BACKGROUND_PROOF_S
        while self.clock.now() < until and any(map(self._is_about_to_hit_one, self.of_turn(turn))):
            await self.clock.sleep(SETTLE_S)

    def _is_about_to_hit_one(self, state: FaultState) -> bool:
        at = state.at
        if state.wire is None or state.fired or not isinstance(at, AtCall) or at.on == "main":
            return False
        places = (self.calls[call][0] for call in self.open_calls if call in self.calls)
        return any(place.background and at.in_turn(place.turn) and at.names(place) for place in places)

    async def heal_all(self) -> None:
        """Heal everything that can be healed, also what waits for a later turn."""
        for state in reversed(self.states):
            if not state.lasts:
                await self.heal(state)

    async def close(self) -> None:
        """Heal everything and end every task."""
        await self.heal_all()
        await self.end_tasks()

    def _may_strike_later(self, state: FaultState) -> bool:
        """Whether its call may still come in a turn that has not begun, or its conversation outlives the turn."""
        if state.planned.sticks_to == "conversation":
            return True
        return isinstance(state.at, AtCall) and state.at.in_turn(state.at.turn + 1) and not state.fired

    @property
    def keeps_requests_away(self) -> bool:
        """Whether an armed fault may be why no request arrives."""
        return any(_keeps_away(state) for turn in self._turns for state in self.of_turn(turn))

    async def before_request(self, state: FaultState) -> None:
        """Arm a fault on the next request, or do what happens to its host before it."""
        if isinstance(state.planned.fault, ActorFault):
            await self.agent.act(state)
        else:
            await super().before_request(state)

    async def _after(self, state: FaultState, *, settle: bool = False) -> None:
        """A time or a beacon sets it off; `settle`: what has just been written must arrive first."""
        if settle:
            await self.clock.sleep(SETTLE_S)
        if not await self.delay(state):
            return
        if state.wire is not None:
            await self.whole_link(state, self.links[state.planned.link])
        else:
            await self.agent.act(state)

    # ---- what the fake provider and the tools tell

    def arrived(self, call: int, place: CallPosition, model: str) -> None:
        """A request for the model has found its place."""
        self.open_calls.add(call)
        self.calls[call] = (place, model)

    def alter(self, call: int, answer: Answer, context: Context, *, on_script: bool) -> Answer:
        """The answer as the plan's reply faults leave it (first those on the script's words, then on the reply)."""
        for state in self.of_call(call, ReplyFault, count=on_script):
            fault, at = state.planned.fault, state.at
            if isinstance(fault, ReplyFault) and isinstance(at, AtReply) and fault.on_script is on_script:
                altered = fault.on_answer(answer, replace(context, event=at.edited_event, kept=state.kept))
                if altered != answer and not _edits(answer, altered):
                    self.fired(state, "the fake provider sent it", call=call)
                answer = altered
        return answer

    def edited(self, call: int, names: Sequence[str]) -> None:
        """These edits apply to the reply that starts now."""
        for state in self.of_call(call, ReplyFault, count=False):
            if state.planned.fault.name in names:
                self.fired(state, "the fake provider changed the stream", call=call)

    def refused(self, call: int) -> None:
        """The provider's own validator refused this request: no fault hits its answer."""
        self._gate.refused(call)

    async def gate(self, point: Point) -> Sequence[int]:
        """Hold a reply until its bytes may pass, with the faults that this call meets armed."""
        return await self._gate.hold(point)

    def ended(self, call: int, paid: bool) -> None:
        """A reply has been written: make what must happen before the next request."""
        self.open_calls.discard(call)
        reply = self.limited.get(call)
        if reply is not None and reply.fault.slows:
            self.spawn(self.once_arrived(call))
        elif reply is not None and (reply.proved or reply.fault.closes_port):
            self.delivered(call, reply.cut(self.clock.now()))
        if paid:
            self.reply_ended(call)
        self.agent.reply_ended(call)

    def beacon(self, token: str, phase: Literal["started", "done"]) -> "list[asyncio.Task[None]]":
        """A scripted command left its trace, or our tool host was called; what that sets off at once."""
        at_once = []
        self.agent.beacon(token, phase)
        turn, step, tool = map(int, token.split("."))
        for state in self.of_turn(turn):
            at = state.at
            if not isinstance(at, AtTool) or (at.tool, at.when, at.step) != (tool, phase, step):
                continue
            if not state.matched and not self.tools.at_its_place(state):
                state.matched += 1
                task = self.spawn(self._after(state, settle=self.tools.at_its_server(state)))
                at_once += [] if at.after_s else [task]
        self.backends.beacon(token, phase)
        if found := self.pipes.set_off_by(token, phase):
            at_once.append(self.spawn(self.pipes.at_tool(found)))
        return at_once

    # ---- what the recorder asks

    def limits(self, call: int) -> LimitKind | None:
        """How a fault limits this reply."""
        reply = self.limited.get(call)
        return reply.how if reply and not reply.settled else None

    def dropped(self, call: int) -> bool:
        """Whether a fault closed the connection of this reply, or the healing of its stall did: the agent did not."""
        reply = self.limited.get(call)
        healed = reply is not None and reply.how == "stalled" and reply.settled and not reply.hung_up
        return healed or (reply is not None and reply.how == "cut") or call in self.dropped_calls

    def network_died(self) -> None:
        """The network is gone."""
        self.fail(NetworkError("it does not answer any more"))


def _keeps_away(state: FaultState) -> bool:
    at = state.at
    if isinstance(at, AtBackend):  # an agent may ask its database before it asks the model
        return bool(state.armed) and not state.healed.is_set()
    if isinstance(state.planned.fault, HostFault):
        return not state.healed.is_set()
    if isinstance(state.planned.fault, ResultFault):  # a tool server that refuses every request
        return at.before_request and state.fired > 0 and not state.healed.is_set()
    polls = isinstance(at, AtChat) and at.chat == "poll"
    if isinstance(state.planned.fault, ChatFault):
        return polls and state.fired > 0 and not state.healed.is_set()
    away = at.before_request or polls
    away = away or (state.wire is not None and state.wire.closes_port)
    return away and not isinstance(at, AtPipe) and bool(state.armed) and not state.healed.is_set()


def _edits(answer: Answer, altered: Answer) -> bool:
    """Whether a fault asks for an edit of the stream: if there is a stream, and if it is long enough, the fake says."""
    return isinstance(answer, Reply) and isinstance(altered, Reply) and answer.edits != altered.edits
