"""Builds the calls of a history: requests, refusals, replies and faults."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Self

from wedgehog.fake_llm.script.roles import names_question
from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.call import (
    HungUp,
    ReplyEnded,
    ReplyEnding,
    ReplyStarted,
    RequestArrived,
    RequestRefused,
    ToolCallOffered,
    ToolResult,
)
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.files import FileCall
from wedgehog.harness.record.events.turn import StimulusGiven
from wedgehog.harness.record.history import History

TICK_S = 0.01
"""The time between two events."""


class CallBuilder:
    """Appends events of calls and advances the time."""

    def __init__(self, *, stream: bool, model: str) -> None:
        self._history = History()
        self._now_s = 0.0
        self._model, self._stream = model, stream
        self._calls: dict[int, tuple[int, int]] = {}
        self._attempts: dict[tuple[int, int], int] = {}
        self._turns: list[int] = []
        self.turn = 0
        """The open turn, or 0."""
        self.wire = "anthropic"
        self._given = StimulusGiven(turn=0, stimulus="user", marker="", nonce="", text="")

    def add(self, event: Event) -> Self:
        """Any event, with the time of now."""
        self._now_s += TICK_S
        self._history.add(replace(event, at_s=self._now_s))
        return self

    def _same_session(self) -> list[int]:
        """The turns so far of the open turn's session."""
        return [it.turn for it in self._history.of(StimulusGiven) if it.session == self._given.session]

    @property
    def nonce(self) -> str:
        """The nonce of the open turn."""
        return self._given.nonce

    def wait(self, seconds: float) -> Self:
        """Let `seconds` pass."""
        self._now_s += seconds
        return self

    def ask(
        self,
        step: int = 1,
        *,
        background: str = "",
        body: str | None = None,
        key: str = "key-1",
        results: Sequence[ToolResult] = (),
        sees: Sequence[int] | None = None,
        doubled: Sequence[int] = (),
        repeated: Sequence[int] = (),
        turn: int | None = None,
        side: str = "",
        quotes: Sequence[int] = (),
        tools: Sequence[str] = (),
        system: int | None = None,
        shared: float | None = None,
        rules: bool | None = None,
        replies: Sequence[int] | None = None,
        echoed: Sequence[int] = (),
        begun: Sequence[int] | None = None,
        notices: Sequence[str] = (),
        lead: bool | None = None,
        tool_notices: Sequence[str] | None = None,
        loss_notices: Sequence[str] | None = None,
        body_bytes: int = 0,
        model: str = "",
    ) -> int:
        """A request arrives; returns its number. Attempts of one step have the same body unless `body` is given.

        `side` is a side conversation, such as `subagent 1`; `quotes` are calls of such ones whose words it carries.
        `doubled` are turns whose message it carries twice, `repeated` those of them where the second one stands right
        behind the first; `tools` are the tools that it offers, `system` the number of characters of its system text,
        `shared` the share of the first one in it, and `rules` whether it has the project's rules; `replies` are the
        calls whose text it carries, by default all earlier ones, `echoed` those whose text it carries twice, and
        `begun` those whose first words it carries. `notices` say of subagents that they have ended, `lead` whether they
        name a place with more, `tool_notices` that tools failed, and `loss_notices` that messages were left out (None:
        not recorded). `body_bytes` is the size of its body, and `model` another model than that of the run.
        """
        background = background or side.rpartition(" ")[0]
        of = self.turn if turn is None else turn
        call = len(self._calls) + 1
        self._calls[call] = (of, step)
        self._attempts[of, step] = self._attempts.get((of, step), 0) + (not background)
        self.add(
            RequestArrived(
                call=call,
                conn=call,
                wire=self.wire,
                path="/v1/messages",
                model=model or self._model,
                stream=self._stream,
                turn=of,
                step=step,
                attempt=max(1, self._attempts[of, step]),
                background=background,
                side=side,
                quotes=tuple(quotes),
                notices=tuple(notices),
                notices_lead=lead,
                tool_notices=None if tool_notices is None else tuple(tool_notices),
                loss_notices=None if loss_notices is None else tuple(loss_notices),
                key=key,
                body_hash=body if body is not None else f"{side or background}body{of}.{step}",
                body_bytes=body_bytes,
                system_chars=system,
                system_shared=shared,
                rules_seen=rules,
                tools=tuple(tools),
                results=tuple(results),
                turns_seen=tuple(self._same_session() if sees is None else sees),
                turns_doubled=tuple(doubled),
                turns_repeated=tuple(repeated),
                replies_begun=tuple(begun) if begun is not None else None,
                replies_doubled=tuple(echoed),
                replies_seen=tuple(range(1, call) if replies is None else replies),
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
        message: str = "",
    ) -> None:
        """The provider refuses a request."""
        why = message or ("tool_use without tool_result" if pairing else f"status {status}")
        self.add(
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
        how: ReplyEnding = "complete",
        stop: str = "",
        tokens: int = 20,
        delivered: int | None = None,
        input_tokens: int = 1000,
        took_s: float = 0.1,
        damaged: bool = False,
        says_all: bool = False,
        name: str = "shell",
        slowed: bool = False,
        headers: bool | None = None,
        traced: bool = False,
        misfits: bool = False,
        digest: str = "",
        first_byte_s: float | None = None,
        files: Sequence[FileCall] = (),
    ) -> tuple[str, ...]:
        """A reply is generated and delivered; `tools`: whether each call of `name` is whole. Returns their tokens.

        `files`: what the first of these calls ask of files.
        """
        turn, step = self._calls[call]
        offered = tuple(f"{turn}.{step}.{n}" for n in range(1, len(tools) + 1))
        got = delivered if delivered is not None else tokens
        blocks = sum(tools) + (1 if text and how == "complete" else 0)
        self.add(ReplyStarted(call=call, input_tokens=input_tokens))
        self.wait(took_s)
        self.add(
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
                damaged=damaged,
                says_all=says_all,
                slowed=slowed,
                headers_delivered=headers,
                first_byte_s=first_byte_s,
                tool_calls=tuple(
                    ToolCallOffered(
                        token,
                        name,
                        whole,
                        misfits=misfits,
                        traced=traced,
                        asks_user=names_question(name),
                        digest=digest,
                        file=file,
                    )
                    for token, whole, file in zip_longest(offered, tools, files)
                ),
            )
        )
        return offered

    def stall(self, call: int, *, waits_s: float = 5.0, delivered: int = 0) -> None:
        """The reply stalls, and the agent hangs up after `waits_s`."""
        self.fires("stall", call)
        self.reply(call, how="stalled", delivered=delivered, took_s=waits_s)
        self.hangs_up(call)

    def hangs_up(self, call: int) -> Self:
        """The agent closes the connection of a call."""
        return self.add(HungUp(call=call))

    def cut(self, call: int, text: str = "", *, tools: Sequence[bool] = (), delivered: int = 10) -> tuple[str, ...]:
        """The network cuts the reply."""
        self.fires("cut", call)
        return self.reply(call, text, tools=tools, how="cut", delivered=delivered)

    def fires(self, name: str, call: int | None, link: str = "llm", **more: Any) -> None:
        """A fault on a call, or on a request that does not arrive; `more` is what else its event says."""
        turn, step = self._calls[call] if call is not None else (self.turn, 1)
        struck: dict[str, Any] = {"turn": turn, "step": step, "attempt": 1, "call": call}
        self.add(FaultFired(fault=0, name=name, link=link, proof="built", **struck, **more))

    def connection_refused(self, fault: str = "refuse") -> None:
        """A request does not reach the provider."""
        self.fires(fault, None)

    def answer_step(self, step: int, results: Sequence[ToolResult] = ()) -> None:
        """The first attempt of a step gets the final reply with the nonce."""
        self.reply(self.ask(step, results=results), f"Done {self._given.nonce}")
