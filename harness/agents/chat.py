"""An agent that polls a chat service: its turn ends `quiet_s` after the last message that it sent there.

A message that only says that the agent works ("…", an hourglass, or what fits `busy`) is not the last one, nor is one
behind which it types on.
"""

import asyncio
import re
from dataclasses import replace

import aiohttp

from wedgehog.harness.agents.base import AgentContext, Outcome, Surroundings
from wedgehog.harness.agents.http import POLL_S, HttpReply, HttpSession, HttpTurn
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.agents.spec_keys import Http, HttpCall
from wedgehog.harness.sandbox.owned import Owned, Tree
from wedgehog.harness.services.chat import ChatService

TYPES_ON_S = 60.0
"""An agent that types for longer than this behind its message has forgotten to stop; real seconds."""


class ChatSession(HttpSession):
    """A service that we start; messages and answers go through the chat service."""

    def __init__(self, spec: AgentSpec, place: AgentContext, surroundings: Surroundings, tree: Tree) -> None:
        assert spec.chat is not None and place.chat is not None  # noqa: S101  open_agent chose by it
        super().__init__(spec, place, surroundings, tree, Http(start=spec.chat.start, url="/"))
        self._quiet_s, self._chat = spec.chat.quiet_s, place.chat
        self._busy = re.compile(spec.chat.busy) if spec.chat.busy else None
        self._base = "the agent"

    def beside(self) -> None:
        """None: nothing shows which of two parallel messages an answer belongs to."""

    async def _start(self, argv: list[str], *, talks: bool = False, terminal: tuple[int, int] | None = None) -> Owned:
        self._chat.polled.clear()
        return await super()._start(argv, talks=talks, terminal=terminal)

    async def _not_ready(self) -> str:
        return "" if self._chat.polled.is_set() else " (no poll of the chat service came)"

    async def _told(self, turn: HttpTurn) -> Outcome:
        return replace(await super()._told(turn), appends=True, streamed=True)  # its user reads no status

    async def _ask(self, request: HttpCall | Http, text: str, patience: aiohttp.ClientTimeout) -> HttpReply:
        """Put the message there and wait for the answer. Errors: ConnectionError if the agent has ended."""
        chat, clock = self._chat, self._place.clock
        number = chat.put(text)
        while chat.handed < number or self._works(chat) or self._place.could_work_s(chat.sent_s) < self._quiet_s:
            if self._owned is not None and self._owned.exit_code is not None:
                raise ConnectionError("the agent has ended")
            await clock.sleep(POLL_S)
        sent_s = asyncio.get_running_loop().time() - (clock.now() - chat.sent_s)
        return HttpReply(200, "\n".join(chat.sent), sent_s)

    def _works(self, chat: ChatService) -> bool:
        """Whether more will come, as its user sees it: nothing is said yet, or "typing …" is there."""
        if not chat.sent:
            return True
        if chat.types and self._place.clock.now() - chat.sent_s < TYPES_ON_S:
            return True
        last = chat.sent[-1]
        return not any(sign.isalnum() for sign in last) or (self._busy is not None and bool(self._busy.search(last)))
