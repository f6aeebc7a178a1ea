"""The words of an agent: which lines name the cause of an error, and how they are quoted."""

import re
from typing import Final

STOCK_PATTERNS = (
    r"error\s*[:(]",
    r"\berror (calling|connecting|contacting|during|from|in|reading|sending|while)\b[^:\n]{0,60}:",
    r"\[error\]",
    r"timed? ?out",
    r"rate.?limit|too many requests|quota",
    r"unauthori[sz]ed|authentication|api.?key",
    r"overloaded",
    r"unavailable",
    r"connection( was)? (refused|reset|lost|aborted|broken|closed)",
    r"\bE(CONN(REFUSED|RESET|ABORTED)|PIPE|TIMEDOUT|NOTFOUND|AI_AGAIN|HOSTUNREACH)\b"
    r"|\bfetch failed\b|[:\]!] terminated\b",
    r"\b(all connection attempts|connect call) failed\b"
    r"|\b(server|peer|remote( end| host)?|other side) (unexpectedly )?(disconnected|closed)\b",
    r"\bunexpected EOF\b|\bEOF occurred\b|\binternal server error\b|\bbad gateway\b",
    r"(?<!tool )\b(request|call|api|completion|provider|llm|model) failed ?[:(]",
    r"\b(empty|no) (answer|reply|response) from (the )?(model|llm|provider|api|server)\b"
    r"|\bmodel (gave|sent|returned) (no|nothing|an empty)\b|\bmodel did(n't| not) (answer|reply|respond)\b",
    r"(connection|network|timeout) error\b|(could not|cannot|can't|failed to|unable to) connect\b|\bfailed to fetch\b",
    r"(stream|reply|response|connection)( was)? (ended|closed|cut|broke|disconnected|terminated)( off)? "
    r"(before|without|early|prematurely|unexpectedly)",
    r"(stream|reply|response|answer|connection)( was| has been| got)? (cut|dropped|broken) ?(off|short)?\b",
    r"premature (close|end)",
    r"socket hang up",
    r"interrupted",
    r"incomplete",
    r"truncated",
    r"max_(output_|completion_)?tokens",
    r"(HTTP|status)( code)? [45]\d\d",
    r"context (window|length|overflow)|(prompt|input|request)( is| was)? too (long|large)",
    r"\b(iteration|time|step|round|turn|retry|attempt|recursion)s? limit\b"
    r"|\blimit of \d+ (iteration|step|round|turn|retrie|attempt|(tool |model )?call)s?\b",
    r"\bmax(imum)?( number of)? (iteration|step|turn|round|retrie|attempt)s?\b.{0,20}\b(reached|exceeded|hit)\b"
    r"|\b(reached|exceeded|hit)( the| its| my)? max(imum)?( number of)? (iteration|step|turn|round|retrie|attempt)s?\b",
    r"cannot read propert(y|ies) .{0,60}\b(undefined|null)\b",
    r"'NoneType' object|object has no attribute '",
    r"unexpected (token .{0,60} JSON|end of JSON)|expecting value: line \d",
)
"""Each names a cause of an error; none matches an apology. The last three are the words of an exception alone."""

COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
"""Terminal control sequences (CSI)."""

TRACE = "Traceback (most recent call last):"
"""The first line of a Python traceback."""

WARNING = re.compile(r"\b\w*Warning: |^\(Use `node --trace")
"""A line of a language's own warnings; indented lines behind it show its place in the code."""

SHOWN_CHARS = 120
"""At most so many characters of an agent's words are quoted."""


def uncoloured(text: str) -> str:
    """`text` without terminal control sequences."""
    return COLOURS.sub("", text)


FIRST_WORDS: Final = 20
"""So many letters and digits at the beginning of a reply tell it from others."""


def plain(text: str) -> str:
    """The letters and digits of `text`, in lower case, without colours; what is escaped as in JSON counts as itself.

    >>> plain('{"answer": "Gr\\u00fc\\u00dfe,\\nHans"}')
    'answergrüßehans'
    """
    text = _ESCAPE.sub(_unescaped, text) if "\\" in text else text
    return re.sub(r"[\W_]+", "", uncoloured(text)).lower()


_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|[nrt])?")
"""An escape of a letter, or of what is no letter. JSON inside of JSON has several backslashes."""


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else ""


def masked(line: str) -> str:
    """The line without its numbers, which differ from run to run."""
    return re.sub(r"\d+", "#", line.strip())


def causes(text: str, more: tuple[str, ...] = ()) -> frozenset[str]:
    """Lines that name a cause, with numbers masked; `more` are an agent's own patterns."""
    return frozenset(masked(line) for line in uncoloured(text).splitlines() if matching(line, more))


def matching(text: str, more: tuple[str, ...]) -> str | None:
    """The first words that name a cause, by the agent's own patterns (`more`) or a stock one; None without any."""
    text = uncoloured(text)
    found = (re.search(pattern, text, re.IGNORECASE) for pattern in (*more, *STOCK_PATTERNS))
    return next((it.group(0) for it in found if it), None)


def cause_in(text: str, more: tuple[str, ...] = ()) -> str:
    """What an error says, without warnings before it; of many lines the last one that names a cause."""
    lines: list[str] = []
    in_warning = False
    for line in exception_in(uncoloured(text)).splitlines():
        in_warning = WARNING.search(line) is not None or (in_warning and line[:1].isspace())
        lines += [] if in_warning else [line]
    left = "\n".join(lines).strip()
    if not left or len(left) <= SHOWN_CHARS:
        return left or text
    named = [line for line in lines if matching(line, more)]
    return named[-1] if named else left


def short(text: str) -> str:
    """`text` as one line to quote, of at most `SHOWN_CHARS` characters."""
    line = " ".join(exception_in(uncoloured(text)).split())
    return line if len(line) <= SHOWN_CHARS else line[: SHOWN_CHARS - 1] + "…"


def short_end(text: str) -> str:
    """`text` as one line to quote; of a long one its end, for a log of the agent may stand before its last words."""
    line = " ".join(exception_in(uncoloured(text)).split())
    return line if len(line) <= SHOWN_CHARS else "…" + line[1 - SHOWN_CHARS :]


def exception_in(text: str) -> str:
    """The exception behind the last Python traceback in `text`; without a traceback the whole text."""
    _, found, trace = text.rpartition(TRACE)
    lines = trace.splitlines()
    behind = [number for number, line in enumerate(lines) if line and not line[0].isspace()]
    return "\n".join(lines[behind[0] :]) if found and behind else text
