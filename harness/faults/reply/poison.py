"""A provider that refuses every request which still carries one item of the conversation."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, NamedTuple

from wedgehog.fake_llm.conversation import Conversation, Role
from wedgehog.fake_llm.reply import Answer, Failure, ItemKind
from wedgehog.fake_llm.script.roles import SHELL, find_shell
from wedgehog.harness.faults.base import Need, fault
from wedgehog.harness.faults.reply_fault import Context, ReplyFault

POISONED = 400


class ConversationItem(NamedTuple):
    """One item of a conversation; `mark` tells whether a later request still carries it."""

    kind: ItemKind
    role: Role
    mark: str
    tool: str = ""


_NEEDS: Mapping[ItemKind, tuple[Need, ...]] = {
    "thinking": ("thinking",),
    "tool_call": ("calls",),
    "tool_result": ("calls",),
}


@fault("poison", family="reply")
class Poison(ReplyFault):
    """The provider refuses, with 400 and its own words, every request that still carries one item of the conversation.

    The item is the latest of its `kind` in the request that the trigger names, or in the first later one that has one;
    with `text` it is each item that holds this text. `role` and `tool` (a name, or `shell`) choose among them. Nothing
    heals it: later turns and calls beside the conversation are refused as well, until the agent leaves the item out or
    changes it.
    """

    kind: ItemKind = "tool_result"
    text: str | None = None
    role: Role | None = None
    tool: str | None = None
    message: str | None = None
    lasts: ClassVar[bool] = True
    unmet: ClassVar[str] = "no request carried such an item: an agent that never sends one cannot be refused for it"

    @property
    def needs(self) -> tuple[Need, ...]:
        """Reasoning comes back on some wires only; tool calls and results are items only if they are not text."""
        return _NEEDS.get(self.kind, ())

    @property
    def for_some(self) -> bool:
        """Not every agent gives a picture of a tool, or earlier thoughts, to its model."""
        return self.kind in ("image", "thinking")

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """A refusal, if the request carries the item."""
        found = [item.mark for item in _items(context.conversation) if self._fits(item, context.conversation)]
        if self.text is None and found:
            context.kept.setdefault("item", found[-1])
        carried = found if self.text is not None else [mark for mark in found if mark == context.kept["item"]]
        return Failure(POISONED, message=self.message, item=self.kind) if carried else answer

    def _fits(self, item: ConversationItem, conversation: Conversation) -> bool:
        if item.kind != self.kind or self.role not in (None, item.role) or (self.text or "") not in item.mark:
            return False
        shell = find_shell(conversation.tools) if self.tool == SHELL else None
        wanted = shell.name if shell is not None else self.tool
        return wanted is None or item.tool.endswith(wanted)


@fault("foreign_thoughts", family="reply")
class ForeignThoughts(ReplyFault):
    """The model refuses, with 400, every request that carries thoughts of another model; on Anthropic's wire only.

    Those are the thoughts in the first request that it meets: the user has just chosen this model. Anthropic binds the
    signature of a thought to its model; of other providers that is not known. Nothing heals it. It need not fire: an
    agent that drops such thoughts, or turns them into text, is never refused.
    """

    lasts: ClassVar[bool] = True
    may_not_fire: ClassVar[bool] = True
    searched: ClassVar[bool] = False
    needs = ("thinking",)

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """A refusal, if the request carries such a thought."""
        if context.conversation.wire != "anthropic":
            return answer
        carried = {it.mark for it in _items(context.conversation) if it.kind == "thinking"}
        foreign = set(context.kept.setdefault("foreign", "\n".join(sorted(carried))).split("\n")) - {""}
        return Failure(POISONED, item="thinking") if carried & foreign else answer


def _items(conversation: Conversation) -> Iterator[ConversationItem]:
    names: dict[str, str] = {}
    for message in conversation.messages:
        names |= {call.id: call.name for call in message.tool_calls}
        if message.text:
            yield ConversationItem("text", message.role, message.text)
        yield from (ConversationItem("thinking", message.role, it) for it in message.thoughts)
        for call in message.tool_calls:
            yield ConversationItem("tool_call", message.role, f"{call.name} {call.arguments}", call.name)
        for result in message.tool_results:
            yield ConversationItem("tool_result", message.role, result.text, names.get(result.call_id, ""))
        yield from (ConversationItem("image", message.role, it) for it in message.images)
