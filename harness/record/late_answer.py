"""What became of a message, also when it was answered late or by another turn than its own."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from wedgehog.harness.record.event import AgentKilled, FaultFired
from wedgehog.harness.record.history import Call, History, Turn
from wedgehog.harness.record.turn_outcome import outcome_of, plain

MessageOutcomeKind = Literal["answered", "told", "late", "kept", "lost", "owed nothing"]
"""`told`: its user saw an error, or what passed for an answer; `late`: answered after its own turn was over; `kept`:
never answered, though a later request carries it; `lost`: not even that."""


@dataclass(frozen=True, slots=True)
class MessageOutcome:
    """What became of one message; `where`: the turn in which a late answer came, if it came in one."""

    turn: Turn
    kind: MessageOutcomeKind
    where: Turn | None = None

    @property
    def unanswered(self) -> bool:
        """Whether its user got neither an answer nor an error in its turn."""
        return self.kind in ("late", "kept", "lost")

    def __str__(self) -> str:
        """`turn 2 answered late (in turn 4)`."""
        if self.kind == "late":
            return f"{self.turn} answered late ({f'in {self.where}' if self.where else 'to nobody'})"
        return f"{self.turn} {'lost' if self.kind == 'lost' else 'never answered, though still in the conversation'}"


def message_outcome(turn: Turn, history: History) -> MessageOutcome:
    """What became of the message of `turn`."""
    kind = outcome_of(turn, history).kind
    if turn.stimulus is None or turn.stimulus.stimulus == "wake_up" or kind in OWES_NOTHING:
        return MessageOutcome(turn, "owed nothing")
    if kind == "answered":
        return MessageOutcome(turn, "answered")
    if kind not in ("silent", "hidden"):
        return MessageOutcome(turn, "told")
    elsewhere = next((other for other in history.turns if other is not turn and _answers(turn, other)), None)
    if elsewhere is not None:
        return MessageOutcome(turn, "late", elsewhere)
    if any(_answered_after(turn, call) for call in turn.main_calls):
        return MessageOutcome(turn, "late")
    carried = any(turn.number in call.arrived.turns_seen for call in _after(turn, history))
    return MessageOutcome(turn, "kept" if carried else "lost")


OWES_NOTHING = ("stopped by its user", "killed", "unfinished")


def after_the_harm(history: History) -> tuple[Turn, ...]:
    """The scenario's turns that began when every fault had struck, and was healed."""
    harm = max((event.id for kind in (FaultFired, AgentKilled) for event in history.of(kind)), default=None)
    if harm is None:
        return ()
    return tuple(t for t in history.turns if not t.recovery and t.stimulus is not None and t.stimulus.id > harm)


def told(fates: Sequence[MessageOutcome]) -> str:
    """Of the unanswered ones among `fates`, what became of each; empty where all were answered."""
    unanswered = [fate for fate in fates if fate.unanswered]
    if not unanswered:
        return ""
    of = f"of {len(fates)} messages" if len(fates) > 1 else "of one message"
    return f"{of} {len(unanswered)} unanswered in time: {', '.join(map(str, unanswered))}"


def _answers(asked: Turn, answered: Turn) -> bool:
    nonce = plain(asked.stimulus.nonce) if asked.stimulus else ""
    return answered.end is not None and bool(nonce) and nonce in plain(answered.end.answer)


def _answered_after(turn: Turn, call: Call) -> bool:
    """A last reply that arrived whole when nobody waited for it any more."""
    over = turn.end is not None and call.ended is not None and call.ended.id > turn.end.id
    return over and call.ok and call.ended is not None and call.ended.stop == "end"


def _after(turn: Turn, history: History) -> Iterator[Call]:
    end = turn.end
    return (call for call in history.calls if call.main and end is not None and call.arrived.id > end.id)
