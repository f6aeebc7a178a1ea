"""Reads YAML text as nodes of plain data: of the unquoted words only true, false, null and numbers are not text.

libyaml reads a file nine times faster than PyYAML's own code. They read the same nodes from the same text, with these
exceptions: libyaml also reads what YAML 1.2 allows and PyYAML does not (a tab between two words, `?` inside a word in
brackets), and PyYAML's own code also reads `{a:{b: c}}`. A value that is missing at the end of a line stands in that
line or in the next one. Text that libyaml refuses is read again by PyYAML's own code, which has the better sentences
about mistakes.
"""

import re
from collections.abc import Iterable

import yaml
from yaml.composer import Composer


class PlainLoader(yaml.SafeLoader):
    """YAML 1.2's few unquoted words that are not text: no `on`, no dates, no base 60, no leading-zero octal."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}


def _add(kind: str, pattern: str, starts: Iterable[str]) -> None:
    PlainLoader.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", re.compile(pattern), list(starts))


_NUMBER_STARTS = "-+0123456789"
_add("bool", r"^(true|True|TRUE|false|False|FALSE)$", "tTfF")
_add("null", r"^(~|null|Null|NULL|)$", ["~", "n", "N", ""])
_add("int", r"^[-+]?[0-9]+$|^0x[0-9a-fA-F]+$", _NUMBER_STARTS)
_add(
    "float",
    r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$|^[-+]?\.(inf|Inf|INF)$|^\.(nan|NaN|NAN)$",
    f"{_NUMBER_STARTS}.",
)

if yaml.__with_libyaml__:

    class LibyamlLoader(Composer, yaml.CSafeLoader):
        """Reads with libyaml, and makes nodes with PyYAML: libyaml's own way crashes on deeply nested text."""

        yaml_implicit_resolvers = PlainLoader.yaml_implicit_resolvers

        def __init__(self, stream: str) -> None:
            yaml.CSafeLoader.__init__(self, stream)
            Composer.__init__(self)

    LOADERS: tuple[type[PlainLoader | LibyamlLoader], ...] = (LibyamlLoader, PlainLoader)
else:
    LOADERS = (PlainLoader,)


def compose(text: str) -> yaml.Node | None:
    """Return the root of the only document in `text`; None: there is none. Errors: yaml.YAMLError, RecursionError."""
    *fast, last = LOADERS
    for loader in fast:
        try:
            return yaml.compose(text, Loader=loader)
        except yaml.YAMLError:
            continue
    return yaml.compose(text, Loader=last)
