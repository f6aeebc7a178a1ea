"""What a turn shows its user that neither the model nor the other turns say: it may tell of a loss."""

import re
from collections.abc import Sequence
from typing import Final

from wedgehog.harness.record.error_words import uncoloured
from wedgehog.harness.record.history import History
from wedgehog.harness.record.views import Turn

_WORD: Final = re.compile(r"(?<!\w)[^\W\d_]{3,}(?!\w)")
"""A word; no part of an id, which has digits."""


def has_own_words(history: History, turns: Sequence[Turn], usual: Sequence[Turn]) -> bool:
    """Whether the output of these turns has a word that no reply, no message and no output of the usual turns has."""
    said = [call.ended.text_delivered for call in history.calls if call.ended is not None]
    said += [turn.stimulus.text for turn in history.turns if turn.stimulus is not None]
    return not _output_words(*turns) <= _output_words(*usual) | _words("\n".join(said))


def _output_words(*turns: Turn) -> set[str]:
    """The words that a user reads: of a service only those of its reply, since its log is for others."""
    ends_ = [turn.end for turn in turns if turn.end is not None]
    logs = [text for end in ends_ if end.status is None for text in (end.stdout, end.stderr)]
    return _words("\n".join([*logs, *(text for end in ends_ for text in (end.answer, end.error))]))


def _words(text: str) -> set[str]:
    return set(_WORD.findall(uncoloured(text).casefold()))
