"""A sentence of the page: plain text, or parts with links among them."""

from collections.abc import Sequence

from wedgehog.reports.markup import Markup, tag

Sentence = str | Sequence[str | Markup]


def linked(words: str, address: str) -> str | Markup:
    """A link to what the page shows at this id; plain words without one."""
    return tag("a", words, href=f"#{address}") if address else words
