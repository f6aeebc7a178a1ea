"""What a request says of the work of subagents, and of tools that fail. A history has digests of it, not the text."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.script.roles import names_subagent, names_wait
from wedgehog.harness.record.loss_words import lines_of_left_out
from wedgehog.harness.record.tool_words import lines_of_missing_tools

_SCANNED = 20_000
"""Characters at the beginning and at the end of a message in which notices are looked for."""
_NOTICE = re.compile(
    r"(?:agent|task|worker|\bjob|delegat|background|thread|child|spawn|session)[^\0]{0,200}?"
    r"(?:complet|finish|done|ended|fail|\berr\b|error|stopp|cancel|interrupt|abort|kill|crash|lost|terminat|died|\bdead"
    r"|exit|no longer|\bidle\b|not (?:running|found|answer)|unknown|\bgone|timed? ?out|shut ?down|forbidden|refus"
    r"|denied)",
    re.IGNORECASE,
)
"""The words are wide on purpose: an agent that says one of them is not blamed."""
_PLACE = re.compile(
    r"(?:^|[\s\"'`=(>])(?:~|\.{1,2})?/\w|[A-Za-z]:\\\w|\w://|\b[\w-]+\.(?:md|txt|jsonl?|ya?ml|log|out|output|xml|html|db)\b",
    re.MULTILINE,
)
"""A folder, a file or an address. A closing tag has a slash too."""
_LIKE_A_TOOL = re.compile(r"[a-z][_-][a-z]|[a-z][A-Z]")
"""A name of a tool that is no common word."""


def notices_in(conversation: Conversation, token_of: Callable[[str, str], str]) -> tuple[str, ...]:
    """Digests of the passages that speak of the end of a subagent's work, but not in what the model said.

    One in the result of a delegating call is of that call alone: `1.1.1:…`, by `token_of` an id and a text. What a tool
    returns that waits for a subagent is about a subagent. A text in another language may be a notice too. The second
    of two equal passages is another notice.
    """
    counted = Counter(_digests(conversation, token_of))
    return tuple(f"{found}#{n}" if n else found for found in sorted(counted) for n in range(counted[found]))


def _digests(conversation: Conversation, token_of: Callable[[str, str], str]) -> Iterator[str]:
    calls = [call for said in conversation.messages for call in said.tool_calls]
    begun = {call.id for call in calls if names_subagent(call.name)}
    asked = {call.id for call in calls if names_wait(call.name)}
    for said in conversation.messages:
        if said.role != "assistant":
            yield from _passages(said.text)
        for result in said.tool_results:
            of = f"{token_of(result.call_id, '')}:" if result.call_id in begun else ""
            about = f"agent: {result.text}" if result.call_id in asked else result.text
            yield from (of + found for found in _passages(about))


def notices_lead_on(conversation: Conversation) -> bool:
    """Whether a text that speaks of the end of a subagent's work also names a place or a tool, where more can be read.

    So may the result of the call that began it. Of a tool that waits for subagents the model knows by itself.
    """
    names = {tool.name for tool in conversation.tools if _LIKE_A_TOOL.search(tool.name)}
    others = {name for name in names if not (names_subagent(name) or names_wait(name))}
    return any(_PLACE.search(text) or any(it in text for it in others) for text in _texts_of_subagents(conversation))


def _texts_of_subagents(conversation: Conversation) -> Iterator[str]:
    calls = [call for said in conversation.messages for call in said.tool_calls]
    theirs = {call.id for call in calls if names_subagent(call.name) or names_wait(call.name)}
    for said in conversation.messages:
        if said.role != "assistant" and any(_passages(said.text)):
            yield said.text
        yield from (it.text for it in said.tool_results if it.call_id in theirs or any(_passages(it.text)))


def tool_notices_in(conversation: Conversation) -> tuple[str, ...]:
    """Digests of the lines that speak of tools that fail: in its system text, and in all messages but the model's."""
    return _digests_of_lines(conversation, lines_of_missing_tools)


def loss_notices_in(conversation: Conversation) -> tuple[str, ...]:
    """Digests of the lines that speak of messages that were left out: in the same texts."""
    return _digests_of_lines(conversation, lines_of_left_out)


def _digests_of_lines(conversation: Conversation, lines_of: Callable[[str], Iterator[str]]) -> tuple[str, ...]:
    texts = (_scanned(said.text) for said in conversation.messages if said.role != "assistant")
    return tuple(sorted({_digest(line) for text in texts for line in lines_of(text)}))


def _passages(text: str) -> Iterator[str]:
    scanned = _scanned(text)
    passages = [found[0] for found in _NOTICE.finditer(scanned)]
    for passage in passages if scanned.isascii() else [*passages, scanned]:
        yield _digest(passage)


def _scanned(text: str) -> str:
    return text if len(text) <= 2 * _SCANNED else f"{text[:_SCANNED]}\0{text[-_SCANNED:]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:12]
