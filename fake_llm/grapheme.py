"""Splits text between visible characters, so that no emoji is split."""

import unicodedata
from collections.abc import Iterator

_JOINER = "\u200d"
_MOST_PIECES = 512
_PIECE_SIZE = 4


def graphemes(text: str) -> Iterator[str]:
    """Yield grapheme clusters (the common rules of Unicode's annex 29).

    >>> list(graphemes("né👩‍🚀🇫🇷"))
    ['n', 'é', '👩‍🚀', '🇫🇷']
    """
    cluster = ""
    for char in text:
        if cluster and _continues(cluster, char):
            cluster += char
            continue
        if cluster:
            yield cluster
        cluster = char
    if cluster:
        yield cluster


def pieces(text: str) -> list[str]:
    """Cut `text` into at most 512 pieces of four graphemes (about a token) or more."""
    if text.isascii() and "\r" not in text:
        step = max(_PIECE_SIZE, -(-len(text) // _MOST_PIECES))
        return [text[start : start + step] for start in range(0, len(text), step)]
    clusters = list(graphemes(text))
    step = max(_PIECE_SIZE, -(-len(clusters) // _MOST_PIECES))
    return ["".join(clusters[start : start + step]) for start in range(0, len(clusters), step)]


def _continues(cluster: str, char: str) -> bool:
    if char == _JOINER or cluster[-1] == _JOINER or _extends(char):
        return True
    if _is_flag_letter(char) and _is_flag_letter(cluster[0]):
        return sum(map(_is_flag_letter, cluster)) == 1
    return "\u1160" <= char <= "\u11ff" or cluster + char == "\r\n"


def _extends(char: str) -> bool:
    return (
        unicodedata.category(char) in {"Mn", "Me", "Mc"}
        or "\U0001f3fb" <= char <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= char <= "\U000e007f"  # tags of sub-national flags
    )


def _is_flag_letter(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"
