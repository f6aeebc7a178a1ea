"""The views of a history for checks: turns, their steps, calls and tool uses."""

from dataclasses import dataclass
from functools import cached_property

from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.call import (
    CUT_STOPS,
    CallUnscripted,
    HungUp,
    ReplyEnded,
    ReplyStarted,
    RequestArrived,
    RequestRefused,
    ToolCallOffered,
    ToolResult,
)
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.events.turn import (
    MAIN_SESSION,
    AbortSent,
    AgentKilled,
    DeadlineHit,
    GaveUp,
    StartMissed,
    StimulusGiven,
    TurnEnded,
)


@dataclass(frozen=True)
class Call:
    """One request for the model, and its events."""

    arrived: RequestArrived
    refused: RequestRefused | None = None
    started: ReplyStarted | None = None
    ended: ReplyEnded | None = None
    hung_up: HungUp | None = None
    unscripted: CallUnscripted | None = None
    faults: tuple[FaultFired, ...] = ()
    stopped_by: str = ""
    """What closed the connection, or empty: "our SIGKILL", "our stop at the deadline", "the end of the run"."""
    waited_until_s: float | None = None
    """Of a stalled reply whose agent did not hang up: when its fault was removed, or the end of the recording."""

    @property
    def number(self) -> int:
        """The call's number in the run, from 1."""
        return self.arrived.call

    @property
    def at_s(self) -> float:
        """When the request arrived."""
        return self.arrived.at_s

    @property
    def main(self) -> bool:
        """Whether it belongs to the conversation, and is no background call (a title, a summary)."""
        return not self.arrived.background

    @property
    def paid(self) -> bool:
        """Whether the provider accepted it."""
        return self.started is not None

    @property
    def tokens_delivered(self) -> int:
        """Output tokens that reached the agent."""
        return self.ended.tokens_delivered if self.ended else 0

    @property
    def output_tokens(self) -> int:
        """Output tokens that were generated, so billed."""
        return self.ended.output_tokens if self.ended else 0

    @property
    def input_tokens(self) -> int:
        """Billed input tokens; 0 for a refused request."""
        return self.started.input_tokens if self.started else 0

    @property
    def progressed(self) -> bool:
        """Whether a text block or tool call arrived whole."""
        return self.ended is not None and self.ended.blocks_delivered > 0

    @property
    def whole(self) -> bool:
        """Whether the whole reply was delivered."""
        return self.ended is not None and self.ended.how == "complete" and self.hung_up is None

    @property
    def ok(self) -> bool:
        """Whether it was accepted, delivered whole, and not stopped at max_tokens or by a filter."""
        return self.whole and self.ended is not None and self.ended.stop not in (*CUT_STOPS, "error")

    @property
    def damaged(self) -> bool:
        """Whether a fault damaged its content: the stream or body, or the arguments of a tool call."""
        ended = self.ended
        return ended is not None and (ended.damaged or not all(offered.whole for offered in ended.tool_calls))

    @property
    def intact(self) -> bool:
        """Whether it was delivered whole and no fault had damaged it."""
        return self.ok and not self.damaged

    @property
    def still_coming(self) -> bool:
        """Whether its reply was only late when its end was recorded, and the agent still waited for the rest."""
        return self.ended is not None and self.ended.slowed and self.hung_up is None

    @property
    def final(self) -> bool:
        """Whether its reply arrived whole and ends the turn."""
        return self.ok and self.ended is not None and self.ended.stop == "end"

    def open_after(self, event: int) -> bool:
        """Whether it arrived or was open after the event with this id."""
        ends = [end.id for end in (self.refused, self.ended, self.hung_up) if end is not None]
        return max(ends, default=event + 1) > event

    @property
    def limited(self) -> str:
        """A sentence if the agent's own limit of output tokens is too low for this reply; else empty."""
        if self.ended is None or self.ended.how != "complete" or not self.ended.tokens_needed:
            return ""
        return (
            f"call {self.number} allows {self.arrived.max_tokens} output tokens (max_tokens), "
            f"and the scripted reply needs {self.ended.tokens_needed}"
        )

    @property
    def failed_at_s(self) -> float | None:
        """The time of the refusal, the cut, the agent's hang-up or the end of its wait; None for a whole reply."""
        if self.refused:
            return self.refused.at_s
        if self.hung_up:
            return self.hung_up.at_s
        if self.ended and self.ended.how != "complete":
            return self.ended.at_s if self.waited_until_s is None else self.waited_until_s
        return None

    @property
    def evidence(self) -> tuple[Event, ...]:
        """All events of this call."""
        parts = (self.arrived, self.refused, self.started, self.ended, self.hung_up, self.unscripted)
        return tuple(part for part in parts if part is not None) + self.faults


@dataclass(frozen=True)
class Step:
    """The main calls that carry the results of the same tool rounds: attempts of one step."""

    turn: int
    number: int
    calls: tuple[Call, ...]

    @property
    def paid_calls(self) -> tuple[Call, ...]:
        """The calls that the provider accepted."""
        return tuple(call for call in self.calls if call.paid)

    def __str__(self) -> str:
        """`step 2 of turn 1`, or `step 2 outside any turn`."""
        return f"step {self.number} of turn {self.turn}" if self.turn else f"step {self.number} outside any turn"


@dataclass(frozen=True)
class ToolUse:
    """One tool call of the model, its runs and its results."""

    offered: ToolCallOffered
    reply: ReplyEnded
    turn: int
    step: int
    started: tuple[BeaconSeen, ...] = ()
    done: tuple[BeaconSeen, ...] = ()
    results: tuple[RequestArrived, ...] = ()
    """Requests that carry its result, in order."""

    @property
    def token(self) -> str:
        """turn.step.call"""
        return self.offered.token

    @property
    def carried(self) -> list[ToolResult]:
        """Its result in each of these requests."""
        return [it for request in self.results for it in request.results if it.token == self.token]


@dataclass(frozen=True)
class Turn:
    """A stimulus and all that follows until its turn is over; turn 0, without a stimulus, holds all other calls."""

    number: int
    stimulus: StimulusGiven | None
    end: TurnEnded | None
    calls: tuple[Call, ...] = ()
    tool_uses: tuple[ToolUse, ...] = ()
    aborted: AbortSent | None = None
    gave_up: GaveUp | None = None
    deadline: DeadlineHit | None = None
    start_missed: StartMissed | None = None
    kept_away: tuple[FaultFired, ...] = ()
    """Faults of the model's link without a known request: a refused connection, a stalled upload."""
    held_up: tuple[FaultFired, ...] = ()
    """Faults of a database; its first request may have waited behind one that came earlier."""
    start_up_s: float = 0.0
    killed: AgentKilled | None = None
    """The kill that ended the turn; None if the agent survived."""

    @property
    def session(self) -> str:
        """The session that it belongs to."""
        return MAIN_SESSION if self.stimulus is None else self.stimulus.session

    @property
    def in_session(self) -> str:
        """`turn 2 of session B`; of the main session `turn 2`."""
        return str(self) if self.session == MAIN_SESSION else f"{self} of session {self.session}"

    @cached_property
    def main_calls(self) -> tuple[Call, ...]:
        """Calls of the conversation, without background calls."""
        return tuple(call for call in self.calls if call.main)

    @cached_property
    def paid_calls(self) -> tuple[Call, ...]:
        """Main calls that the provider accepted."""
        return tuple(call for call in self.main_calls if call.paid)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Main calls by step, in order."""
        numbers = sorted({call.arrived.step for call in self.main_calls})
        return tuple(
            Step(self.number, n, tuple(call for call in self.main_calls if call.arrived.step == n)) for n in numbers
        )

    @property
    def recovery(self) -> bool:
        """Whether this is the turn of the recovery message."""
        return self.stimulus is not None and self.stimulus.stimulus == "recovery"

    @property
    def goes_on(self) -> bool:
        """Whether its last call is not a final reply."""
        last = self.main_calls[-1] if self.main_calls else None
        return last is not None and not last.final

    @property
    def start_s(self) -> float:
        """The time of the first request; if none came or a fault delayed it, message time plus usual start-up."""
        due_s = (self.stimulus.at_s if self.stimulus else 0.0) + self.start_up_s
        if not self.calls:
            return due_s
        first_s = self.calls[0].at_s
        delayed = self.kept_from_start or any(fault.id < self.calls[0].arrived.id for fault in self.held_up)
        return min(due_s, first_s) if delayed else first_s

    @property
    def kept_from_start(self) -> bool:
        """Whether a fault kept its first request away, known or not."""
        return bool(self.kept_away) and (not self.calls or self.kept_away[0].id < self.calls[0].arrived.id)

    @property
    def stopped(self) -> AbortSent | GaveUp | None:
        """The user's abort, or the event that the front end gave up, if any."""
        return self.aborted or self.gave_up

    @property
    def duration_s(self) -> float | None:
        """Seconds from `start_s` to the end of the turn."""
        return None if self.end is None else max(0.0, self.end.at_s - self.start_s)

    @property
    def exit_s(self) -> float:
        """Seconds from its last reply, and from the output of its answer if that is known, to its end; else 0."""
        last = max((call.ended.at_s for call in self.main_calls if call.ended is not None), default=None)
        if last is None or self.end is None:
            return 0.0
        after_s = max(0.0, self.end.at_s - last)
        return after_s if self.end.after_answer_s is None else min(after_s, self.end.after_answer_s)

    def __str__(self) -> str:
        """`turn 2`, or `the recovery message`."""
        return "the recovery message" if self.recovery else f"turn {self.number}"
