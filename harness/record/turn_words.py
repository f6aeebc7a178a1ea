"""Words that are an error only because of what happened in the turn: a status, a filter, a user who has left."""

import re

from wedgehog.harness.record.error_words import uncoloured
from wedgehog.harness.record.views import Turn

_OF_A_FILTER = re.compile(
    r"filter|block|refus|reject|declin|denied|polic|safety|moderat|flagged|violat|prohibit"
    r"|stopped|cut (off|short)|partial|not complete|unfinished",
    re.IGNORECASE,
)
"""Words with which an agent says that a filter has cut a reply; an error only where that has happened."""
_OF_A_LIMIT = re.compile(
    r"\bcut\b|truncat|shorten|abridged|too long|incomplete|partial|not (complete|finished)|unfinished"
    r"|\b(limit|length|tokens)\b|stopped (early|here)|to be continued|\bgoes on\b",
    re.IGNORECASE,
)
"""Words with which it says that its reply was cut at the token limit; an error only where that has happened."""
_OF_LEAVING = re.compile(r"stop|cancel|interrupt|abort", re.IGNORECASE)
"""Words of a page that ends a turn when its user begins another conversation."""


def cut_word(said: str, turn: Turn) -> str:
    """The word by which an agent tells that a reply of this turn was cut, by a filter or at the token limit."""
    return filter_word(said, turn) or _limit_word(said, turn)


def _limit_word(said: str, turn: Turn) -> str:
    """A word for the token limit in what the agent adds to the words of the model; empty if there is none."""
    cut = [call.ended for call in turn.main_calls if call.ended is not None and call.ended.stop == "max_tokens"]
    for ended in cut:
        said = said.replace(ended.text_delivered.strip() or "\0", " ")
    found = _OF_A_LIMIT.search(said) if cut else None
    return found.group() if found else ""


def filter_word(said: str, turn: Turn) -> str:
    """The word by which an agent tells that a filter has cut a reply of this turn; empty if there is none."""
    cut = any(call.ended is not None and call.ended.stop == "filter" for call in turn.main_calls)
    found = _OF_A_FILTER.search(said) if cut else None
    return found.group() if found else ""


def leaving_word(said: str, turn: Turn) -> str:
    """The word by which it tells that the turn ended because its user went to another conversation; empty: none."""
    found = _OF_LEAVING.search(said) if turn.end is not None and turn.end.was_away else None
    return found.group() if found else ""


def status_in(text: str, turn: Turn) -> int | None:
    """The status of a refusal of this turn, if a text names one."""
    said = uncoloured(text)
    calls = (call for call in turn.calls if call.main or call.arrived.side)
    statuses = dict.fromkeys(call.refused.status for call in calls if call.refused)
    return next((status for status in statuses if re.search(rf"\b{status}\b", said)), None)
