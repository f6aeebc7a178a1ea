"""Lines by which an agent says that messages were left out, to its user or to its model."""

import re
from collections.abc import Iterator
from typing import Final

CUT_BY_US: Final = "characters are left out]"
"""The end of the mark that stands in the place of the middle of a long output in a history."""
_OUR_MARK: Final = re.compile(rf"\[… [\d,]+ {re.escape(CUT_BY_US)}")
_ANOTHER_SCRIPT: Final = re.compile(r"[^\x00-\xbf\u2010-\u2027\u2190-\u2bff\ufe0f\U0001f000-\U0001faff]")
"""A letter that English does not have; signs, arrows and frames of a terminal are none."""
_LEFT_OUT: Final = re.compile(
    r"left out|leav\w+ out|omit|remov|drop|truncat|trim|discard|prun|shorten|unavail|not available|\blost\b|no longer"
    r"|forg[eo]t|elided|evict|cut (?:off|out|short)|re-?set\b|anew|from scratch"
    r"|\b(?:no|without|empty|missing|fail\w*)\b[^.]{0,40}summar|summar[^.]{0,60}\b(?:no|not|fail\w*|empty|missing|could)\b"
    r"|summar\w* error",
    re.IGNORECASE,
)
"""The words are wide on purpose: an agent that says one of them is not blamed."""


def lines_of_left_out(text: str) -> Iterator[str]:
    """Yield the lines that say that messages are missing, or their summary; one of another language may say it too."""
    for line in text.splitlines():
        said = _OUR_MARK.sub("", line)
        if _LEFT_OUT.search(said) or _ANOTHER_SCRIPT.search(said):
            yield line
