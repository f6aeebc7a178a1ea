"""Summaries in the place of a side conversation's messages: a subagent has a window too.

The request for such a summary quotes the subagent's task, or its summary before, and no message of the user. A later
request that holds the note of the reply is the side conversation's, at the step that its tool rounds show.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.script.call_tokens import notes_in
from wedgehog.fake_llm.script.openings import replies_in
from wedgehog.fake_llm.script.side_conversations import SideConversation

SIDE_TURNS = 1000
"""Tool calls of the first side conversation have the numbers of a turn 1001, 1002, …, those of the second 2001, …"""


@dataclass
class SideSummaries:
    """The summaries of the side conversations of one run, and how far these have come."""

    salt: str
    _of: dict[int, SideConversation] = field(default_factory=dict)
    """By the call whose reply is the summary."""
    _rounds: dict[SideConversation, int] = field(default_factory=dict)

    def got(self, call: int, side: SideConversation, tokens: Iterable[str]) -> None:
        """The reply to this call sums up a side conversation; its request showed the results of these tool calls."""
        self._of[call] = side
        self._seen(side, tokens)

    def of(self, conversation: Conversation) -> SideConversation | None:
        """The one side conversation whose summary a request holds."""
        held = {self._of[call] for call in notes_in(self.salt, conversation.text) if call in self._of}
        return held.pop() if len(held) == 1 else None

    def step(self, side: SideConversation, conversation: Conversation, tokens: Iterable[str]) -> int:
        """The step of a request of a side conversation; a summary is no reply, and does not take it back."""
        self._seen(side, tokens)
        if self.of(conversation) is None:
            return 1 + replies_in(conversation)
        said = [message for message in conversation.messages if message.role == "assistant"]
        summaries = sum(not self._of.keys().isdisjoint(notes_in(self.salt, message.text)) for message in said)
        return 1 + max(replies_in(conversation) - summaries, self._rounds[side])

    def _seen(self, side: SideConversation, tokens: Iterable[str]) -> None:
        calls = [token.split(".") for token in tokens]
        rounds = [int(step) for turn, step, _ in calls if int(turn) // SIDE_TURNS == side.serial]
        self._rounds[side] = max([self._rounds.get(side, 0), *rounds])
