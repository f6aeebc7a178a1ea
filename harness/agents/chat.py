"""An agent that gets its messages from a chat service: its turn ends `quiet_s` after the last message that it sent.

It polls for them, or gets them at its webhook or over a WebSocket. The last message is none that only says that the
agent works ("…", an hourglass, or what fits `busy`). While the agent still types, or waits for its model, a command or
the chat, another message may follow.
"""

import asyncio
import re
from collections.abc import Sequence
from copy import copy
from dataclasses import replace

import aiohttp

from wedgehog.harness.agents.base import Outcome
from wedgehog.harness.agents.context import AgentContext, Surroundings
from wedgehog.harness.agents.drafts import may_go_on
from wedgehog.harness.agents.http import POLL_S, HttpSession, HttpTurn
from wedgehog.harness.agents.http_request import HttpReply
from wedgehog.harness.agents.service_spec import Http, HttpCall
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.network.ports import HOST, is_listening
from wedgehog.harness.record.events.service import TYPES_ON_S
from wedgehog.harness.sandbox.owned import Owned, Tree
from wedgehog.harness.services.chat.api import Sent

LATER_S = 5.0
"""An agent begins within this time with a message that waited, when it has answered the one before. Divided by the
time scale."""


class ChatSession(HttpSession):
    """A service that we start; messages and answers go through the chat service."""

    def __init__(self, spec: AgentSpec, context: AgentContext, surroundings: Surroundings, tree: Tree) -> None:
        assert spec.chat is not None and context.chat is not None  # noqa: S101  open_agent chose by it
        super().__init__(spec, context, surroundings, tree, Http(start=spec.chat.start, url="/"))
        self._quiet_s, self._service, self._webhook = spec.chat.quiet_s, context.chat, spec.chat.webhook
        self._chat = context.chat.chats[context.chat_place]
        self._types_for_ever = False
        """Whether it has typed for TYPES_ON_S though nothing came: that no longer keeps a turn open."""
        self._stop_words, self._stop_number, self._is_second = spec.chat.abort or "", 0, False
        self._socket = spec.chat.has_socket
        self._busy = re.compile(spec.chat.busy) if spec.chat.busy else None
        self._base = "the agent"

    async def types_on(self) -> bool:
        """Wait for the end of "typing …", for TYPES_ON_S; whether it does not end."""
        clock, began_s = self._context.clock, self._context.clock.now()
        while (typing := self._chat.typing.goes_on) and not self._types_for_ever:
            self._types_for_ever = clock.now() - began_s >= TYPES_ON_S
            await clock.sleep(POLL_S)
        return typing

    async def deliver_again(self, text: str, *, other_event: bool = False) -> None:
        """To its webhook, with the same id, or as the other event of the message."""
        await self._chat.deliver_again(text, other_event=other_event)

    @property
    def stops_by_hanging_up(self) -> bool:
        """Never: its user stops it by a message."""
        return False

    def beside(self) -> "ChatSession":
        """A second message to the same agent; what it sends from then on counts for both."""
        twin = copy(self)
        twin._turn, twin._alone, twin._is_second = None, False, True
        return twin

    async def apart(
        self,
        name: str,
        context: AgentContext,
        surroundings: Surroundings,
        *,
        at_once: bool = True,
        struck: bool = False,
    ) -> "ChatSession":
        """Another user, in a chat of their own with the same agent."""
        twin = await super().apart(name, context, surroundings, at_once=at_once, struck=struck)
        assert isinstance(twin, ChatSession)  # noqa: S101  a copy of this one
        twin._chat = self._service.chats[context.chat_place]
        return twin

    async def _start(self, argv: list[str], *, talks: bool = False, terminal: tuple[int, int] | None = None) -> Owned:
        self._service.polled.clear()
        if self._webhook:
            self._service.webhook.url = f"http://{HOST}:{self._around.values['port']}{self._webhook}"
        return await super()._start(argv, talks=talks, terminal=terminal)

    async def _not_ready(self) -> str:
        if self._webhook:
            return "" if is_listening(int(self._around.values["port"])) else " (nothing listens on {port})"
        missing = "it did not come to the chat's WebSocket" if self._socket else "no poll of the chat service came"
        return "" if self._service.polled.is_set() else f" ({missing})"

    async def _told(self, turn: HttpTurn) -> Outcome:
        return replace(await super()._told(turn), appends=True, streamed=True)  # its user reads no status

    async def _ask(self, request: HttpCall | Http, text: str, patience: aiohttp.ClientTimeout) -> HttpReply:
        """Put the message there and wait for the answer. Errors: ConnectionError if the agent has ended."""
        chat, clock = self._chat, self._context.clock
        number, worked_s = chat.put(text), clock.now()
        self._stop_number = 0
        while not self._is_over(text, self._stop_number or number, worked_s):
            if self._owned is not None and self._owned.exit_code is not None:
                raise ConnectionError("the agent has ended")
            await clock.sleep(POLL_S)
            works = not self._stop_number and self._works(text, chat.sent_since(number))
            if works or chat.handed < self._stop_number:
                worked_s = clock.now()
        sent = chat.sent_since(self._stop_number or number)
        whole_s = asyncio.get_running_loop().time() - (clock.now() - _last_s(sent)) if sent else None
        return HttpReply(200, "\n".join(it.words for it in sent), whole_s)

    def _is_over(self, text: str, number: int, worked_s: float) -> bool:
        """Whether it has the message of this number and is quiet; it need not say a word to a stop."""
        sent = self._chat.sent_since(number)
        if self._chat.handed < number or not (sent or self._stop_number):
            return False
        comes_later = self._is_second and not self._context.work.has_asked(text)
        quiet_s = max(self._quiet_s, LATER_S / self._context.time_scale) if comes_later else self._quiet_s
        return self._context.could_work_s(max(_last_s(sent), worked_s)) >= quiet_s

    async def _abort(self) -> None:
        """Send the words by which its user stops a turn."""
        self._stop_number = self._chat.put(self._stop_words)

    def _works(self, text: str, sent: Sequence[Sent]) -> bool:
        """Whether what it has sent for a message may be a draft, which it changes or adds to."""
        for_s = self._context.clock.now() - _last_s(sent)
        shown = sent[-1].words if sent else ""
        types = self._chat.typing.is_shown and not self._types_for_ever
        self._types_for_ever |= types and for_s >= TYPES_ON_S
        if self._is_note(shown) or (types and for_s < TYPES_ON_S):
            return True
        return may_go_on(self._context, text, shown, _last_s(sent))

    def _is_note(self, words: str) -> bool:
        """Whether a message only says that it works, as its user reads it."""
        return not any(sign.isalnum() for sign in words) or (self._busy is not None and bool(self._busy.search(words)))


def _last_s(sent: Sequence[Sent]) -> float:
    """When a message came or was changed last; 0 if there is none."""
    return max((it.at_s for it in sent), default=0.0)
