"""Writes docs/schema/ and the generated blocks of docs/*.md: `python -m wedgehog.harness.commands.reference docs`."""

import importlib
import inspect
import json
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING
from itertools import starmap
from pathlib import Path
from typing import Any, Literal, cast

from wedgehog.fake_llm.script.script_file import ScriptFile
from wedgehog.harness import faults as _every_fault  # noqa: F401  importing it registers them
from wedgehog.harness import invariants as rooms
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.agents.templates import NAMES
from wedgehog.harness.faults.base import Family, Fault, parameters, registered
from wedgehog.harness.faults.parameters import Parameter, Schema, takes
from wedgehog.harness.invariants import Invariant, known
from wedgehog.harness.record.error_words import STOCK_PATTERNS
from wedgehog.harness.scenario.fault_config import ANY_PIPE, LINKS, FaultConfig
from wedgehog.harness.scenario.model import Scenario

FileKind = Literal["scenario", "agent", "script"]

_BLOCK = re.compile(r"(<!-- generated: ([\w-]+) -->\n).*?(<!-- /generated -->)", re.DOTALL)


# ---- JSON Schemas


def schema(kind: FileKind) -> Schema:
    """Return the JSON Schema (2020-12) of a file format; the loader alone checks relations between keys."""
    title, make = _FORMATS[kind]
    made = cast(Schema, _without_titles(make()))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title} | made


def _scenario() -> Schema:
    made = Scenario.model_json_schema()
    _with_faults(made["$defs"]["FaultConfig"])
    made["$defs"]["FailConfig"]["properties"]["fail"]["items"] = {"enum": list(known())}
    made["properties"]["invariants"] |= _closed({name: _invariant_schema(found) for name, found in known().items()})
    return made


def _script() -> Schema:
    """Add the fault keys of a scenario to a line of a script."""
    made = ScriptFile.model_json_schema()
    words = FaultConfig.model_json_schema()
    made["$defs"] |= words.pop("$defs")
    made["$defs"]["FaultConfig"] = words
    _with_faults(words)
    line = made["$defs"]["ReplyLine"]["properties"]
    line["fault"] = {"anyOf": [{"$ref": "#/$defs/FaultConfig"}, {"type": "null"}], "default": None}
    return made


_FORMATS: Mapping[FileKind, tuple[str, Callable[[], Schema]]] = {
    "scenario": ("Wedgehog scenario", _scenario),
    "agent": ("Wedgehog agent spec", AgentSpec.model_json_schema),
    "script": ("Wedgehog script", _script),
}


def _with_faults(words: Schema) -> None:
    words["properties"]["do"] = {"anyOf": [form for cls in registered().values() for form in _fault_forms(cls)]}
    words["properties"]["link"] |= {"anyOf": [{"enum": list(LINKS)}, {"pattern": f"^{ANY_PIPE}$"}]}


def _fault_forms(cls: type[Fault]) -> Iterator[Schema]:
    """Yield the forms that a fault allows: `abort`, `{stall: forever}`, `{stall: {for_s: 3}}`."""
    fits = {name: it.schema for name, it in parameters(cls).items()}
    required = [name for name, it in parameters(cls).items() if it.default is MISSING]
    if not required:
        yield {"const": cls.name, "description": _flat(cls)}
    values = [_closed(fits, required)]
    if fits and set(required) <= {next(iter(fits))}:
        values.append(next(iter(fits.values())))
    yield _closed({cls.name: {"anyOf": values}}, [cls.name]) | {"description": _flat(cls)}


def _invariant_schema(found: Invariant) -> Schema:
    bounds = _closed({name: it.schema for name, it in found.parameters.items()})
    off = {"type": "string", "pattern": "^off(:|$)"}
    return {"description": found.doc, "anyOf": [bounds, off, {"type": "null"}]}


def _closed(properties: Schema, required: Sequence[str] = ()) -> Schema:
    """Return the schema of an object with exactly these keys."""
    made: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return made | {"required": list(required)} if required else made


def _without_titles(made: Any) -> Any:
    """Remove pydantic's titles, which repeat the keys."""
    if isinstance(made, list):
        return [_without_titles(part) for part in made]
    if not isinstance(made, dict):
        return made
    return {key: _without_titles(part) for key, part in made.items() if key != "title" or not isinstance(part, str)}


# ---- tables


def blocks() -> dict[str, str]:
    """Return every generated block by name, as Markdown."""
    families: tuple[Family, ...] = ("wire", "reply", "actor")
    return {
        **{f"faults-{family}": _fault_table(family) for family in families},
        "invariants": _invariant_tables(),
        "invariant-details": _invariant_details(),
        "templates": table(("template", "stands for"), [(f"`{{{name}}}`", says) for name, says in NAMES.items()]),
        "error-patterns": "\n".join(f"- `{pattern}`" for pattern in STOCK_PATTERNS),
    }


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _fault_table(family: Family) -> str:
    head = ("`do:`", "parameters", "what happens")
    return table(head, [(f"`{name}`", _fault_parameters(cls), _flat(cls)) for name, cls in registered(family).items()])


def _fault_parameters(cls: type[Fault]) -> str:
    """List the parameters; the main one, which needs no name, is first and bold."""
    cells = [f"`{name}`: {takes(it.schema)}{_default(it.default)}" for name, it in parameters(cls).items()]
    main, _, rest = "<br>".join(cells).partition(":")
    return f"**{main}**:{rest}" if cells else "none"


def _default(default: object) -> str:
    if default is MISSING:
        return ""
    return " (optional)" if default is None else f" = `{_yaml(default)}`"


def _invariant_tables() -> str:
    """Return a table for each room of `harness/invariants`, below what the room says of itself."""
    head = ("invariant", "what must hold", "parameters", "judged")
    found = []
    for room in (it.name for it in pkgutil.iter_modules(rooms.__path__) if it.ispkg):
        title = inspect.getdoc(importlib.import_module(f"{rooms.__name__}.{room}")) or ""
        rows = [_invariant_row(name, it) for name, it in known().items() if it.room == room]
        found.append(f"## {title.rstrip('.')}\n\n{table(head, rows)}")
    return "\n\n".join(found)


def _invariant_row(name: str, found: Invariant) -> Sequence[str]:
    bounds = "<br>".join(starmap(_bound, found.parameters.items()))
    return f"[`{name}`](#{name})", found.doc, bounds or "none", _judged(found)


def _invariant_details() -> str:
    return "\n\n".join(f"### `{name}`\n\n{_paragraphs(it.run)}" for name, it in known().items())


def _paragraphs(documented: object) -> str:
    """Return a docstring with each paragraph on one line."""
    return "\n\n".join(" ".join(it.split()) for it in (inspect.getdoc(documented) or "").split("\n\n"))


def _bound(name: str, parameter: Parameter) -> str:
    stock = "no stock bound" if parameter.default is None else f"`{_yaml(parameter.default)}`"
    real = ", real seconds" if parameter.seconds and not parameter.scaled else ""
    return f"`{name}`: {stock}{real}"


def _judged(found: Invariant) -> str:
    if found.asked:
        return "where a scenario names it"
    if found.level == "strict":
        return "at [level](verdicts.md#levels) `strict`"
    return "where a bound is given; else reported" if found.reported_only else "always"


def _flat(documented: object) -> str:
    """Return a docstring as one line."""
    return " ".join((inspect.getdoc(documented) or "").split())


def _yaml(value: object) -> str:
    """Return a default in the syntax of a YAML file."""
    return f"{value:g}" if isinstance(value, float) else json.dumps(value).strip('"')


# ---- files


def rendered(folder: Path) -> dict[Path, str]:
    """Return the expected content of each generated file below `folder`. Errors: ValueError for an unknown block."""
    found = {folder / "schema" / f"{kind}.schema.json": json.dumps(schema(kind), indent=2) + "\n" for kind in _FORMATS}
    fresh = blocks()
    for page in sorted(folder.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if "<!-- generated:" in text:
            found[page] = _refilled(text, fresh, page)
    return found


def _refilled(text: str, fresh: Mapping[str, str], page: Path) -> str:
    def fill(block: re.Match[str]) -> str:
        start, name, end = block.groups()
        if name not in fresh:
            raise ValueError(f"{page}: unknown generated block {name!r}; expected one of {', '.join(fresh)}")
        return f"{start}{fresh[name]}\n{end}"

    return _BLOCK.sub(fill, text)


def main(folder: str = "docs") -> None:
    """Write all generated files below `folder`."""
    for path, text in rendered(Path(folder)).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
