"""Subagents that begin as a copy of their parent's conversation, with a prompt of their own behind it."""

import re
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import takewhile

from wedgehog.fake_llm.conversation import Conversation

_TELLS_A_FORK = re.compile(r"\bfork|\byou(?:'re| are)\b", re.IGNORECASE)
"""What the message with the prompt says; one that only reports a launch does not."""


@dataclass
class Forks:
    """The forks of one run: the messages with which each began, by its call's mark and the text of its prompt."""

    _began: dict[tuple[str, str], int] = field(default_factory=dict)

    def own_part(
        self, conversation: Conversation, marks_in: Callable[[str], Sequence[str]], begun: Set[str]
    ) -> Conversation:
        """A fork's request without the parent's part; any other one as it is.

        `marks_in` finds the marks of scripted calls in a text; the calls of the marks `begun` have their subagent.
        """
        for at, message in enumerate(conversation.messages):
            if message.role != "user" or not at or not _TELLS_A_FORK.search(message.text):
                continue
            for mark in marks_in(message.text.lower()):
                key, answered = (mark, message.text), any(it.role == "assistant" for it in conversation.messages[:at])
                if mark not in begun and answered:
                    self._began.setdefault(key, len(conversation.messages))
                if key in self._began:
                    system = takewhile(lambda it: it.role == "system", conversation.messages)
                    own = conversation.messages[self._began[key] :]
                    return replace(conversation, messages=(*system, message, *own))
        return conversation
