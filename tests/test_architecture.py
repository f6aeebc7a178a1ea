"""The house: imports run downward, every package is shipped, and the project knows no machine but yours."""

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import pytest

from wedgehog.harness.faults.base import registered

ROOT = Path(__file__).parents[1]
PACKAGES = ("fake_llm", "harness", "reports", "scenarios")

ROOMS = (
    "record",
    "faults",
    "scenario",
    "network",
    "sim",
    "stdio_proxy",
    "sandbox",
    "services",
    "agents",
    "inject",
    "invariants",
    "run",
    "campaign",
    "search",
    "testing",
    "commands",
    "face",
)
"""The rooms of `harness/`, in the order in which they build on each other: a room imports only rooms above it."""
VALUES = {
    f"fake_llm.{name}"
    for name in (
        "conversation",
        "edit_kinds",
        "reply",
        "observer",
        "usage",
        "script.calls_in_text",
        "script.items",
        "script.openings",
        "script.main_call",
        "script.position",
        "script.side_conversations",
        "script.conversations",
        "script.file_tools",
        "script.misformed_calls",
        "script.results_in_text",
        "script.roles",
        "script.schema_values",
        "script.turns",
    )
}
"""Plain values of the fake provider. Every room may import them, except `record`."""
SERVERS = {"run", "testing", "commands"}
"""Rooms that start the fake provider's server."""
REPORTS = {"data", "gate", "page"}
"""The folders of `reports/`."""
OF_FAULTS_ONLY = {name for name in registered() if "_" in name} - {"max_tokens"}
"""Names of faults that mean nothing else; `max_tokens` is a stop reason too, and `cut` the end of a reply."""
CLASSES = {kind.__name__ for kind in registered().values()}
FAULT_FILE = re.compile(r"harness\.faults\.(?:wire|reply|actor)\b")


@cache
def sources() -> list[Path]:
    """Our own modules."""
    return sorted(
        path
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if not {"incidents", "drivers"} & set(path.parts)  # programs of their own
    )


def name_of(path: Path) -> str:
    """`harness.network.base` of a file."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path, *, at_once: bool = False) -> Sequence[str]:
    """What of ours a file imports, without the common prefix; functions' own imports too, unless `at_once`."""
    return _read(path).at_once if at_once else _read(path).imports


class Seen(NamedTuple):
    """What the tests ask of a file."""

    imports: Sequence[str]
    at_once: Sequence[str]
    """Imports at its top level."""
    defined: Sequence[str]
    faults: Sequence[str]
    """The faults that it names."""


@cache
def _read(path: Path) -> Seen:
    """A file is parsed once for all tests."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes, module = list(ast.walk(tree)), name_of(path)
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    words = () if module.startswith("fake_llm.") else _words_of_faults(nodes)
    found = [*_imported(nodes, package)], [*_imported(tree.body, package)], [*_defined(tree)]
    return Seen(*found, [*_named_faults(nodes), *words])


def _imported(nodes: Sequence[ast.AST], package: Sequence[str]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(["wedgehog", *package[: len(package) - node.level + 1]]) if node.level else ""
            target = ".".join(part for part in (base, node.module or "") if part)
            found = [_deepest(target, alias.name) for alias in node.names]
        else:
            continue
        yield from (name.removeprefix("wedgehog.") for name in found if name.startswith("wedgehog."))


def _deepest(target: str, name: str) -> str:
    """The module that `from target import name` means: `name` may be a module itself."""
    place = ROOT.joinpath(*f"{target}.{name}".split(".")[1:])
    return f"{target}.{name}" if place.with_suffix(".py").is_file() or place.is_dir() else target


def room_of(module: str) -> str:
    """`network` of `harness.network.base`; `fake_llm`, `reports` and `scenarios` are rooms of their own."""
    parts = module.split(".")
    return parts[1] if parts[0] == "harness" and len(parts) > 1 else parts[0]


def allowed(importer: str, imported: str) -> bool:
    """Whether a module of ours may import another one."""
    mine, other = room_of(importer), room_of(imported)
    if mine == other == "reports":
        return _may_import_a_report(importer, imported)
    if mine == other or other == "scenarios":
        return True
    if other == "fake_llm":
        return _may_import_the_provider(mine, imported)
    if mine == "reports":
        # beside it, the reader of files written by hand, and the mistakes that it finds in them
        return other == "record" or imported in ("harness.scenario.document", "harness.scenario.mistake")
    if other == "reports":
        return mine in ("commands", "face")
    return mine in ROOMS and other in ROOMS and ROOMS.index(other) < ROOMS.index(mine)


def _may_import_a_report(importer: str, imported: str) -> bool:
    """The folders of `reports/` stand beside each other: each uses the modules above them, and its own."""
    ours, theirs = importer.split(".")[1:2], imported.split(".")[1:2]
    return not set(theirs) & REPORTS or ours == theirs or not ours


def _may_import_the_provider(room: str, imported: str) -> bool:
    if room in ("record", "reports"):
        return False
    return imported in VALUES or (room in SERVERS and imported.startswith("fake_llm."))


def test_the_harness_is_its_rooms():
    """Only the package's face lies flat in `harness/`, and every folder in it is a room."""
    assert [path.name for path in (ROOT / "harness").glob("*.py")] == ["__init__.py"]
    folders = {path.parent.name for path in (ROOT / "harness").glob("*/__init__.py")}
    assert folders == set(ROOMS)


def test_the_page_lists_the_rooms_in_their_order():
    """docs/architecture.md is what a new reader sees first."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## The rooms")[2]
    assert tuple(re.findall(r"^\| `(\w+)` \|", page, re.M)) == ROOMS


def test_the_page_names_files_that_exist():
    """A path on it is from the root, or from `harness/`."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    paths = re.findall(r"`([\w/]+\.py)`", page)
    found = [(ROOT / "harness" / path).is_file() or (ROOT / path).is_file() for path in paths if "/" in path]
    assert len(found) > 10 and all(found)


def test_a_room_imports_only_rooms_above_it():
    """`reports` imports only the record and the reader of YAML files; `fake_llm` imports nothing of ours."""
    found = [(name_of(path), name) for path in sources() for name in imports(path)]
    assert [(importer, imported) for importer, imported in found if not allowed(importer, imported)] == []


def _defined(tree: ast.Module) -> Iterator[str]:
    """Classes anywhere in a file, and aliases outside of functions: names with a capital that are no constants."""
    for node in _outside_functions(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names = (target.id for target in targets if isinstance(target, ast.Name))
        yield from (name for name in names if name[0].isupper() and not name.isupper())


def _outside_functions(node: ast.AST) -> Iterator[ast.stmt]:
    """Statements of a file and of its `if`, `try` and `with` blocks; of functions and classes only the classes."""
    for it in ast.iter_child_nodes(node):
        if isinstance(it, ast.stmt):
            inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            if not inside or isinstance(it, ast.ClassDef):
                yield it
        if isinstance(it, ast.stmt | ast.ExceptHandler):
            yield from _outside_functions(it)


def test_no_class_or_alias_has_the_name_of_another():
    """A reader who searches for a name finds one definition."""
    places: dict[str, list[str]] = {}
    for path in sources():
        for name in _read(path).defined:
            places.setdefault(name, []).append(name_of(path))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_module_needs_itself_to_be_imported():
    """Modules on one line may know each other, in one direction."""
    needs = {name_of(path): set(imports(path, at_once=True)) for path in sources()}
    ready: set[str] = set()
    while fresh := {name for name, wanted in needs.items() if name not in ready and wanted & needs.keys() <= ready}:
        ready |= fresh
    assert needs.keys() - ready == set()


def test_folders_beside_each_other_import_in_one_direction():
    """Such as the rooms of `harness/invariants`: of two of them one stands below the other."""
    found = {pair for path in sources() for name in imports(path) if (pair := _siblings(name_of(path), name))}
    assert len(found) > 20 and {pair for pair in found if pair[::-1] in found} == set()


def _siblings(importer: str, imported: str) -> tuple[str, str] | None:
    """The folders in which two modules part, with their path; None if one of them is no folder."""
    mine, other = importer.split("."), imported.split(".")
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(mine, other, strict=False)))
    found = ".".join(mine[: same + 1]), ".".join(other[: same + 1])
    folders = all((ROOT / name.replace(".", "/") / "__init__.py").is_file() for name in found)
    return found if same and folders and found[0] != found[1] else None


def test_the_direction_is_really_checked():
    """What must not be is seen."""
    assert not allowed("harness.record.events.base", "harness.faults.base")
    assert not allowed("harness.network.base", "harness.inject.injector")
    assert not allowed("harness.run.runner", "reports")
    assert not allowed("harness.run.runner", "harness.commands.cli")
    assert not allowed("harness.inject.injector", "fake_llm.server")
    assert not allowed("harness.record.events.base", "fake_llm.reply")
    assert not allowed("reports.rows", "harness.invariants")
    assert not allowed("reports.gate.compare", "reports.page.html") and not allowed("reports.rows", "reports.gate.gate")
    assert allowed("reports.gate.compare", "reports.rows") and allowed("reports", "reports.page.html")
    assert allowed("harness.commands.cli", "harness.run.runner") and allowed("harness.inject.arm", "fake_llm.observer")
    found = set(imports(ROOT / "harness" / "run" / "runner.py"))
    assert {"fake_llm.server", "harness.network.base", "harness.record.clock"} <= found


def _named_faults(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Concrete faults that a module imports, or tells apart by their registered name or family."""
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            paths = (f"{getattr(node, 'module', '')}.{alias.name}" for alias in node.names)
            yield from (f"import of {path}" for path in paths if FAULT_FILE.search(path))
        elif isinstance(node, ast.Attribute) and node.attr in CLASSES and ast.unparse(node) != "typer.Abort":
            yield f"{ast.unparse(node)} at line {node.lineno}"
        elif isinstance(node, ast.Compare | ast.Match | ast.Subscript | ast.Call):
            yield from (f"{word!r} at line {node.lineno}" for word in _told_apart(node))


def _told_apart(node: ast.Compare | ast.Match | ast.Subscript | ast.Call) -> Iterator[str]:
    """The words by which a comparison, a `match`, a table or a `getattr` tells one fault from another."""
    asked = (*ast.walk(node.subject), *_patterns(node)) if isinstance(node, ast.Match) else (*ast.walk(node),)
    words = {it.value for it in asked if isinstance(it, ast.Constant) and isinstance(it.value, str)}
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr"):
        yield from words if "fault" in ast.unparse(node.args[0]) else ()
    elif isinstance(node, ast.Subscript | ast.Call):
        owner = node.value if isinstance(node, ast.Subscript) else getattr(node.func, "value", None)
        by_name = isinstance(owner, ast.Dict) and any(_names_a_fault(it) for it in asked)
        if by_name or (owner is not None and ast.unparse(owner).endswith("registered()")):
            yield from words & registered().keys()
    elif any(_names_a_fault(it) for it in asked):
        yield from words & {*registered(), *CLASSES, "wire", "reply", "actor"}


def _patterns(node: ast.Match) -> Iterator[ast.AST]:
    return (it for case in node.cases for it in ast.walk(case.pattern))


def _words_of_faults(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Literals that only a fault can mean: a name that nothing else has, or several names of faults together."""
    played, faults = {id(it) for node in nodes if isinstance(node, ast.Dict) for it in _under_do(node)}, registered()
    for node in nodes:
        if isinstance(node, ast.Constant) and node.value in OF_FAULTS_ONLY and id(node) not in played:
            yield f"{node.value!r} at line {node.lineno}"
        if isinstance(node, ast.Set | ast.Tuple | ast.List) and len(node.elts) > 1:
            found = [it.value if isinstance(it, ast.Constant) else None for it in node.elts]
            if faults.keys() >= set(found):
                yield f"{found} at line {node.lineno}"


def _under_do(node: ast.Dict) -> Iterator[ast.AST]:
    """What a scenario in Python plays: `{"do": {"pings_only": 1}}`."""
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and key.value == "do":
            yield from ast.walk(value)


def _names_a_fault(node: ast.AST) -> bool:
    """`fault.name`, `fired.name`, `planned.fault.family`, `parse_fault(do).name`, `type(fault).__name__`."""
    if not isinstance(node, ast.Attribute) or node.attr not in ("name", "family", "__name__"):
        return False
    return node.attr == "name" or "fault" in ast.unparse(node.value)


def test_a_fault_says_everything_about_itself():
    """Outside of `faults/` no concrete fault is imported, told apart by its name, or named.

    The fake provider knows nothing of faults: its own edits have the same names.
    """
    others = [path for path in sources() if "faults" not in path.relative_to(ROOT).parts]
    assert {name_of(path): _read(path).faults for path in others if _read(path).faults} == {}


@pytest.mark.parametrize(
    "text",
    [
        "from wedgehog.harness.faults.wire.stall import Stall",
        "from wedgehog.harness.faults.actor.processes import Kill",
        "x = planned.fault.name in ('refuse', 'down')",
        "x = parse_fault(do).family == 'wire'",
        "x = [it for it in history.of(FaultFired) if it.name == 'stall']",
        "import wedgehog.harness.faults.wire.stall",
        "from wedgehog.harness.faults import wire",
        "x = isinstance(fault, wire.stall.Stall)",
        "x = isinstance(fault, registered()['stall'])",
        "x = registered().get('stall')",
        "x = type(fault).__name__ == 'Stall'",
        "x = {'stall': 1}[fault.name]",
        "x = {'stall': 1}.get(fault.name)",
        "x = getattr(fault, 'kb_per_s', None)",
        "match fault.name:\n    case 'stall':\n        pass",
    ],
)
def test_a_named_fault_is_really_seen(text: str):
    """By an import, and in a comparison."""
    assert list(_named_faults(list(ast.walk(ast.parse(text)))))


@pytest.mark.parametrize(
    "text", ["x = {'early_end', 'error_event'} & set(edited)", "x = how == 'pings_only'", "x = ('stall', 'drip')"]
)
def test_words_that_only_faults_have_are_really_seen(text: str):
    """Whatever they are compared with."""
    assert list(_words_of_faults(list(ast.walk(ast.parse(text)))))


@pytest.mark.parametrize("text", ["x = {'do': {'pings_only': 1}}", "x = how == 'cut'", "x = ('stall', 'fin', 'rst')"])
def test_what_a_scenario_plays_and_other_words_are_no_alarm(text: str):
    """A probe is a scenario in Python; `cut` is how a reply ended, `stall` how a pipe ends it."""
    assert not list(_words_of_faults(list(ast.walk(ast.parse(text)))))


def _assigned_from_outside(tree: ast.AST) -> Iterator[str]:
    """Assignments to an attribute of another object's part: `self.part.name = …`, `world.part.name = …`."""
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in (one for it in targets if it is not None for one in getattr(it, "elts", [it])):
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Attribute):
                yield f"{ast.unparse(target)} at line {target.lineno}"


def test_a_run_is_wired_by_constructors():
    """No part of a run gets an attribute from outside after it was made."""
    modules = [path for path in sources() if room_of(name_of(path)) == "run"]
    trees = {name_of(path): ast.parse(path.read_text(encoding="utf-8")) for path in modules}
    assert {name: found for name, tree in trees.items() if (found := list(_assigned_from_outside(tree)))} == {}


@pytest.mark.parametrize(
    "text", ["self.part.look = f", "world.llm.look = f", "self.a.x, self.y = 1, 2", "self.part.look: int = 1"]
)
def test_a_late_assignment_is_really_seen(text: str):
    """In each of its forms."""
    assert list(_assigned_from_outside(ast.parse(text)))


def test_every_package_is_shipped():
    """Each folder of modules is in pyproject.toml, and nothing in it is gone."""
    facts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    folders = {
        f"wedgehog.{'.'.join(path.parent.relative_to(ROOT).parts)}"
        for package in PACKAGES
        for path in (ROOT / package).rglob("__init__.py")
    }
    assert facts["package-dir"]["wedgehog"] == "harness/face"
    assert set(facts["packages"]) == folders - {"wedgehog.harness.face"} | {"wedgehog"}
    with_modules = {path.parent for path in sources()}
    assert {str(folder) for folder in with_modules if not (folder / "__init__.py").is_file()} == set()


def tracked() -> list[Path]:
    """The project's text files: what git knows and what is new."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode:
        pytest.skip("not in a git checkout")
    return [path for name in listing.stdout.splitlines() if (path := ROOT / name).is_file()]


def test_no_file_names_a_place_of_one_machine():
    """What is written here must hold everywhere."""
    words = [f"/{'work'}/", f"{'shared'}/design", f"{'shared'}/seeds", f"{'shared'}/prototypes", f"/tmp/{'wh'}"]
    found = []
    for path in tracked():
        text = path.read_bytes().decode("utf-8", "ignore")
        found += [f"{path.relative_to(ROOT)}: {word}" for word in words if word in text]
    assert found == []
