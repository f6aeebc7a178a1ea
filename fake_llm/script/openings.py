"""How a conversation begins: its system text, and what the user says before the model's first reply.

By their openings conversations are told apart. Dates, times and ids differ from one request to the next, so they do not
count.
"""

import hashlib
import json
import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import takewhile

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.value import value

_SYSTEM_CHARS, _FRAME_CHARS = 100, 80


def system_mark(conversation: Conversation) -> str:
    """What the beginnings of two system texts share: all but dates, times and ids."""
    return _of_opening(conversation.system[:200])


def schema_mark(conversation: Conversation) -> str:
    """What a question and the next try at it share: their schema and opening. Their system text may have got a note."""
    if not (conversation.schema or {}).get("properties"):
        return ""
    first = takewhile(lambda message: message.role == "system", conversation.messages)
    opening = _of_opening("\n".join([message.text for message in first])[:200])
    return _digest(opening, json.dumps(conversation.schema, sort_keys=True, default=str))


@lru_cache(maxsize=256)  # an agent has few system texts
def _of_opening(system: str) -> str:
    return hashlib.sha256(lasting(system)[:_SYSTEM_CHARS].encode()).hexdigest()[:12]


@lru_cache(maxsize=256)
def lasting(text: str) -> str:
    """A text without dates, times and ids, which differ in the next call."""
    return re.sub(r"(?<!\w)\w*\d\w*(?:[-+.:,/]\w*\d\w*)*", "0", text)


def root_of(conversation: Conversation) -> str:
    """What the user says before the model's first reply."""
    said: list[str] = []
    for message in conversation.messages:
        if message.role in ("assistant", "tool"):
            break
        if message.role == "user":
            said.append(message.text)
    return "\n".join(said)


def replies_in(conversation: Conversation) -> int:
    """How many replies of the model a conversation holds; the parts of one reply follow each other."""
    roles = [message.role for message in conversation.messages if message.role != "system"]
    return sum(role == "assistant" and roles[at - 1 : at] != ["assistant"] for at, role in enumerate(roles))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()[:16]


@value
class QuotedMessage:
    """A message of the user: its marker, and the words after it."""

    marker: str
    words: str = ""


def frames(conversation: Conversation, asked: QuotedMessage) -> tuple[str, str]:
    """Digests of what surrounds a message in an opening, before it and on both sides; empty if it is not there."""
    before, found, after = root_of(conversation).lower().partition(asked.marker.lower())
    if not found or not asked.marker:
        return "", ""
    rest = after.partition(asked.words.lower())[2] if asked.words else after
    start = _digest(system_mark(conversation), lasting(before[-_FRAME_CHARS:]))
    return start, _digest(start, lasting(rest[-_FRAME_CHARS:]))


def asides(calls: Iterable[Conversation], answering: Conversation, asked: QuotedMessage) -> frozenset[str]:
    """The frames of the calls of one turn that were made beside the answering one; none if that holds no marker."""
    main, root = frames(answering, asked), root_of(answering)
    found: set[str] = set()
    for call in calls if main[0] else ():
        frame, own = frames(call, asked), root_of(call)
        if frame[0] != main[0]:
            found.add(frame[0])
        elif frame[1] != main[1] and not root.startswith(own):
            found.add(frame[1])
    return frozenset(found - {""})
