"""Whether a request belongs to the main conversation, and else its purpose."""

import re
from dataclasses import replace
from typing import Self

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.script.openings import schema_mark, system_mark
from wedgehog.fake_llm.script.roles import same_name
from wedgehog.fake_llm.value import value


@value
class MainShape:
    """The shape of an agent's main calls, taken from its control run: their tools, else their system text.

    An empty `system` matches any text. `optional` tools may be missing: they come from a server that may be down, and
    an agent may offer them with other signs between their words.

    >>> MainShape(frozenset({"bash"})).fits(conversation)  # doctest: +SKIP
    """

    tools: frozenset[str] = frozenset()
    system: str = ""
    structured: bool = False
    optional: tuple[str, ...] = ()
    marked: bool = False
    """Whether the main calls hold the marker of the user's message."""
    schema: str = ""
    """A digest of the JSON Schema by which the agent asks for its answer, and of the opening system text."""
    asides: frozenset[str] = frozenset()
    """The text around the user's message in calls beside the main ones that look like them."""
    any_tools: bool = False
    """Whether main calls have no tool in common, and are known by their system text alone."""

    @classmethod
    def of(cls, conversation: Conversation) -> Self:
        """The shape of one request."""
        return cls(
            frozenset([tool.name for tool in conversation.tools]),
            system_mark(conversation),
            conversation.schema is not None,
            schema=schema_mark(conversation),
        )

    def fits(self, conversation: Conversation) -> bool:
        """Whether a request looks like a main call: at least half of the tools, or without tools the same opening."""
        return self.alike(MainShape.of(conversation))

    def alike(self, other: "MainShape") -> bool:
        """Whether a call of the other shape looks like a main call."""
        if self.schema and self.schema == other.schema:
            return True
        if self.any_tools:
            return self.structured == other.structured and self.system == other.system
        tools = self.tools.difference(self.optional)
        if tools:
            return 2 * len(tools & other.tools) >= len(tools)
        if any(same_name(offered, tool) for offered in other.tools for tool in self.optional):
            return True
        return not other.tools and self.structured == other.structured and self.system in ("", other.system)

    def with_tools_of(self, other: "MainShape") -> "MainShape":
        """The shape of main calls whose tools depend on the message, as in an agent that looks up what may fit it.

        They are known by the tools that all have, or without such a tool by their system text.
        """
        if self.alike(other) or self.structured or other.structured:
            return self
        if common := self.tools & other.tools:
            return replace(self, tools=common)
        same = bool(self.system) and self.system == other.system
        return replace(self, tools=common, any_tools=True) if same else self


PURPOSES = ("title", "summar", "compact", "memor", "loop", "suggest", "classif", "topic")
_SUMS_UP = ("sum up", "sums up", "summing up", "condense", "recap")
"""Other words for a summary. They count in what the agent asks for, not in all that was said."""
COMPACTING = ("summary", "compact")
"""The purposes of background calls that make a conversation shorter."""
AT_LIMIT = re.compile(
    r"(limit|maximum|max)\b.{0,60}\b(step|iteration|turn|round|call)s?\b"
    r"|\b(step|iteration|turn|round|call)s?\b.{0,60}\b(limit|maximum|max)\b|final (answer|response|reply)",
    re.IGNORECASE | re.DOTALL,
)
_BRIEF = re.compile(r"\b(?:under|than|most|within|in) (\d+) (characters|words|letters)")
LONGEST_TITLE = {"words": 30, "characters": 200, "letters": 200}
"""A summary that may be longer stands for the conversation itself."""
COMPACT = re.compile(
    r"\b(summari[sz]e|sums? up|condense|compact|recap|(write|create|provide|produce|generate|give)\b.{0,40}\bsummary)\b"
    r".{0,200}\b(conversation|context|history|transcript|session|so far)\b",
    re.IGNORECASE | re.DOTALL,
)


def asks_aside(last: str) -> bool:
    """Whether the last message asks for a summary, a title or a check, and not for the last words at a limit."""
    return any(map(last.lower().__contains__, (*PURPOSES, *_SUMS_UP))) and AT_LIMIT.search(last) is None


def _found_in(asks: str) -> str | None:
    """The first word of a purpose in what an agent asks for."""
    found = next((word for word in PURPOSES if word in asks), None)
    return found or ("summar" if any(word in asks for word in _SUMS_UP) else None)


def purpose_of(conversation: Conversation, told: str = "") -> str:
    """Return the purpose of a background call: by the words of its instructions, else by any word in it.

    `told` is the agent's own last message, if it has one. It counts first: a long system text speaks of many things.
    """
    system = [message for message in conversation.messages if message.role == "system"]
    asks = " ".join([message.text.lower() for message in (*system, *conversation.messages[-1:])])
    text = " ".join([message.text.lower() for message in conversation.messages])
    found = _found_in(told.lower()) or _found_in(asks) or next((word for word in PURPOSES if word in text), None)
    brief = _BRIEF.search(asks)
    if found == "summar" and brief is not None and int(brief[1]) <= LONGEST_TITLE[brief[2]]:
        return "title"
    if found:
        return {"summar": "summary", "memor": "memory", "suggest": "suggestion", "classif": "classification"}.get(
            found, found
        )
    return "structured" if conversation.schema is not None else "other"
