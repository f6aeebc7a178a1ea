"""Where an answer or error is read: `stdout`, `text` (http), `json:a[*].b`, `jsonl:b`, `joined:b`, `file:{cwd}/b`."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

from wedgehog.harness.scenario.mistake import BadValueError

Kind = Literal["stdout", "stderr", "text", "json", "jsonl", "joined", "file"]
PathStep = str | int | None
"""A key, a list index, or None for all entries of a list."""

_PATH = re.compile(r"(?:[^.\[\]]+|\[(?:\d+|\*)\])(?:\.[^.\[\]]+|\[(?:\d+|\*)\])*")
_STEP = re.compile(r"\[(\d+|\*)\]|([^.\[\]]+)")


@dataclass(frozen=True, slots=True)
class OutputSource:
    """A place in the output; `where` is a path of dotted keys with [i] or [*], or a file's name."""

    kind: Kind
    where: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the short form. Errors: BadValueError."""
        kind, colon, where = text.partition(":")
        if kind not in get_args(Kind) or bool(colon) != (kind in ("json", "jsonl", "joined", "file")):
            raise BadValueError(
                f"expected stdout, stderr, json:PATH, jsonl:PATH or file:PATH (for http: text), found {text!r}"
            )
        if kind in ("json", "jsonl", "joined") and not _PATH.fullmatch(where):
            raise BadValueError(
                f"expected a path of dotted keys with [0] or [*], like payloads[*].text, found {where!r}"
            )
        if kind == "file" and not where:
            raise BadValueError("expected a file's path after 'file:'")
        return cls(kind, where)  # type: ignore[arg-type]

    def within(self, text: str) -> str:
        """The text at this place in the output `text`; empty if there is none."""
        match self.kind:
            case "json" if (whole := _json(text)) is not None:
                return _said(_at(whole, steps(self.where)))
            case "json" | "jsonl":  # (a service can send events where it sends JSON for a refusal)
                found = (_said(_at(line, steps(self.where))) for line in _json_lines(text))
                return next((text for text in reversed(list(found)) if text), "")
            case "joined":
                return "".join(_said(_at(line, steps(self.where))) for line in _json_lines(text))
            case _:
                return text

    def number_within(self, text: str) -> float | None:
        """The sum of the numbers at this place of JSON output, of the last line that has some; None without one."""
        whole = _json(text) if self.kind == "json" else None
        documents = list(_json_lines(text)) if whole is None else [whole]
        found = [[it for it in _at(data, steps(self.where)) if _is_number(it)] for data in documents]
        return next((float(sum(numbers)) for numbers in reversed(found) if numbers), None)

    def last_line(self, lines: Sequence[str]) -> int | None:
        """Which of these lines completes the text at this place; None if there is none.

        Blank ones add nothing. Nor does a line that repeats a text of which the last one counts.
        """
        said = [(index, words) for index, words in enumerate(map(self._in_line, lines)) if words.strip()]
        while self.kind == "jsonl" and len(said) > 1 and said[-1][1] == said[-2][1]:
            said.pop()
        return said[-1][0] if said else None

    def _in_line(self, line: str) -> str:
        return self.within(line) if self.kind in ("jsonl", "joined") else line


def value_in(line: str, path: str) -> Any:
    """The first value at a path of a JSON line, as it stands there; None if there is none."""
    found = [value for data in _json_lines(line) for value in _at(data, steps(path))]
    return found[0] if found else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def steps(path: str) -> list[PathStep]:
    """`a.b[0][*]` as steps: "a", "b", 0, None (every entry)."""
    return [key or (None if index == "*" else int(index)) for index, key in _STEP.findall(path)]


def _at(data: Any, path: Sequence[PathStep]) -> list[Any]:
    """All values at `path`."""
    values = [data]
    for step in path:
        values = [inner for value in values for inner in _below(value, step)]
    return values


def _below(value: Any, step: PathStep) -> list[Any]:
    if step is None:
        return list(value) if isinstance(value, list) else []
    if isinstance(step, int):
        return [value[step]] if isinstance(value, list) and step < len(value) else []
    return [value[step]] if isinstance(value, dict) and step in value else []


def _said(values: Sequence[Any]) -> str:
    """The values as text, one per line; null, false, "" and empty lists are left out."""
    words = (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for value in values
        if value not in (None, False, "", [], {})
    )
    return "\n".join(words)


def _json(text: str) -> Any:
    """`text` as JSON; if a log precedes it, the JSON value that starts at a line start and ends with the text."""
    try:
        return json.loads(text)
    except ValueError:
        starts = [found.start() for found in re.finditer(r"^[{\[]", text, re.MULTILINE)]
        return next((value for start in starts for value in _json_from(text, start)), None)


def _json_from(text: str, start: int) -> Iterator[Any]:
    try:
        yield json.loads(text[start:])
    except ValueError:
        return


def has(line: str, fields: Mapping[str, Any]) -> bool:
    """Whether `line` is JSON with these values at these paths: `{type: result}`."""
    return any(all(value in _at(data, steps(path)) for path, value in fields.items()) for data in _json_from(line, 0))


def _json_lines(text: str) -> Iterator[Any]:
    """Each line that is JSON, also behind the `data:` of a server-sent event."""
    for line in text.split("\n"):  # not splitlines: U+2028 may stand inside a JSON string
        yield from _json_from(line.removeprefix("data:"), 0)
