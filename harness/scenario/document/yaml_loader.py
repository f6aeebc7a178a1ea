"""YAML as plain data: no tag is executed, and the few words that mean more than themselves are YAML 1.2's."""

import re
from pathlib import Path
from typing import Any

import yaml

from wedgehog.harness.scenario.document.errors import BadFileError, DocumentPath

MOST_VALUES = 100_000
"""More than any file a person writes; a file of nested aliases can stand for billions."""


class PlainLoader(yaml.SafeLoader):
    """YAML 1.2's few unquoted words that are not text: no `on`, no dates, no base 60, no octal by a leading zero."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  PyYAML's own shape


_NUMBER_STARTS = list("-+0123456789")
PlainLoader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
PlainLoader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^(~|null|Null|NULL|)$"), ["~", "n", "N", ""])
PlainLoader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"^[-+]?[0-9]+$|^0x[0-9a-fA-F]+$"), _NUMBER_STARTS
)
PlainLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$|^[-+]?\.(inf|Inf|INF)$|^\.(nan|NaN|NAN)$"),
    [*_NUMBER_STARTS, "."],
)

_SCALARS = {
    "tag:yaml.org,2002:str": str,
    "tag:yaml.org,2002:null": lambda text: None,
    "tag:yaml.org,2002:bool": lambda text: text.lower() == "true",
    "tag:yaml.org,2002:int": lambda text: int(text, 16 if "x" in text else 10),
    "tag:yaml.org,2002:float": lambda text: float(re.sub(r"\.(inf|nan)$", r"\1", text, flags=re.IGNORECASE)),
}


class LineReader:
    """Turns YAML nodes into plain data, and notes on the way where each of them stood."""

    def __init__(self, path: Path) -> None:
        """`path` is named in what is wrong; `lines` fills as `value` reads."""
        self._path = path
        self.lines: dict[DocumentPath, int] = {}
        self._open: list[yaml.Node] = []

    def value(self, node: yaml.Node, place: DocumentPath) -> Any:
        """The data of a node that stands at `place`. Errors: BadFileError."""
        self.lines.setdefault(place, node.start_mark.line + 1)
        if len(self.lines) > MOST_VALUES or node in self._open:
            raise self._bad(node, "holds itself, or more values than any file needs")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if node.tag not in ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"):
            raise self._bad(node, f"the tag {node.tag} is not read, only plain data is")
        self._open.append(node)
        data = self._mapping(node, place) if isinstance(node, yaml.MappingNode) else self._sequence(node, place)
        self._open.pop()
        return data

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        if node.tag not in _SCALARS:
            raise self._bad(node, f"the tag {node.tag} is not read, only plain data is")
        try:
            return _SCALARS[node.tag](node.value)  # type: ignore[operator]
        except ValueError:
            raise self._bad(node, f"{node.value!r} is not a {node.tag.rsplit(':', 1)[1]}") from None

    def _sequence(self, node: yaml.Node, place: DocumentPath) -> list[Any]:
        return [self.value(entry, (*place, index)) for index, entry in enumerate(node.value)]

    def _mapping(self, node: yaml.MappingNode, place: DocumentPath) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key, entry in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._bad(key, "a key must be a plain word")
            if key.value in data:
                first = self.lines[(*place, key.value)]
                raise self._bad(key, f"the key {key.value!r} stands here a second time (first in line {first})")
            self.lines[(*place, key.value)] = key.start_mark.line + 1
            data[key.value] = self.value(entry, (*place, key.value))
        return data

    def _bad(self, node: yaml.Node, message: str) -> BadFileError:
        return BadFileError(self._path, node.start_mark.line + 1, message)
