"""Words in which an agent says that the work is done, though the model has asked for more of it."""

import re

from wedgehog.harness.record.error_words import uncoloured
from wedgehog.harness.record.history import History
from wedgehog.harness.record.shown_words import shows_cut
from wedgehog.harness.record.views import Turn

_DONE = re.compile(
    r"\b(completed?|finished|accomplished|success(ful|fully)?|all done|nothing (more|else|further) to do"
    r"|no (further|more) (action|steps|work))\b|\b(is|was|are|been|now) done\b",
    re.IGNORECASE,
)
_NOT_DONE = re.compile(
    r"\b(limit|max|stop|halt|abort|loop|repeat|again|same|stuck|too many|iteration|round|step|turn|call|budget|exhaust"
    r"|exceed|reach|fail|error|incomplete|partial|unable|unfinish|unverif|sorry|could|may|might|can.?not)"
    r"|\b(not|no longer|without|but|however|only|no (answer|final|response|reply|result))\b|n't\b|\d+ (of|/) \d+",
    re.IGNORECASE,
)
"""One such word leaves it open whether all of the work is done."""

_ALL_GOOD = re.compile(r"\bno (further|more) (action|steps|work)\b", re.IGNORECASE)
"""This has a word of `_NOT_DONE`, and says that nothing is left to do."""


def claims_success(turn: Turn, answer: str, history: History) -> bool:
    """Whether the model's last reply asked for tools, and words of the agent's own say that the work is done."""
    last = turn.main_calls[-1] if turn.main_calls else None
    if last is None or last.ended is None or last.ended.stop != "tool":
        return False
    said = uncoloured(answer)
    if not _DONE.search(said) or _NOT_DONE.search(_ALL_GOOD.sub("", said)):
        return False
    return not any(shows_cut(call, turn, answer) for call in history.calls)
