"""Which subagents an agent has: their names stand in lists that only the model reads."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_HEADING = re.compile(
    r"^(?!</).*(?:(?<![a-z])(?:available|following)(?![a-z]).*?(?:agents?|coworkers)\b|agents? (?:are|is) available)",
    re.IGNORECASE,
)
_ITEM = re.compile(r"\s*(?:[-*•]|\d+[.)])\s*[`'\"*]*([A-Za-z][\w./-]*)[`'\"*]*\s*(?::|->|→|—|\u2013|\(|$)")
_TAG = re.compile(r"\s*<name>\s*([^<]+?)\s*</name>")
_IN_LINE = re.compile(r"\bfollowing (?:agents|coworkers): *(.+)", re.IGNORECASE)
_CHOICE = re.compile(r"^(?:sub_?)?agent(?:_?(?:type|name|id|kind))?$|^coworker$", re.IGNORECASE)


def chooses(parameter: str, schema: Any) -> bool:
    """Whether a parameter says by name which subagent is meant, and its schema does not list the names."""
    listed = not isinstance(schema, Mapping) or {"enum", "const", "default"} & schema.keys()
    return _CHOICE.search(parameter) is not None and not listed


def named_in(*texts: str) -> str:
    """The subagent to call: the general one, or else the first one that the texts list; empty if they list none.

    >>> named_in("Available agent types:\\n- explore: Searches.\\n- general: Does the rest.")
    'general'
    """
    names = [name for text in texts for name in _listed(text)]
    return next((name for name in names if "general" in name.lower()), names[0] if names else "")


def _listed(text: str) -> Iterator[str]:
    """The names under each heading that announces subagents: its list ends at the next paragraph that is none."""
    inside = False
    for line in text.splitlines():
        if _HEADING.search(line):
            inside = True
            if found := _IN_LINE.search(line):
                yield from (name.strip(" .`'\"") for name in found[1].split(","))
        elif inside and (item := _ITEM.match(line) or _TAG.match(line)):
            yield item[1]
        elif line.startswith("</") or (line.strip() and not line.startswith((" ", "\t", "<"))):
            inside = False
