"""An error that the provider caused names its cause: a limit, a key, a balance, a model, a window."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import ends, over, refused_as_too_long, requests
from wedgehog.harness.record.error_words import SHOWN_CHARS, TRACE, plain, uncoloured
from wedgehog.harness.record.events.call import RequestRefused
from wedgehog.harness.record.events.turn import TurnEnded
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import Verdict, fail, nothing, passed
from wedgehog.harness.record.views import Turn

_MONEY = r"credit|balance|billing|payment|\bpaid\b|\bpay\b|quota|\bfunds?\b|subscri|\bplan\b|upgrade|budget|account"
_ACCESS = (
    r"\bkeys?\b|api.?key|credential|\bauth|unauthori[sz]|log.?in|sign.?in|logged|token|account|access|permi|"
    r"forbid|denied|not allowed|reject|expired|config|setting|invalid|region|country|blocked"
)
_BUSY = r"overload|\bbusy\b|capacity|unavailable|high (demand|load)|too many|later|server|provider|service"

MEANINGS = {
    401: _ACCESS,
    402: _MONEY,
    403: _ACCESS,
    404: r"not found|found no|\bmodels?\b|exist|unknown|unavailable|no such|unsupported|not supported|invalid|config",
    413: r"too (large|big|long)|size|context|window|length|limit|exceed",
    429: rf"\brate|limit|quota|too many|throttl|retry|later|\bwait|exceed|usage|{_BUSY}|{_MONEY}",
    529: _BUSY,
}
"""Words that name the meaning of a status. They are wide on purpose: a guess in the right direction helps the user."""
_TOO_LONG = r"too long|too large|context|window|length|tokens?\b|exceed|maximum|limit|compact|shorten|reduce"
_OWN_TIMER = r"time.?out|timed out|deadline|did not (answer|respond)|no (answer|response)"
_ENGLISH = r"\b(the|failed|failure|unable|could|couldn't|can't|cannot|please|wrong|sorry|has|occurred|unexpected)\b"
_A_CRASH = r"\b\w+(Error|Exception)\b\W+\S"
RUN_OF_WORDS = 3
"""So many words of the provider's message in a row count as a part of it."""


@dataclass(frozen=True, slots=True)
class _Cause:
    """A refusal whose cause a user can do something about, and words that would name it."""

    refused: RequestRefused
    meaning: str

    def told_in(self, words: str) -> bool:
        """Whether the words have its status, a part of the provider's message, or its meaning."""
        said = plain(words)
        parts = (plain(" ".join(part)) for part in _runs(self.refused.message.split()))
        kind = plain(self.refused.error)
        named = (kind not in ("", "error") and kind in said) or any(part and part in said for part in parts)
        status = re.search(rf"\b{self.refused.status}\b", words)
        return bool(status or named or re.search(self.meaning, _without_frames(words), re.IGNORECASE))


def _without_frames(words: str) -> str:
    """The words without the lines of code in a Python traceback, where any word may stand."""
    if TRACE not in words:
        return words
    return "\n".join(line for line in words.splitlines() if not line[:1].isspace())


def _runs(words: Sequence[str]) -> Iterator[Sequence[str]]:
    for first in range(max(1, len(words) - RUN_OF_WORDS + 1)):
        yield words[first : first + RUN_OF_WORDS]


@invariant("cause_told", level="strict")
def cause_told(history: History) -> Iterator[Verdict]:
    """An error that ends a turn after the provider's refusal names the cause.

    "Something went wrong" after a 401 sends the user to the network, while the key has expired. Judged where the user
    sees an error, and the last request of the turn was refused for a key, a balance, a model, a limit or its length.
    These are 401, 402, 403, 404, 413, 429, 529, and a 400 for credit or for length. The status, three words of the
    provider's message or a word of its meaning are enough. Errors in another language than English, and an agent's own
    time-out after its retries, are not judged.

    Fix: Put the provider's status and message into the error that the user reads. Where you wrap an exception, keep its
    cause in the words.
    """
    for turn in history.turns:
        causes = _causes(turn)
        if causes and turn.end is not None and over(turn) is None and outcome_of(turn, history).kind == "surfaced":
            yield _judge(turn, turn.end, causes)


def _judge(turn: Turn, end: TurnEnded, causes: Sequence[_Cause]) -> Verdict:
    words = _words(end)
    if any(cause.told_in(words) for cause in causes):
        return passed(because=f"{turn}: its error names a cause that struck")
    if re.search(_OWN_TIMER, words, re.IGNORECASE):
        return nothing(f"{turn}: it ended by a time-out of its own")
    if not re.search(_ENGLISH, words, re.IGNORECASE) and not re.search(_A_CRASH, words):
        return nothing(f"{turn}: its error may be in another language than English")
    refused = causes[-1].refused
    shown = " ".join(uncoloured(end.error or end.raised or end.answer or words).split())[:SHOWN_CHARS]
    cause = f"the provider said {refused.status} ({refused.message[:80]})"
    says = f"{turn}: {cause}, and the error does not name it: {shown}"
    evidence = (*requests(call for call in turn.main_calls if call.refused), *ends(turn))
    return fail(says, evidence)


def _causes(turn: Turn) -> list[_Cause]:
    """The refusals of the turn that a user can act on, if its last request was refused for one of them."""
    refusals = [call.refused for call in turn.main_calls]
    if not refusals or refusals[-1] is None or _meaning(refusals[-1]) is None:
        return []
    found = ((it, _meaning(it)) for it in refusals if it is not None and it.scripted)
    return [_Cause(it, meaning) for it, meaning in found if meaning is not None]


def _meaning(refused: RequestRefused) -> str | None:
    if refused.status == 400:
        if re.search(r"credit|balance|billing|quota", refused.message, re.IGNORECASE):
            return _MONEY
        return _TOO_LONG if refused_as_too_long(refused) else None
    return MEANINGS.get(refused.status)


def _words(end: TurnEnded) -> str:
    """What the user reads: of a service its response, of a program all that it prints."""
    printed = () if end.status is not None else (end.stdout, end.stderr)
    status = "" if end.status is None or end.status == 200 else f"HTTP {end.status}"
    return uncoloured("\n".join((end.answer, end.error, end.raised or "", status, *printed)))
