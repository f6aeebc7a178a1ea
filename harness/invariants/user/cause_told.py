"""An error names its cause: a limit, a key, a balance, a model, a window, or a connection that failed."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import compacts, ends, refused_as_too_long, requests
from wedgehog.harness.record.error_words import SHOWN_CHARS, TRACE, cause_in, plain, uncoloured
from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.call import RequestRefused
from wedgehog.harness.record.events.turn import TurnEnded
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import Verdict, fail, nothing, passed
from wedgehog.harness.record.views import Call, Turn

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
_CONNECTION = (
    r"connect|network|internet|\boffline|reach|refused|reset|\be(conn|pipe|of)|socket|\bhost|\bdns\b|resolv|lookup|"
    r"getaddrinfo|\baddress|\bport\b|certificate|\btls\b|\bssl\b|handshake|protocol|proxy|unavailable|\bdown\b|closed|"
    r"broken|interrupt|terminat|prematur|incomplete|\bcut\b|stream|respon[ds]|silen|stall|\bidle|\bhang|\bhung|stuck|"
    r"too (long|slow)|took longer|\bwait(ed|ing)\b|fetch|sending|transport|"
    r"(\bno|not|n't|never|without|nothing) (\w+ )?(answer|reply|replied|words?|data|bytes?|events?|chunks?|tokens?|"
    r"came|arrived?|received?)\b|\b(nothing|heard) (\w+ )?(from|for)\b"
)
OWN_TIMER = r"time.?out|timed out|deadline|did not (answer|respond)|no (answer|response)"
_ENGLISH = (
    r"\b(the|failed|failure|unable|could|couldn't|can't|cannot|please|wrong|sorry|has|occurred|unexpected|internal|"
    r"unknown|provider error)\b"
)
_A_CRASH = r"\b\w+(Error|Exception)\b\W+\S"
RUN_OF_WORDS = 3
"""So many words of the provider's message in a row count as a part of it."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why the turn has no answer, and words that would name it."""

    says: str
    meaning: str
    refused: RequestRefused | None = None
    judged: bool = True

    @property
    def status(self) -> int:
        """The status of the refusal; 0 for a connection that failed."""
        return self.refused.status if self.refused is not None else 0

    def told_in(self, words: str) -> bool:
        """Whether the words have its status, a part of the provider's message, or its meaning."""
        quoted = self.refused is not None and _quotes(words, self.refused)
        return quoted or bool(re.search(self.meaning, without_frames(words), re.IGNORECASE))


def _quotes(words: str, refused: RequestRefused) -> bool:
    """Whether the words have the refusal's status, its kind or a part of its message."""
    said = plain(words)
    parts = (plain(" ".join(part)) for part in _runs(refused.message.split()))
    kind = plain(refused.error)
    named = (kind not in ("", "error") and kind in said) or any(part and part in said for part in parts)
    return named or bool(re.search(rf"\b{refused.status}\b", words))


def without_frames(words: str) -> str:
    """The words without the lines of code in a Python traceback, where any word may stand."""
    if TRACE not in words:
        return words
    return "\n".join(line for line in words.splitlines() if not line[:1].isspace())


def _runs(words: Sequence[str]) -> Iterator[Sequence[str]]:
    for first in range(max(1, len(words) - RUN_OF_WORDS + 1)):
        yield words[first : first + RUN_OF_WORDS]


@invariant("cause_told", level="strict")
def cause_told(history: History) -> Iterator[Verdict]:
    """An error that ends a turn names the cause: why the provider refused, or that the connection failed.

    "Something went wrong" after a 401 sends the user to the network, while the key has expired. Judged where the user
    sees an error, and one of two things ended the turn. The provider refused its last request for a key, a balance, a
    model, a limit or its length: 401, 402, 403, 404, 413, 429, 529, and a 400 for credit or for length. Or a fault of
    the network kept its last request away, or all of the reply. The status, three words of the provider's message or a
    word of its meaning are enough; for a connection it is any word for it or for silence. If the request for a summary
    failed too, its cause is enough. Errors in another language than English, and an agent's own time-out after its
    retries, are not judged.

    Fix: Put the provider's status and message into the error that the user reads, and the name of the exception of a
    connection. Where you wrap an exception, keep its cause in the words.
    """
    for turn in history.turns:
        causes = causes_of(turn)
        if causes and turn.end is not None and outcome_of(turn, history).kind == "surfaced":
            yield _judge(turn, turn.end, causes)


def _judge(turn: Turn, end: TurnEnded, causes: Sequence[Cause]) -> Verdict:
    words = words_read(end)
    if any(cause.told_in(words) for cause in causes):
        return passed(because=f"{turn}: its error names a cause that struck")
    if re.search(OWN_TIMER, words, re.IGNORECASE):
        return nothing(f"{turn}: it ended by a time-out of its own")
    if not re.search(_ENGLISH, words, re.IGNORECASE) and not re.search(_A_CRASH, words):
        return nothing(f"{turn}: its error may be in another language than English")
    shown = " ".join(cause_in(end.error or end.raised or end.answer or words).split())[:SHOWN_CHARS]
    says = f"{turn}: {causes[-1].says}, and the error does not name it: {shown}"
    return fail(says, (*struck(turn), *ends(turn)))


def struck(turn: Turn) -> tuple[Event, ...]:
    """The requests that got no reply, and the faults that kept others away, as evidence."""
    return (*requests(call for call in turn.main_calls if call.refused or _lost(call)), *turn.kept_away)


def causes_of(turn: Turn, *, every: bool = False) -> list[Cause]:
    """All that struck the turn, if its last request met something that its user should read; with `every`, anything."""
    found = [(call.arrived.id, _cause_of(call)) for call in turn.main_calls]
    found += [(fault.id, _connection(fault.name)) for fault in turn.kept_away]
    last = max(found, key=lambda it: it[0])[1] if found else None
    of_summaries = [_cause_of(call) for call in turn.calls if compacts(call)]
    causes = [*of_summaries, *(cause for _, cause in found)]
    return [cause for cause in causes if cause is not None] if last is not None and (every or last.judged) else []


def _cause_of(call: Call) -> Cause | None:
    """Why the call has no reply, if a fault is why."""
    if call.refused is None:
        return _connection(call.faults[-1].name) if _lost(call) else None
    meaning = _meaning(call.refused)
    said = f"the provider said {call.refused.status} ({call.refused.message[:80]})"
    return Cause(said, meaning or _BUSY, call.refused, meaning is not None) if call.refused.scripted else None


def _connection(fault: str) -> Cause:
    return Cause(f"the connection to the model failed ({fault})", _CONNECTION)


def _lost(call: Call) -> bool:
    """Whether a fault of the network kept the whole reply away."""
    ended = call.ended
    away = ended is None or (ended.how != "complete" and ended.bytes_delivered == 0)
    return call.refused is None and away and any(not fault.slows for fault in call.faults)


def _meaning(refused: RequestRefused) -> str | None:
    if refused.status == 400:
        if re.search(r"credit|balance|billing|quota", refused.message, re.IGNORECASE):
            return _MONEY
        return _TOO_LONG if refused_as_too_long(refused) else None
    return MEANINGS.get(refused.status)


def words_read(end: TurnEnded) -> str:
    """What the user reads: of a service its response, of a program all that it prints."""
    printed = () if end.status is not None else (end.stdout, end.stderr)
    status = "" if end.status is None or end.status == 200 else f"HTTP {end.status}"
    return uncoloured("\n".join((end.answer, end.error, end.raised or "", status, *printed)))
