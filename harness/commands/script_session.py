"""A script file as the fake provider's sessions play it: its lines, and the faults on them.

A fault hits every reply of its line. `at: {turn, step, attempt}` and `times` are counted per session. Each faulty reply
has an injector of its own, the same as in a run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from wedgehog.fake_llm.admin.request_log import LoggedFault, LoggedRequest
from wedgehog.fake_llm.admin.sessions import ProviderSession
from wedgehog.fake_llm.balance import BalanceConfig
from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.observer import BEFORE_HEAD, Point
from wedgehog.fake_llm.reply import Answer, Reply
from wedgehog.fake_llm.script.conversations import doubled
from wedgehog.fake_llm.script.position import CallPosition
from wedgehog.fake_llm.script.script_file import ReplyLine, ScriptFile, WhenScript
from wedgehog.fake_llm.script.structured import structured
from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.faults.reply_fault import Context, ReplyFault
from wedgehog.harness.inject.injector import Injector
from wedgehog.harness.network.base import Address, Downstream, Target, WholeLink
from wedgehog.harness.network.direct_link import DirectLink, DirectStrike
from wedgehog.harness.record.clock import Clock
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.history import History
from wedgehog.harness.scenario.document import Document
from wedgehog.harness.scenario.fault_config import FaultConfig
from wedgehog.harness.scenario.fault_plan import ALWAYS, FaultPlan, PlannedFault
from wedgehog.harness.scenario.trigger import AtReply

_POSITIONS = ("turn", "step", "attempt")
Place = tuple[str | int, ...]
"""Keys and indexes of a line in its file."""
_PLACES = {*_POSITIONS, "event", "byte", "phase"}


class FaultyLink:
    """The link of `serve`, and the faulty replies that are under way on it."""

    def __init__(self, clock: Clock) -> None:
        """`link` is set when it is open."""
        self.clock = clock
        self.link: DirectLink | None = None
        self._replies: list[FaultyReply] = []

    async def gate(self, attempt: LoggedRequest, point: Point) -> Sequence[int]:
        """Hold a reply, and inject its fault; return where it is held next."""
        if point.at == BEFORE_HEAD and isinstance(attempt.pending, PlannedFault) and self.link is not None:
            await self._forget([reply for reply in self._replies if reply.over])
            attempt.pending = FaultyReply(attempt.pending, self.link, self.clock, attempt, point)
            self._replies.append(attempt.pending)
        reply = attempt.pending
        return await reply.injector.gate(point) if isinstance(reply, FaultyReply) else ()

    async def close(self) -> None:
        """End what waits; nothing is healed any more."""
        await self._forget(list(self._replies))

    async def _forget(self, replies: "list[FaultyReply]") -> None:
        for reply in replies:
            self._replies.remove(reply)
            await reply.injector.end_tasks()


class FaultyReply:
    """One reply with a fault; a `Link` for its injector, on which a fault reaches this reply's connection only."""

    name = "llm"

    def __init__(
        self, planned: PlannedFault, link: DirectLink, clock: Clock, attempt: LoggedRequest, at: Point
    ) -> None:
        """The reply is held at its first byte."""
        trigger = replace(planned.trigger, turn=1, step=1, attempt=1)
        plan = FaultPlan((replace(planned, trigger=trigger, times=1),))
        self.address, self._link, self._attempt = link.address, link, attempt
        self._before = at.carried + at.head
        self._strike: DirectStrike | None = None
        self.injector = Injector(plan, {self.name: self}, History(clock), clock)
        self.injector.arrived(at.call, CallPosition(1, 1, 1), "")
        self._held_at = 0
        if (byte := trigger.byte_in(at)) is not None:
            self._held_at = max(0, byte)
            closes = isinstance(planned.fault, WireFault) and planned.fault.ends in ("fin", "rst")
            attempt.struck = LoggedFault(planned.fault.name, self._held_at, self._passed, self._proof, closes)

    @property
    def over(self) -> bool:
        """Whether its fault is healed, or its connection gone without a fault that others meet."""
        (state,) = self.injector.states
        return state.healed.is_set() or (self._attempt.gone_at is not None and state.planned.heals_in_s is None)

    def _passed(self) -> int | None:
        if self._strike is None:
            return None
        # None: the whole link is down; the bytes before the trigger's byte were written.
        return self._held_at if self._strike.passed is None else max(0, self._strike.passed - self._before)

    def _proof(self) -> str:
        fired = self.injector.history.first(FaultFired)
        return self._strike.proof if self._strike is not None else fired.proof if fired is not None else ""

    # ---- a Link

    async def admit(self, conn: Address, carried: int) -> None:
        """Each connection of the relay has a pipe of its own."""

    async def strike(self, fault: WireFault, target: Target) -> DirectStrike:
        """Arm it; other sessions go on undisturbed."""
        if isinstance(target, WholeLink) and target.conn is not None:
            target = Downstream(target.conn, target.at)
        self._strike = await self._link.strike(fault, target)
        return self._strike

    async def close(self) -> None:
        """The link is not its own."""


@dataclass(frozen=True, slots=True)
class LineFault:
    """The fault of one line. It hits the replies at its position, `times` times in each session."""

    line: Place
    planned: PlannedFault
    position: tuple[tuple[str, int], ...] = ()
    times: int = ALWAYS

    @classmethod
    def read(cls, document: Document, line: Place) -> "LineFault":
        """Read a line's `fault`. Errors: BadFileError: it is no fault, or none that can hit a reply."""
        place = (*line, "fault")
        words = document.into(FaultConfig, at=place)
        planned = words.planned()
        on_reply = words.link == "llm" and not planned.trigger.before_request
        if not on_reply or not isinstance(planned.fault, WireFault | ReplyFault) or "tokens" in planned.fault.needs:
            raise document.error(place, f"{planned.fault.name} can't be injected into a reply of `serve`")
        for name in sorted(words.at.model_fields_set - _PLACES):
            raise document.error(
                (*place, "at", name), f"`{name}` has no meaning in a script, which has no turns of its own"
            )
        if isinstance(planned.fault, WireFault) and planned.fault.closes_port and planned.heals_in_s is None:
            raise document.error(place, f"{planned.fault.name} would never end: write `heal: {{after_s: 5}}`")
        written = words.at.model_fields_set
        position = tuple((name, getattr(words.at, name)) for name in _POSITIONS if name in written)
        return cls(line, planned, position, planned.times if "times" in words.model_fields_set else ALWAYS)

    def applies(self, session: ProviderSession, attempt: LoggedRequest) -> bool:
        """Whether this reply is faulty; each asking counts."""
        if any(getattr(attempt, name) != wanted for name, wanted in self.position):
            return False
        session.times[self.line] += 1
        return self.times == ALWAYS or session.times[self.line] <= self.times


def _lines(file: ScriptFile) -> Iterator[tuple[Place, ReplyLine]]:
    """All lines of a script, with their places in it."""
    for at, line in enumerate(file.replies):
        yield ("replies", at), line
    for number, conversation in enumerate(file.conversations):
        for at, line in enumerate(conversation.replies):
            yield ("conversations", number, "replies", at), line


class ScriptSession:
    """A script whose lines may carry a fault."""

    def __init__(self, document: Document, text: str, link: FaultyLink) -> None:
        """Read the script and every fault in it. Errors: BadFileError."""
        file = document.into(ScriptFile)
        self.text = text
        self.balance: BalanceConfig | None = file.balance
        self._script, self._link = WhenScript(file), link
        if (second := doubled(file.conversations)) is not None:
            raise document.error(("conversations", second, "name"), "a second conversation of this name")
        self._faults = {
            id(line): LineFault.read(document, place) for place, line in _lines(file) if line.fault is not None
        }

    def answer(self, session: ProviderSession, attempt: LoggedRequest, conversation: Conversation) -> Answer:
        """What the first fitting line says, after its reply fault."""
        attempt.conversation = self._script.name_of(conversation)
        line = self._script.line(conversation)
        answer, faulty = line.answer(), self._faults.get(id(line))
        if isinstance(answer, Reply):
            answer = structured(answer, conversation)
        if faulty is None or not faulty.applies(session, attempt):
            return answer
        fault, at = faulty.planned.fault, faulty.planned.trigger
        if not isinstance(fault, ReplyFault):
            attempt.pending = faulty.planned
            return answer
        event = at.event if isinstance(at, AtReply) else None
        size = sum(len(message.text) for message in conversation.messages)
        kept = session.kept[faulty.line]
        now = self._link.clock.wall()
        context = Context(event, request_bytes=size, now=now, conversation=conversation, kept=kept)
        altered = fault.on_answer(answer, context)
        proof = "the model's answer is another one" if altered != answer else ""
        attempt.struck = LoggedFault(fault.name, proof=lambda: proof)
        return altered

    async def gate(self, attempt: LoggedRequest, point: Point) -> Sequence[int]:
        """Hold the reply for its fault, if it has one."""
        return await self._link.gate(attempt, point)
