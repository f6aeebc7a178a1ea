"""An agent that polls a chat service for its messages: one is put there, and the answer is what it sends back.

Nobody says when such an agent has finished: a turn is over when something was sent and nothing more for `quiet_s`.
"""

import aiohttp

from wedgehog.harness.agents.base import AgentContext, AgentError, Stimulus
from wedgehog.harness.agents.http import POLL_S, HttpReply, HttpSession
from wedgehog.harness.agents.spec import AgentSpec, Http, HttpCall
from wedgehog.harness.agents.surroundings import Surroundings
from wedgehog.harness.sandbox import Tree


class ChatSession(HttpSession):
    """A service like any other that we start, only that its messages and answers go through the chat service."""

    def __init__(self, spec: AgentSpec, place: AgentContext, surroundings: Surroundings, tree: Tree) -> None:
        """`tree` owns the agent; who made it ends it."""
        assert spec.chat is not None and place.chat is not None  # noqa: S101  open_agent chose by it
        super().__init__(spec, place, surroundings, tree, Http(start=spec.chat.start, url="/"))
        self._quiet_s, self._chat = spec.chat.quiet_s, place.chat
        self._base = "the agent (no poll of the chat service came)"

    def beside(self) -> None:
        """One message at a time: of two, nobody could tell which one an answer is to."""

    async def _start(self, argv: list[str]) -> None:
        self._chat.polled.clear()
        await super()._start(argv)

    async def _is_ready(self) -> bool:
        return self._chat.polled.is_set()

    def _request(self, kind: Stimulus) -> Http:
        if kind == "wake_up":
            raise AgentError(f"{self._spec.path}: nobody can make its own timer fire")
        return self._http

    async def _ask(self, request: HttpCall | Http, text: str, patience: aiohttp.ClientTimeout) -> HttpReply:
        """Put the message there, and wait. Errors: ConnectionError when the agent has ended."""
        chat, clock = self._chat, self._place.clock
        number = chat.put(text)
        while chat.handed < number or not chat.sent or clock.now() < chat.sent_s + self._quiet_s:
            if self._service is not None and self._service.exit_code is not None:
                raise ConnectionError("the agent is gone")
            await clock.sleep(POLL_S)
        return HttpReply(200, "\n".join(chat.sent))
