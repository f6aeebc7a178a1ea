"""A run told event by event: real events with ids and times that fit, for tests of whatever reads a history.

>>> tell = Telling()
>>> tell.message()
1
>>> tell.answer_step(1)
>>> history = tell.end().seal()
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from wedgehog.harness.event import (
    AbortSent,
    BeaconSeen,
    DeadlineHit,
    Event,
    FaultFired,
    GaveUp,
    HungUp,
    LagSeen,
    ReplyEnded,
    ReplyStarted,
    RequestArrived,
    RequestRefused,
    RunStarted,
    StartMissed,
    StimulusGiven,
    StimulusKind,
    ToolCallOffered,
    ToolResult,
    TurnEnded,
)
from wedgehog.harness.history import History

How = Literal["complete", "hung up", "stalled", "cut", "ended early"]
MODEL = "claude-sonnet-4-6"
TICK_S = 0.01
"""What passes between two events that nobody waits between."""
CUT_TEXT = "The lighthouse keeper counted seventeen"
"""A reply's text up to its cut: long enough to be known again."""


class Telling:
    """Appends what happened, one sentence of the story per method, and keeps the time."""

    def __init__(
        self,
        *,
        time_scale: float = 1.0,
        carries_nonces: bool = True,
        stream: bool = True,
        model: str = MODEL,
        error_at_path: bool = False,
        started: str = "2026-06-01T12:00:00+00:00",
    ) -> None:
        """A run that has just begun."""
        self._history = History()
        self._now_s = 0.0
        self._model, self._stream = model, stream
        self._calls: dict[int, tuple[int, int]] = {}
        self._attempts: dict[tuple[int, int], int] = {}
        self._turns: list[int] = []
        self.turn = 0
        """The turn that is under way; 0 where none is."""
        self._given = StimulusGiven(turn=0, stimulus="user", marker="", nonce="", text="")
        self._add(
            RunStarted(
                scenario="told",
                agent="told",
                network="embedded",
                time_scale=time_scale,
                started=started,
                carries_nonces=carries_nonces,
                error_at_path=error_at_path,
                start_up_s=0.5,
            )
        )

    def _add(self, event: Event) -> Event:
        self._now_s += TICK_S
        return self._history.add(replace(event, at_s=self._now_s))

    @property
    def nonce(self) -> str:
        """The word that the answer to the turn under way must hold."""
        return self._given.nonce

    def wait(self, seconds: float) -> "Telling":
        """Time passes."""
        self._now_s += seconds
        return self

    def lag(self, worst_s: float) -> "Telling":
        """The harness itself was slow."""
        self._add(LagSeen(worst_s=worst_s))
        return self

    def seal(self) -> History:
        """The finished history."""
        return self._history.seal()

    # ---- turns

    def message(self, kind: StimulusKind = "user") -> int:
        """A stimulus is given; its turn's number."""
        number = max(self._turns, default=0) + 1
        self._turns.append(number)
        self.turn = number
        self._given = StimulusGiven(
            turn=number, stimulus=kind, marker=f"marker{number}", nonce=f"saffron{number:02d}otter", text="Go on."
        )
        self._add(self._given)
        return number

    def end(
        self,
        answer: str | None = None,
        *,
        ended: Literal["by itself", "aborted", "gave up", "deadline"] = "by itself",
        error: str = "",
        exit_code: int | None = 0,
        status: int | None = None,
        raised: str | None = None,
        stderr: str = "",
    ) -> "Telling":
        """The turn is over; unless told otherwise its answer holds the nonce."""
        words = f"Here you are: {self._given.nonce}" if answer is None else answer
        self._add(
            TurnEnded(
                turn=self.turn,
                ended=ended,
                answer=words,
                error=error,
                exit_code=exit_code,
                status=status,
                raised=raised,
                stdout=words,
                stderr=stderr or error,
            )
        )
        self.turn = 0
        return self

    def fails(self, words: str = "Error: the provider is overloaded", exit_code: int = 1) -> "Telling":
        """The turn ends in an error that its user sees."""
        return self.end("", error=words, exit_code=exit_code)

    def abort(self) -> "Telling":
        """The user stops the turn."""
        self._add(AbortSent(turn=self.turn))
        return self

    def give_up(self, after_s: float | None = None) -> "Telling":
        """The front end closes its connection."""
        self._add(GaveUp(turn=self.turn, after_s=after_s))
        return self

    def deadline(self, bound_s: float = 120.0) -> "Telling":
        """The turn is over its time."""
        self._add(DeadlineHit(turn=self.turn, bound_s=bound_s))
        return self

    def start_missed(self, bound_s: float = 60.0) -> "Telling":
        """No request came."""
        self._add(StartMissed(turn=self.turn, bound_s=bound_s))
        return self

    # ---- calls

    def ask(
        self,
        step: int = 1,
        *,
        background: str = "",
        body: str | None = None,
        key: str = "key-1",
        results: Sequence[ToolResult] = (),
        sees: Sequence[int] | None = None,
        turn: int | None = None,
    ) -> int:
        """A request arrives; its number. The body of a repeated step is the same unless `body` says otherwise."""
        of = self.turn if turn is None else turn
        call = len(self._calls) + 1
        self._calls[call] = (of, step)
        self._attempts[of, step] = self._attempts.get((of, step), 0) + (not background)
        self._add(
            RequestArrived(
                call=call,
                conn=call,
                wire="anthropic",
                path="/v1/messages",
                model=self._model,
                stream=self._stream,
                turn=of,
                step=step,
                attempt=max(1, self._attempts[of, step]),
                background=background,
                key=key,
                body_hash=body if body is not None else f"{background}body{of}.{step}",
                results=tuple(results),
                turns_seen=tuple(self._turns if sees is None else sees),
            )
        )
        return call

    def refuse(
        self,
        call: int,
        status: int = 503,
        *,
        pairing: bool = False,
        scripted: bool = True,
        retry_after_s: float | None = None,
        is_date: bool = False,
    ) -> None:
        """The provider refuses a request."""
        why = "tool_use without tool_result" if pairing else f"status {status}"
        self._add(
            RequestRefused(
                call=call,
                status=status,
                error="error",
                message=why,
                pairing=pairing,
                scripted=scripted,
                retry_after_s=retry_after_s,
                retry_after_is_date=is_date,
            )
        )

    def reply(
        self,
        call: int,
        text: str = "",
        *,
        tools: Sequence[bool] = (),
        how: How = "complete",
        stop: str = "",
        tokens: int = 20,
        delivered: int | None = None,
        input_tokens: int = 1000,
        took_s: float = 0.1,
    ) -> tuple[str, ...]:
        """A reply is generated and, whole or not, delivered; `tools` says of each tool call whether it came whole.

        The tool calls' tokens.
        """
        turn, step = self._calls[call]
        offered = tuple(f"{turn}.{step}.{n}" for n in range(1, len(tools) + 1))
        got = delivered if delivered is not None else tokens
        blocks = sum(tools) + (1 if text and how == "complete" else 0)
        self._add(ReplyStarted(call=call, input_tokens=input_tokens))
        self.wait(took_s)
        self._add(
            ReplyEnded(
                call=call,
                how=how,
                stop=stop or ("tool" if tools else "end"),
                output_tokens=tokens,
                tokens_delivered=got,
                body_bytes=tokens * 10,
                bytes_delivered=got * 10,
                blocks_delivered=blocks,
                text_delivered=text,
                tool_calls=tuple(
                    ToolCallOffered(token, "shell", whole) for token, whole in zip(offered, tools, strict=True)
                ),
            )
        )
        return offered

    def stall(self, call: int, *, waits_s: float = 5.0, delivered: int = 0) -> None:
        """The reply falls silent, and after a while the agent hangs up."""
        self._strike("stall", call)
        self.reply(call, how="stalled", delivered=delivered, took_s=waits_s)
        self._add(HungUp(call=call))

    def cut(self, call: int, text: str = "", *, tools: Sequence[bool] = (), delivered: int = 10) -> tuple[str, ...]:
        """The network ends the reply before it is whole."""
        self._strike("cut", call)
        return self.reply(call, text, tools=tools, how="cut", delivered=delivered)

    def _strike(self, name: str, call: int | None) -> None:
        turn, step = self._calls[call] if call is not None else (self.turn, 1)
        self._add(
            FaultFired(
                fault=0, name=name, link="llm", turn=turn, step=step, attempt=1, call=call, proof="told", bytes=None
            )
        )

    def connection_refused(self, fault: str = "refuse") -> None:
        """A request never reaches the provider."""
        self._strike(fault, None)

    def answer_step(self, step: int, results: Sequence[ToolResult] = ()) -> None:
        """The model's last words of a turn, at the first attempt."""
        self.reply(self.ask(step, results=results), f"Done {self._given.nonce}")

    # ---- tools

    def starts(self, token: str) -> None:
        """A command begins."""
        self._add(BeaconSeen(token=token, phase="started"))

    def done(self, token: str, exit_code: int | None = None) -> None:
        """A command has ended."""
        self._add(BeaconSeen(token=token, phase="done", exit_code=exit_code))

    def runs(self, token: str, for_s: float = 0.1, *, is_error: bool = False) -> ToolResult:
        """A command runs; its result."""
        self.starts(token)
        self.wait(for_s)
        if not is_error:
            self.done(token)
        return result(token, is_error=is_error)


def result(token: str, *, chars: int = 50, is_error: bool = False, printed: bool = True) -> ToolResult:
    """What a tool call brought; `printed`: with the last words of its command."""
    return ToolResult(id=f"id-{token}", chars=chars, is_error=is_error, token=token, printed=printed)
