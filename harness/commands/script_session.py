"""A script file as the fake provider's sessions play it: its lines, and the faults on them.

A fault strikes every reply of its line; `at: {turn, step, attempt}` and `times`, where they are written, are read in
each session for itself. Bytes are harmed by the relay before the fake, or by the fake holding them.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from wedgehog.fake_llm.admin.balance import BalanceConfig
from wedgehog.fake_llm.admin.logged_request import LoggedFault, LoggedRequest
from wedgehog.fake_llm.admin.sessions import ProviderSession
from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.observer import BEFORE_HEAD, Point
from wedgehog.fake_llm.reply import Answer
from wedgehog.fake_llm.script.when import ScriptFile, WhenScript
from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.faults.reply_fault import Context, ReplyFault
from wedgehog.harness.inject.resolve_offset import resolve_offset
from wedgehog.harness.network.base import Downstream
from wedgehog.harness.network.relay import RelayLink, RelayStrike
from wedgehog.harness.record.clock import Clock
from wedgehog.harness.scenario.document import Document
from wedgehog.harness.scenario.model import FaultConfig
from wedgehog.harness.scenario.plan import ALWAYS, PlannedFault
from wedgehog.harness.scenario.trigger import AtReply

_POSITIONS = ("turn", "step", "attempt")
_PLACES = {*_POSITIONS, "event", "byte", "phase"}


class FaultyLink:
    """The link on which stories strike, and what heals itself there."""

    def __init__(self, clock: Clock) -> None:
        """There is no link yet; whoever opens one puts it here."""
        self.clock = clock
        self.link: RelayLink | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def strike(self, planned: PlannedFault, attempt: LoggedRequest, point: Point, at: int) -> None:
        """Do the harm, and note it; who hangs up meanwhile does not stop it halfway."""
        await asyncio.shield(self._spawn(self._strike(planned, attempt, point, at)))

    def close(self) -> None:
        """Heal nothing any more."""
        for task in self._tasks:
            task.cancel()

    async def _strike(self, planned: PlannedFault, attempt: LoggedRequest, point: Point, at: int) -> None:
        fault = planned.fault
        if self.link is None or not isinstance(fault, WireFault):
            return
        before = point.carried + point.head
        where = Downstream(point.conn.peer, point.carried if at == BEFORE_HEAD else before + at)
        strike = await self.link.strike(fault, where)
        attempt.struck = LoggedFault(fault.name, max(0, at), lambda: _passed(strike, before), lambda: strike.proof)
        if planned.heals_in_s is not None:
            self._spawn(self._heal(strike, planned.heals_in_s))

    async def _heal(self, strike: RelayStrike, after_s: float) -> None:
        await self.clock.sleep(after_s)
        await strike.heal()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _passed(strike: RelayStrike, before: int) -> int | None:
    if strike.passed is None:
        return 0  # the whole link is down: what was held here has gone nowhere
    return max(0, strike.passed - before)


@dataclass(frozen=True, slots=True)
class LineFault:
    """The fault of one line, and which of its replies are struck: those at this position, so often in a session."""

    line: int
    planned: PlannedFault
    position: tuple[tuple[str, int], ...] = ()
    times: int = ALWAYS

    @classmethod
    def read(cls, document: Document, line: int) -> "LineFault":
        """Read what stands under a line's `fault`.

        Raises:
            BadFile: it is no fault, or none that could strike here.
        """
        place = ("replies", line, "fault")
        words = document.into(FaultConfig, at=place)
        planned = words.planned()
        on_reply = words.link == "llm" and not planned.trigger.before_request
        if not on_reply or not isinstance(planned.fault, WireFault | ReplyFault):
            raise document.error(place, f"{planned.fault.name} can't strike a reply of `serve`")
        for name in sorted(words.at.model_fields_set - _PLACES):
            raise document.error(
                (*place, "at", name), f"`{name}` means nothing to a script: it has no turns of its own"
            )
        if isinstance(planned.fault, WireFault) and planned.fault.closes_port and planned.heals_in_s is None:
            raise document.error(place, f"{planned.fault.name} would never end: write `heal: {{after_s: 5}}`")
        written = words.at.model_fields_set
        position = tuple((name, getattr(words.at, name)) for name in _POSITIONS if name in written)
        return cls(line, planned, position, planned.times if "times" in words.model_fields_set else ALWAYS)

    def strikes(self, session: ProviderSession, attempt: LoggedRequest) -> bool:
        """Tell if this reply is struck; each asking counts."""
        if any(getattr(attempt, name) != wanted for name, wanted in self.position):
            return False
        session.times[self.line] += 1
        return self.times == ALWAYS or session.times[self.line] <= self.times


class ScriptSession:
    """A script whose lines may carry a fault."""

    def __init__(self, document: Document, text: str, harmed: FaultyLink) -> None:
        """Read the script and every fault in it.

        Raises:
            BadFile: one line with file, line and what was expected.
        """
        file = document.into(ScriptFile)
        self.text = text
        self.balance: BalanceConfig | None = file.balance
        self._script, self._harmed = WhenScript(file), harmed
        lines = enumerate(self._script.lines)
        self._faults = {id(line): LineFault.read(document, index) for index, line in lines if line.fault is not None}

    def answer(self, session: ProviderSession, attempt: LoggedRequest, conversation: Conversation) -> Answer:
        """What the first fitting line says, after its reply fault."""
        line = self._script.line(conversation)
        answer, harm = line.answer(), self._faults.get(id(line))
        if harm is None or not harm.strikes(session, attempt):
            return answer
        fault, at = harm.planned.fault, harm.planned.trigger
        if not isinstance(fault, ReplyFault):
            attempt.pending = harm.planned
            return answer
        event = at.event if isinstance(at, AtReply) else None
        size = sum(len(message.text) for message in conversation.messages)
        context = Context(event, request_bytes=size, now=self._harmed.clock.wall())
        harmed = fault.on_answer(answer, context)
        proof = "the model's answer is another one" if harmed != answer else ""
        attempt.struck = LoggedFault(fault.name, proof=lambda: proof)
        return harmed

    async def gate(self, attempt: LoggedRequest, point: Point) -> Sequence[int]:
        """Strike the reply at its fault's spot."""
        planned: PlannedFault | None = attempt.pending
        if planned is None or point.at < BEFORE_HEAD or not isinstance(planned.fault, WireFault):
            return ()
        at, fault = resolve_offset(planned.trigger, point), planned.fault
        if at is None:
            return ()
        if point.at != at and (fault.begins == "at_spot" or point.at != BEFORE_HEAD):
            return (at,) if point.at < at else ()
        attempt.pending = None
        if (seconds := fault.holds_s) is not None:
            attempt.struck = LoggedFault(
                fault.name, max(0, at), proof=lambda: f"the fake provider held it for {seconds:g} s"
            )
            await self._harmed.clock.sleep(seconds)
        else:
            await self._harmed.strike(planned, attempt, point, at)
        return ()
