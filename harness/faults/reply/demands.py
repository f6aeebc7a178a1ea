"""A provider that is stricter than its wire: it refuses requests which others of the same wire accept."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import ClassVar, Literal

from wedgehog.fake_llm.conversation import Conversation, Message
from wedgehog.fake_llm.reply import Answer, Failure, Reply, Thinking, ToolCall
from wedgehog.harness.faults.base import Need, fault
from wedgehog.harness.faults.reply_fault import Context, ReplyFault

REFUSED = 400
Rule = Literal["roles", "arguments", "content", "names", "thoughts", "system"]
_NEEDS: Mapping[Rule, tuple[Need, ...]] = {
    "thoughts": ("shown_thoughts", "calls"),
    "arguments": ("calls",),
    "names": ("calls",),
    "system": ("system_messages",),
}
_NAME = re.compile("[a-zA-Z0-9_-]+")
_THOUGHT = Thinking("I think about it.")


@fault("demands", family="reply")
class Demands(ReplyFault):
    """The provider refuses, with 400, requests that break a rule of its own, which other providers do not have.

    `roles`: messages of the user and of the model take turns, as the chat templates of Gemma and Mistral ask.
    `arguments`: those of each tool call in the history are a JSON object, as vLLM, Kimi and xAI ask. `content`: a
    message of the model has text or a tool call, as Mistral asks. `names`: each tool call in the history has a name
    of letters, digits, `_` and `-`, as OpenAI, Anthropic and Bedrock ask; only a gateway that sends such a call accepts
    another one. `thoughts`, on `openai-chat` only: each reply with a tool call has `reasoning_content`, which must
    come back with the call, as DeepSeek, Kimi and Xiaomi ask. `system`, where the system text is a message: only the
    first message has it, as the chat templates of Qwen and Mistral, and MiniMax, ask. On `gemini`, contents of the
    model that follow one another are one message: Google's SDK keeps each event of a stream so. Nothing heals it. It
    need not fire: an agent that keeps the rule is never refused.
    """

    rule: Rule
    lasts: ClassVar[bool] = True
    may_not_fire: ClassVar[bool] = True

    @property
    def needs(self) -> tuple[Need, ...]:
        """Three rules are about tool calls; two are of wires with a field, or a message, that others lack."""
        return _NEEDS.get(self.rule, ())

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """A refusal, if the request breaks the rule."""
        breaks, message = _RULES[self.rule]
        if breaks(_messages(context.conversation)):
            return Failure(REFUSED, message=message)
        return _with_thoughts(answer) if self.rule == "thoughts" and isinstance(answer, Reply) else answer


def _messages(asked: Conversation) -> Sequence[Message]:
    """The messages of a request; on `gemini` the contents of the model that follow one another are one message."""
    if asked.wire != "gemini":
        return asked.messages
    joined: list[Message] = []
    for message in asked.messages:
        if message.role == "assistant" and joined and joined[-1].role == "assistant":
            before = joined.pop()
            calls = before.tool_calls + message.tool_calls
            joined.append(replace(before, text=before.text + message.text, tool_calls=calls))
        else:
            joined.append(message)
    return joined


def _with_thoughts(answer: Reply) -> Reply:
    """A reply that shows what the model thought before it called a tool."""
    if not any(isinstance(item, ToolCall) for item in answer.items):
        return answer
    thinks = any(isinstance(item, Thinking) for item in answer.items)
    return replace(answer, items=answer.items if thinks else (_THOUGHT, *answer.items), shows_thoughts=True)


def _repeats_a_role(messages: Sequence[Message]) -> bool:
    said = [message.role for message in messages if message.role != "system"]
    return any(one == next_one != "tool" for one, next_one in pairwise(said))


def _has_a_later_system_text(messages: Sequence[Message]) -> bool:
    return any(message.role == "system" for message in messages[1:])


def _has_broken_arguments(messages: Sequence[Message]) -> bool:
    return not all(_is_object(call.arguments) for message in messages for call in message.tool_calls)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _has_a_call_without_a_proper_name(messages: Sequence[Message]) -> bool:
    return not all(_NAME.fullmatch(call.name) for message in messages for call in message.tool_calls)


def _has_no_thoughts(messages: Sequence[Message]) -> bool:
    """Whether a call lacks them. Empty ones are enough: whether such a provider refuses those is not known."""
    return any(message.tool_calls and not message.thoughts for message in messages)


def _says_nothing(messages: Sequence[Message]) -> bool:
    return any(it.role == "assistant" and not (it.text.strip() or it.tool_calls) for it in messages)


_RULES: dict[Rule, tuple[Callable[[Sequence[Message]], bool], str]] = {
    "roles": (_repeats_a_role, "Conversation roles must alternate user/assistant/user/assistant/..."),
    "system": (_has_a_later_system_text, "System message must be at the beginning."),
    "arguments": (_has_broken_arguments, "Assistant tool call function.arguments must be a valid JSON object"),
    "content": (_says_nothing, "Assistant message must have either content or tool_calls, but not none."),
    "thoughts": (
        _has_no_thoughts,
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
    ),
    "names": (
        _has_a_call_without_a_proper_name,
        "Invalid function.name of a tool call: expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
    ),
}
