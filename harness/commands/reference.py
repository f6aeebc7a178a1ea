"""Generates documentation from the code: tables of faults and invariants, and JSON Schemas.

    python -m wedgehog.harness.commands.reference docs   # rewrites docs/schema/ and the generated blocks of docs/*.md

A generated block is in a Markdown file between `<!-- generated: NAME -->` and `<!-- /generated -->`; the rest of the
file is written by hand. A test fails when the committed files differ from what this module renders.
"""

import inspect
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from wedgehog.fake_llm.script.when import ScriptFile
from wedgehog.harness import faults as _every_fault  # noqa: F401  importing it registers them
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.agents.templates import NAMES
from wedgehog.harness.faults.base import Family, Fault, parameters, registered
from wedgehog.harness.faults.parameters import Default, Duration, Range, hints
from wedgehog.harness.invariants import Invariant, Parameter, known
from wedgehog.harness.record.turn_outcome import STOCK_PATTERNS
from wedgehog.harness.scenario.model import ANY_PIPE, LINKS, FaultConfig, Scenario

Schema = dict[str, Any]
FileKind = Literal["scenario", "agent", "script"]

_BLOCK = re.compile(r"(<!-- generated: ([\w-]+) -->\n).*?(<!-- /generated -->)", re.DOTALL)
_JSON_TYPES = {float: "number", int: "integer", bool: "boolean", str: "string", NoneType: "null"}


# ---- JSON Schemas


def schema(kind: FileKind) -> Schema:
    """Return the JSON Schema (2020-12) of a file format, for editors and other tools.

    It describes the keys and their values. Only the loader checks relations between keys, such as a trigger that names
    a turn that does not exist.
    """
    formats: Mapping[FileKind, tuple[str, Callable[[], Schema]]] = {
        "scenario": ("Wedgehog scenario", _scenario),
        "agent": ("Wedgehog agent spec", AgentSpec.model_json_schema),
        "script": ("Wedgehog script", _script),
    }
    title, make = formats[kind]
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


def _with_faults(words: Schema) -> None:
    words["properties"]["do"] = {"anyOf": [form for cls in registered().values() for form in _fault_forms(cls)]}
    words["properties"]["link"] |= {"anyOf": [{"enum": list(LINKS)}, {"pattern": f"^{ANY_PIPE}$"}]}


def _fault_forms(cls: type[Fault]) -> Iterator[Schema]:
    """Yield the forms that a fault allows: `abort`, `{stall: forever}`, `{stall: {for_s: 3}}`."""
    fits = {name: fitting(hint) for name, hint in hints(cls).items()}
    required = [row.name for row in parameters(cls) if row.default is Default.REQUIRED]
    if not required:
        yield {"const": cls.name, "description": _flat(cls)}
    values = [_closed(fits, required), *(() if required else ({"type": "null"},))]
    if fits and set(required) <= {next(iter(fits))}:
        values.append(next(iter(fits.values())))
    yield _closed({cls.name: {"anyOf": values}}, [cls.name]) | {"description": _flat(cls)}


def fitting(hint: object) -> Schema:
    """Return the schema of one parameter of a fault, from its annotation.

    >>> fitting(Annotated[int, Range(400, 599)])
    {'type': 'integer', 'minimum': 400, 'maximum': 599}
    """
    if get_origin(hint) in (Union, UnionType):
        return {"anyOf": [fitting(member) for member in get_args(hint)]}
    if get_origin(hint) is Literal:
        return {"enum": list(get_args(hint))}
    if get_origin(hint) is Annotated:
        bare, *extras = get_args(hint)
        return fitting(bare) | {key: value for extra in extras for key, value in _bounds(extra)}
    return {"type": _JSON_TYPES[cast(type, hint)]}


def _bounds(extra: object) -> Iterator[tuple[str, float | str]]:
    if isinstance(extra, Range):
        yield "minimum", extra.low
        if extra.high != math.inf:
            yield "maximum", extra.high
    if isinstance(extra, Duration):
        yield "description", "seconds"


def _invariant_schema(found: Invariant) -> Schema:
    takes = {name: _parameter_schema(parameter) for name, parameter in found.parameters.items()}
    off = {"type": "string", "pattern": "^off(:|$)"}
    return {"description": found.doc, "anyOf": [_closed(takes), off, {"type": "null"}]}


def _parameter_schema(parameter: Parameter) -> Schema:
    made: Schema = {"type": _JSON_TYPES[parameter.type]}
    return made if parameter.type is bool else made | {"minimum": 0}


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
        "invariants": _invariant_table(),
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
    fits = hints(cls)
    cells = []
    for place, row in enumerate(parameters(cls)):
        name = f"**`{row.name}`**" if place == 0 else f"`{row.name}`"
        cells.append(f"{name}: {words(fitting(fits[row.name]))}{_default(row.default)}")
    return "<br>".join(cells) or "none"


def _default(default: object) -> str:
    if default is Default.REQUIRED:
        return ""
    return " (optional)" if default is None else f" = `{_yaml(default)}`"


def words(fits: Schema) -> str:
    """Describe a schema in words.

    >>> words({"anyOf": [{"enum": ["forever"]}, {"type": "number", "minimum": 0, "description": "seconds"}]})
    '`forever` or seconds'
    """
    if "anyOf" in fits:
        return " or ".join(words(option) for option in fits["anyOf"] if option != {"type": "null"})
    if "enum" in fits:
        return " or ".join(f"`{choice}`" for choice in fits["enum"])
    noun = fits.get("description", {"integer": "whole number", "boolean": "true or false"}.get(fits["type"], "text"))
    if "maximum" in fits:
        return f"{noun}, {fits['minimum']:g} to {fits['maximum']:g}"
    return f"{noun}, {fits['minimum']:g} or more" if fits.get("minimum", 0) >= 1 else str(noun)


def _invariant_table() -> str:
    head = ("invariant", "what must hold", "parameters", "judged")
    rows = [
        (f"`{name}`", _flat(found.run), "<br>".join(map(_bound, found.parameters.values())) or "none", _judged(found))
        for name, found in known().items()
    ]
    return table(head, rows)


def _bound(parameter: Parameter) -> str:
    stock = "no stock bound" if parameter.default is None else f"`{_yaml(parameter.default)}`"
    real = ", real seconds" if parameter.in_seconds and not parameter.scaled else ""
    return f"`{parameter.name}`: {stock}{real}"


def _judged(found: Invariant) -> str:
    if found.asked:
        return "where a scenario names it"
    return "where a bound is given; else reported" if found.reported_only else "always"


def _flat(documented: object) -> str:
    """Return a docstring as one line."""
    return " ".join((inspect.getdoc(documented) or "").split())


def _yaml(value: object) -> str:
    """Return a default in the syntax of a YAML file."""
    return f"{value:g}" if isinstance(value, float) else json.dumps(value).strip('"')


# ---- files


def rendered(folder: Path) -> dict[Path, str]:
    """Return the expected content of each generated file below `folder`: the schemas, and pages with generated blocks.

    Raises:
        ValueError: a page names an unknown block.
    """
    kinds: tuple[FileKind, ...] = ("scenario", "agent", "script")
    found = {folder / "schema" / f"{kind}.schema.json": json.dumps(schema(kind), indent=2) + "\n" for kind in kinds}
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
