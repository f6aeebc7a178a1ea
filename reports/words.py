"""Numbers as text, and text of agents and models made safe to show: escape codes, reversed lines, what XML forbids."""

import unicodedata

NONE = "\N{EN DASH}"
"""Stands for a missing value."""

_KEPT = frozenset("\n\t\u200c\u200d")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

_ASCII = {
    NONE: "-",
    "—": "-",
    "…": "...",
    "·": "|",
    "✓": "ok",
    "✗": "X",
    "→": "->",
    "\N{MULTIPLICATION SIGN}": "x",
    "≥": ">=",
    "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "\N{LEFT SINGLE QUOTATION MARK}": "'",
    "“": '"',
    "”": '"',
    "°": " deg",
    "\u00a0": " ",
}


def clean(text: str) -> str:
    r"""`text` with invisible and control characters written as `\x1b`; line breaks and tabs are kept."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in _KEPT or unicodedata.category(c) not in _HIDDEN else _spelled(c) for c in text)


def _spelled(char: str) -> str:
    code = ord(char)
    if char == "\r":
        return ""
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def one_line(text: str, limit: int = 0) -> str:
    """`text`, clean, on one line, cut to `limit` characters (0: no limit)."""
    line = " ".join(clean(text).split())
    return line if not limit or len(line) <= limit else line[: limit - 1] + "…"


def speakable(text: str, encoding: str) -> str:
    """`text` in characters of `encoding`: known signs are replaced by ASCII, all others by a question mark.

    GitHub's runner obeys `##[command]` anywhere in a line of a log, so that gets a space.
    """
    return "".join(_written(char, encoding) for char in text.replace("##[", "## ["))


def _written(char: str, encoding: str) -> str:
    try:
        char.encode(encoding)
    except UnicodeEncodeError:
        return _ASCII.get(char, "?")
    return char


def count(number: float | None) -> str:
    """1280000 → `1,280,000`."""
    return NONE if number is None else f"{number:,.0f}"


def brief(number: float | None) -> str:
    """1280000 → `1.28M`, for narrow columns."""
    if number is None:
        return NONE
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size * 10 or abs(number) >= size > 1e3:
            return f"{number / size:.3g}{letter}"
    return f"{number:,.0f}"


def money(usd: float | None) -> str:
    """Dollars; an unknown price is `unknown`, never 0."""
    if usd is None:
        return "unknown"
    if usd == 0:
        return "$0"
    if usd < 0.01:
        return f"${usd:.2g}" if usd >= 0.0001 else "<$0.0001"
    return f"${usd:,.2f}" if usd >= 1 else f"${usd:.3f}"


def least_money(usd: float | None) -> str:
    """A lower bound in dollars: below $0.0001 it is written out, because `at least <$0.0001` says nothing."""
    return f"${usd:.6f}" if usd and usd < 0.0001 else money(usd)


def seconds(number: float | None) -> str:
    """60.0021 → `60.0 s`, 0.043 → `43 ms`; first rounded to the four decimals of a table, so that both say the same."""
    if number is None:
        return NONE
    number = round(number, 4)
    if number == 0:
        return "0 s"
    if number < 0.0995:
        return f"{number * 1000:.0f} ms"
    return f"{number:.2f} s" if number < 10 else f"{number:,.1f} s"


def many(number: int, noun: str, plural: str = "") -> str:
    """`1 call`, `160 calls`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
