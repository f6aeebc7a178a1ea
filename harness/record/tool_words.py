"""Lines by which an agent says that tools are missing, to its user or to its model."""

import re
from collections.abc import Iterator
from typing import Final

_WHAT: Final = re.compile(r"tool|server|mcp|connect|transport|plugin|extension|integration|https?:", re.IGNORECASE)
_FAILS: Final = re.compile(
    r"fail|\berr\b|error|warn|issue|problem|unavail|unreach|unable|could ?n[o']t|can ?n?[o']t|did not|missing|refus"
    r"|denied|unauthori|\b401\b|not (?:be |been )?(?:avail|reach|connect|found|load|start)|timed? ?out|disconnect"
    r"|offline|\bdown\b|closed|lost|skipp|disabl|without|no longer|dead|crash",
    re.IGNORECASE,
)
"""The words are wide on purpose: an agent that says one of them is not blamed."""


def lines_of_missing_tools(text: str) -> Iterator[str]:
    """Yield the lines that say that a tool, a server or a connection fails; one of another language may say it too."""
    for line in text.splitlines():
        if not line.isascii() or (_WHAT.search(line) and _FAILS.search(line)):
            yield line
