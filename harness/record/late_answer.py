"""The outcome of a message, also if it is answered late or in another turn."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from wedgehog.harness.record.event import AgentKilled, FaultFired
from wedgehog.harness.record.history import Call, History, Turn
from wedgehog.harness.record.turn_outcome import answers, outcome_of

MessageOutcomeKind = Literal["answered", "told", "late", "kept", "lost", "owed nothing"]
"""`told`: the user saw an error or a false answer. `late`: answered after its turn ended. `kept`: in a later
request, but not answered. `lost`: neither."""


@dataclass(frozen=True, slots=True)
class MessageOutcome:
    """The outcome of one message; `where` is the turn with the late answer, if there is one."""

    turn: Turn
    kind: MessageOutcomeKind
    where: Turn | None = None

    @property
    def unanswered(self) -> bool:
        """Whether the user got neither an answer nor an error in the turn."""
        return self.kind in ("late", "kept", "lost")

    def __str__(self) -> str:
        """`turn 2 answered late (in turn 4)`."""
        if self.kind == "late":
            return f"{self.turn} answered late ({f'in {self.where}' if self.where else 'after its turn'})"
        return f"{self.turn} {'lost' if self.kind == 'lost' else 'never answered, though still in the conversation'}"


def message_outcome(turn: Turn, history: History) -> MessageOutcome:
    """The outcome of the message of `turn`."""
    kind = outcome_of(turn, history).kind
    if turn.stimulus is None or turn.stimulus.stimulus == "wake_up" or kind in OWES_NOTHING:
        return MessageOutcome(turn, "owed nothing")
    if kind == "answered":
        return MessageOutcome(turn, "answered")
    if kind not in ("silent", "hidden"):
        return MessageOutcome(turn, "told")
    elsewhere = next((other for other in history.turns if other is not turn and answers(turn, other)), None)
    if elsewhere is not None:
        return MessageOutcome(turn, "late", elsewhere)
    if any(_answered_after(turn, call) for call in turn.main_calls):
        return MessageOutcome(turn, "late")
    carried = any(turn.number in call.arrived.turns_seen for call in _after(turn, history))
    return MessageOutcome(turn, "kept" if carried else "lost")


OWES_NOTHING = ("stopped by its user", "killed", "unfinished")


def after_the_harm(history: History) -> tuple[Turn, ...]:
    """The scenario's turns that began after the last fault or kill."""
    last = max((event.id for kind in (FaultFired, AgentKilled) for event in history.of(kind)), default=None)
    if last is None:
        return ()
    return tuple(t for t in history.turns if not t.recovery and t.stimulus is not None and t.stimulus.id > last)


def told(outcomes: Sequence[MessageOutcome]) -> str:
    """The outcomes of unanswered messages in one sentence; empty if all were answered."""
    unanswered = [outcome for outcome in outcomes if outcome.unanswered]
    if not unanswered:
        return ""
    of = f"of {len(outcomes)} messages" if len(outcomes) > 1 else "of one message"
    return f"{of} {len(unanswered)} unanswered in time: {', '.join(map(str, unanswered))}"


def _answered_after(turn: Turn, call: Call) -> bool:
    """Whether the last reply arrived whole after the turn had ended."""
    over = turn.end is not None and call.ended is not None and call.ended.id > turn.end.id
    return over and call.ok and call.ended is not None and call.ended.stop == "end"


def _after(turn: Turn, history: History) -> Iterator[Call]:
    end = turn.end
    return (call for call in history.calls if call.main and end is not None and call.arrived.id > end.id)
