"""Which requests Anthropic's Messages API refuses, in its words.

Not refused: consecutive messages of one role (they count as one), results in any order, text after results, and a
first message of the assistant. Newer models accept system messages in the middle of a conversation:
https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from wedgehog.fake_llm.dialects.anthropic import offered, thinking, threads
from wedgehog.fake_llm.dialects.base import Models, Refusal, bad, nameless, unpaired
from wedgehog.fake_llm.request import Request, blocks, listed, mapped

_ID: Final = re.compile(r"^[a-zA-Z0-9_-]+$")
_LONE: Final = re.compile(
    rb"(?<!\\)(?:\\\\)*(?:(\\u[dD][89abAB][0-9a-fA-F]{2})(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)
"""An escaped high surrogate without its low one (group 1), or a low one without its high one."""
_LARGEST_BODY: Final = 32 * 2**20
_NUMBERED: Final = re.compile(r"claude-[a-z]+-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
"""The name of a model, with its version."""
_SYSTEM_SINCE: Final = 4, 8
"""The first version that accepts system messages among the others."""


@dataclass(frozen=True, slots=True)
class _Block:
    """A content block and its position."""

    message: int
    index: int
    data: dict[str, Any]

    @property
    def place(self) -> str:
        return f"messages.{self.message}.content.{self.index}"

    @property
    def type(self) -> str:
        return str(self.data.get("type", ""))


@dataclass(frozen=True, slots=True)
class _AnthropicTurn:
    """Consecutive messages of one role."""

    role: str
    blocks: list[_Block]


def refusals(request: Request, models: Models) -> Iterator[Refusal]:
    """Yield what the provider refuses, in the order in which it looks."""
    document = request.document
    if len(request.body) > _LARGEST_BODY:
        yield Refusal(413)
    if not request.key:
        yield Refusal(401, "x-api-key header is required")
    if "anthropic-version" not in request.headers:
        yield bad("anthropic-version: header is required")
    if document is None:
        yield bad("The request body is not valid JSON: expected an object: line 1 column 1 (char 0)")
        return
    yield from _surrogates(request.body)
    yield from threads.refusals(request)
    yield from _fields(document)
    if models is not None and document.get("model") not in models:
        yield Refusal(404, f"model: {document.get('model')}")
    messages = listed(document.get("messages"))
    yield from _messages(messages, str(document.get("model")))
    yield from offered.refusals(document)
    turns = _turns(messages)
    yield from _shapes(turns)
    yield from _duplicates(turns)
    yield from _pairs(turns)
    yield from thinking.refusals(request)


def _surrogates(body: bytes) -> Iterator[Refusal]:
    r"""Refuse half of a character, which JSON can write as an escape (`\ud83d` alone): the whole body is no JSON."""
    found = _LONE.search(body) if b"\\ud" in body or b"\\uD" in body else None
    if found:
        what = "no low surrogate" if found[1] else "invalid high surrogate"
        place = f"line 1 column {found.end()} (char {found.end() - 1})"
        yield bad(f"The request body is not valid JSON: {what} in string: {place}")


def _fields(document: dict[str, Any]) -> Iterator[Refusal]:
    for name in ("model", "max_tokens", "messages"):
        if name not in document:
            yield bad(f"{name}: Field required")
    if not isinstance(document["model"], str) or not document["model"]:
        yield bad("model: Input should be a valid string")
    if not isinstance(document["max_tokens"], int):
        yield bad("max_tokens: Input should be a valid integer")
    elif document["max_tokens"] < 1:
        yield bad("max_tokens: Input should be greater than or equal to 1")
    if not isinstance(document["messages"], list):
        yield bad("messages: Input should be a valid list")
    if not document["messages"]:
        yield bad("messages: at least one message is required")


def _messages(messages: list[Any], model: str) -> Iterator[Refusal]:
    for index, message in enumerate(messages):
        role, content = mapped(message).get("role"), mapped(message).get("content")
        if role == "system":
            yield from _system(messages, index, model)
        elif role not in ("user", "assistant"):
            yield bad(f'messages: Unexpected role "{role}". Allowed roles are "user" or "assistant".')
        if not isinstance(content, str | list):
            yield bad(f"messages.{index}.content: Field required")
        if not content and role == "user":
            yield bad(f"messages.{index}: user messages must have non-empty content")
        if not content and index < len(messages) - 1:
            yield bad(
                f"messages.{index}: all messages must have non-empty content "
                "except for the optional final assistant message"
            )


def _system(messages: list[Any], index: int, model: str) -> Iterator[Refusal]:
    """Refuse a system message of a model that accepts none, or that does not stand between a user and the model."""
    if not _accepts_system(model):
        yield bad(
            'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
            'not "system" as an input message role.'
        )
    before = mapped(messages[index - 1]).get("role") if index else None
    after = mapped(messages[index + 1]).get("role") if index + 1 < len(messages) else "assistant"
    if before != "user" or after != "assistant":
        yield bad(
            f"messages.{index}: a `system` message must follow a `user` message, "
            "and be the last message or stand before an `assistant` message"
        )
    if any(block.get("type", "text") != "text" for block in blocks(mapped(messages[index]).get("content"))):
        yield bad(f"messages.{index}: `system` messages can only have `text` content")


def _accepts_system(model: str) -> bool:
    """Whether a model is new enough; of one without a version in its name that is not known.

    >>> [_accepts_system(f"claude-{name}") for name in ("opus-4-8", "fable-5-1", "sonnet-4-6", "sonnet-4-20250514")]
    [True, True, False, False]
    """
    found = _NUMBERED.search(model)
    return found is not None and (int(found[1]), int(found[2] or 0)) >= _SYSTEM_SINCE


def _turns(messages: list[Any]) -> list[_AnthropicTurn]:
    turns: list[_AnthropicTurn] = []
    for index, message in enumerate(messages):
        role = str(mapped(message).get("role"))
        if not turns or turns[-1].role != role:
            turns.append(_AnthropicTurn(role, []))
        content = blocks(mapped(message).get("content"))
        turns[-1].blocks.extend(_Block(index, place, data) for place, data in enumerate(content))
    return turns


def _shapes(turns: list[_AnthropicTurn]) -> Iterator[Refusal]:
    for turn in turns:
        for block in turn.blocks:
            yield from _shape(block)
    last = turns[-1]
    if last.role == "assistant" and last.blocks and last.blocks[-1].type == "text":
        text = str(last.blocks[-1].data.get("text", ""))
        if text != text.rstrip():
            yield bad("messages: final assistant content cannot end with trailing whitespace")


def _shape(block: _Block) -> Iterator[Refusal]:
    data, place = block.data, f"{block.place}.{block.type}"
    if block.type == "text":
        if not data.get("text"):
            yield bad("messages: text content blocks must be non-empty")
        elif not str(data["text"]).strip():
            yield bad("messages: text content blocks must contain non-whitespace text")
    elif block.type == "tool_use":
        yield from _use(data, place)
    elif block.type == "tool_result":
        if "tool_use_id" not in data:
            yield bad(f"{place}.tool_use_id: Field required")
        if not isinstance(data["tool_use_id"], str):
            yield bad(f"{place}.tool_use_id: Input should be a valid string")


def _use(data: dict[str, Any], place: str) -> Iterator[Refusal]:
    for name in ("id", "name", "input"):
        if name not in data:
            yield bad(f"{place}.{name}: Field required")
    if data["name"] == "":
        yield nameless(bad(f"{place}.name: String should have at least 1 character"))
    if not isinstance(data["id"], str):
        yield bad(f"{place}.id: Input should be a valid string")
    if not _ID.match(data["id"]):
        yield bad(f"{place}.id: String should match pattern '{_ID.pattern}'")
    if not isinstance(data.get("input"), dict):
        yield bad(f"{place}.input: Input should be a valid dictionary")


def _duplicates(turns: list[_AnthropicTurn]) -> Iterator[Refusal]:
    seen: set[str] = set()
    for turn in turns:
        for block in turn.blocks:
            if block.type != "tool_use":
                continue
            if block.data["id"] in seen:
                yield unpaired(f"{block.place}: `tool_use` ids must be unique", gateway_accepts=True)
            seen.add(block.data["id"])


def _pairs(turns: list[_AnthropicTurn]) -> Iterator[Refusal]:
    calls: list[_Block] = []
    for turn in turns:
        yield from _answers(calls, turn)
        yield from _misplaced(turn)
        calls = [block for block in turn.blocks if block.type == "tool_use"]
    yield from _answers(calls, _AnthropicTurn("user", []))


def _answers(calls: list[_Block], turn: _AnthropicTurn) -> Iterator[Refusal]:
    """Compare calls with the results at the start of the next turn; later results do not count."""
    front = next((n for n, block in enumerate(turn.blocks) if block.type != "tool_result"), len(turn.blocks))
    answered = {block.data.get("tool_use_id") for block in turn.blocks[:front]}
    missing = [block for block in calls if block.data["id"] not in answered]
    if missing:
        yield unpaired(
            f"messages.{missing[0].message}: `tool_use` ids were found without `tool_result` blocks immediately "
            f"after: {', '.join(block.data['id'] for block in missing)}. Each `tool_use` block must have a "
            "corresponding `tool_result` block in the next message."
        )
    known, seen = {block.data["id"] for block in calls}, set()
    for block in turn.blocks:
        id_ = block.data.get("tool_use_id")
        if turn.role != "user" or block.type != "tool_result":
            continue
        if id_ not in known:
            yield unpaired(
                f"{block.place}: unexpected `tool_use_id` found in `tool_result` blocks: {id_}. Each `tool_result` "
                "block must have a corresponding `tool_use` block in the previous message."
            )
        if id_ in seen:
            yield unpaired(
                f"{block.place}: each tool_use must have a single result. "
                f"Found multiple `tool_result` blocks with id: {id_}",
                gateway_accepts=True,
            )
        seen.add(id_)


def _misplaced(turn: _AnthropicTurn) -> Iterator[Refusal]:
    allowed = {"tool_use": "assistant", "tool_result": "user"}
    for block in turn.blocks:
        role = allowed.get(block.type, turn.role)
        if role != turn.role:
            yield unpaired(f"messages.{block.message}: `{block.type}` blocks can only be in `{role}` messages")
