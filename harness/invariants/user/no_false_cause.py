"""The error that ends a turn names no cause that did not strike."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import ends
from wedgehog.harness.invariants.user.cause_told import (
    OWN_TIMER,
    Cause,
    causes_of,
    struck,
    without_frames,
    words_read,
)
from wedgehog.harness.record.error_words import short
from wedgehog.harness.record.events.turn import TurnEnded
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of, unusual
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Turn

A_KEY: Final = "a key that was refused"
A_LIMIT: Final = "a rate limit"
A_WINDOW: Final = "a conversation that is too long"
_NAMES: Final = {
    "a success": r"\b(error|fail(ed|ure))\b.{0,40}: *\W?success\W*$",
    A_WINDOW: (
        r"context (window|length|overflow|limit)|maximum context|"
        r"(prompt|input|conversation) (is|was|has become) too (long|large)"
    ),
    A_LIMIT: r"rate.?limit|too many requests",
    A_KEY: r"(invalid|incorrect|wrong|missing|expired|bad) (\w+ )?(api.?)?key|unauthori[sz]ed|not (logged|signed) in",
}
"""Words that name one cause and no other."""
CRASH: Final = re.compile(
    r"\b(TypeError|AttributeError|KeyError|IndexError|NameError|UnboundLocalError|ReferenceError|ResponseNotRead|"
    r"Null(Reference|Pointer)Exception|IndexOutOfBoundsException|ClassCastException)\b|"
    r"cannot read propert(y|ies) |(undefined|null) is not (an object|a function)|\bis not (a function|iterable)\b|"
    r"'NoneType' object|object has no attribute '|object is not subscriptable|indices must be integers|"
    r"nil pointer dereference|object reference not set|index out of (range|bounds)|"
    r"attempted to access streaming response content",
    re.IGNORECASE,
)
"""The words of a mistake in a program: no provider and no network says them."""
A_REFUSAL: Final = 400
"""Below this status an error looks like a reply, and the usual clients read it as one."""
_ALSO_SAID_OF: Final = {0: set[str](), 401: {A_KEY}, 403: {A_KEY, A_LIMIT}, 404: set[str](), 413: {A_WINDOW, A_LIMIT}}
"""What else a status may stand for, beside a rate limit; 0: a connection that failed."""


@invariant("no_false_cause")
def no_false_cause(history: History) -> Iterator[Verdict]:
    """The error that ends a turn names no cause that did not strike, and no mistake of the agent's own program.

    "Prompt is too long" after a rate limit makes its user throw the conversation away, and "'str' object has no
    attribute 'get'" after a refused key is nothing that they can act on: the code that should tell the error has
    failed itself. Judged where the user sees an error, and the provider refused the turn's last request with an error's
    status, or a fault of the network kept it or its whole reply away. The status, three words of the provider's message
    or a word of a cause that struck are enough, wherever they stand in what the user reads. Without one of them these
    words are red: an exception such as TypeError or NullReferenceException; a success; a full window, a rate limit or a
    refused key that did not strike. Words that name no cause at all are left to `cause_told`.

    Fix: Read an error's body with care: it may be text, a list, or an object of another form. Show the status and the
    body as they are where you do not know them. Do not guess a cause from the number of failures.
    """
    for turn in history.turns:
        causes = causes_of(turn, every=True)
        if any(0 < cause.status < A_REFUSAL for cause in causes):
            continue
        if causes and turn.end is not None and outcome_of(turn, history).kind == "surfaced":
            yield _judge(history, turn, turn.end, causes)


def _judge(history: History, turn: Turn, end: TurnEnded, causes: Sequence[Cause]) -> Verdict:
    words = words_read(end)
    told = any(cause.told_in(words) for cause in causes) or re.search(OWN_TIMER, words, re.IGNORECASE)
    named = None if told else _false_cause(unusual(words, history), causes)
    if named is None:
        return passed(because=f"{turn}: its error names no other cause")
    what, line = named
    says = f"{turn}: {causes[-1].says}, and the error names {what}: {short(line)}"
    return fail(says, (*struck(turn), *ends(turn)))


def _false_cause(words: str, causes: Sequence[Cause]) -> tuple[str, str] | None:
    """What the words name in the place of these causes, and the line that does."""
    known = set[str]().union(*(_ALSO_SAID_OF.get(cause.status, {A_LIMIT}) for cause in causes))
    for line in reversed(without_frames(words).splitlines()):
        if CRASH.search(line):
            return "a mistake of the agent's own code", line
        for what, pattern in _NAMES.items():
            if what not in known and re.search(pattern, line, re.IGNORECASE):
                return what, line
    return None
