"""The house: imports run downward, every package is shipped, and the project knows no machine but yours."""

import ast
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("fake_llm", "harness", "reports", "scenarios")

LEVELS = (
    ("harness.cli", "harness.cli_agents"),
    (
        "harness.agents_check",
        "harness.timers",
        "harness.campaign",
        "harness.cli_words",
        "harness.selection",
        "harness.stored",
        "harness.plugins",
        "harness.doctor",
        "harness.serve",
        "harness.story",
        "harness.reference",
        "harness.first_spec",
        "reports",
    ),
    (
        "harness.runner",
        "harness.run_tools",
        "harness.session_files",
        "harness.world",
        "harness.recorder",
        "harness.judge",
        "harness.control",
        "harness.play",
        "harness.turn",
        "harness.watchdog",
        "harness.cpu_wait",
        "harness.aim",
        "harness.progress",
    ),
    (
        "harness.nemesis",
        "harness.store",
        "harness.invariants",
        "harness.strategies",
        "harness.outcome",
        "harness.fate",
        "harness.forensics",
    ),
    ("harness.network", "harness.agents", "harness.tools", "harness.ledger", "harness.scenario"),
    ("harness.plan", "harness.spot", "harness.session_record"),
    ("harness.faults",),
    ("harness.history", "harness.verdict"),
    ("harness.event", "harness.clock"),
)
"""Each line imports the lines below it, and what stands beside it."""
LEAVES = ("harness.document", "harness.processes", "harness.ports", "harness.run_words", "harness.shim")
"""They import nothing of ours, and anybody may import them."""
VALUES = tuple(
    f"fake_llm.{name}"
    for name in ("conversation", "reply", "script", "observer", "position", "roles", "turns", "items", "usage")
)
"""The fake provider's plain values; its server is for those who run one."""
SERVERS = {"harness.runner", "harness.world", "harness.serve", "harness.cli"}
SCRIPTS = {"harness.story", "harness.reference"}
"""They know script files: one reads them, one describes them."""
SESSIONS = {f"fake_llm.{name}" for name in ("admin", "attempt", "balance", "sessions")}
"""What a fake provider has on its own, outside of a run; for those who serve one."""


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


def unit_of(module: str) -> str:
    """The unit on which the direction is defined: a module of the harness or a package in it, else the package."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "harness" and len(parts) > 1 else parts[0]


def imports(path: Path, *, at_once: bool = False) -> Iterator[str]:
    """What of ours a file imports, without the common prefix; functions' own imports too, unless `at_once`."""
    package = name_of(path).split(".") if path.name == "__init__.py" else name_of(path).split(".")[:-1]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body if at_once else ast.walk(tree):
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


def level_of(unit: str) -> int | None:
    """Its line, counted from the top."""
    return next((number for number, line in enumerate(LEVELS) if unit in line), None)


def allowed(importer: str, imported: str) -> bool:
    """Whether one unit may import a module."""
    unit = unit_of(imported)
    if unit == importer or unit in LEAVES:
        return True
    if unit in ("fake_llm", "scenarios"):
        return unit == "scenarios" or _may_see_the_fake(importer, imported)
    mine, other = level_of(importer), level_of(unit)
    return mine is not None and other is not None and mine <= other


def _may_see_the_fake(importer: str, imported: str) -> bool:
    if imported == "fake_llm.server":
        return importer in SERVERS
    if imported == "fake_llm.when":
        return importer in SCRIPTS
    if imported in SESSIONS:
        return importer in {"harness.serve", "harness.story"}
    return importer not in LEVELS[-1] and importer not in LEVELS[-2] and imported in VALUES


def test_every_module_has_a_place_in_the_house():
    """A new one must be put on a line."""
    units = {unit_of(name_of(path)) for path in sources()} - {"fake_llm", "scenarios", "harness"}
    assert {unit for unit in units if level_of(unit) is None and unit not in LEAVES} == set()
    assert {unit for line in LEVELS for unit in line} | set(LEAVES) == units, "a line names a module that is gone"


@pytest.mark.parametrize("path", sources(), ids=name_of)
def test_imports_run_downward_only(path: Path):
    """No module imports one on a higher line."""
    importer = unit_of(name_of(path))
    if importer in ("fake_llm", "scenarios", *LEAVES):
        ours = [name for name in imports(path) if unit_of(name) != importer]
        assert ours == [], f"{importer} imports nothing of ours"
    else:
        assert [name for name in imports(path) if not allowed(importer, name)] == []


def test_no_module_needs_itself_to_be_imported():
    """Modules on one line may know each other, in one direction."""
    needs = {name_of(path): set(imports(path, at_once=True)) for path in sources()}
    ready: set[str] = set()
    while fresh := {name for name, wanted in needs.items() if name not in ready and wanted & needs.keys() <= ready}:
        ready |= fresh
    assert needs.keys() - ready == set()


def test_the_direction_is_really_checked():
    """What must not be is seen."""
    assert not allowed("harness.event", "harness.history")
    assert not allowed("harness.network", "harness.nemesis")
    assert not allowed("harness.runner", "reports")
    assert not allowed("harness.runner", "harness.campaign")
    assert not allowed("harness.nemesis", "fake_llm.server")
    assert not allowed("harness.event", "fake_llm.reply")
    assert allowed("harness.campaign", "harness.runner") and allowed("harness.nemesis", "fake_llm.observer")
    found = set(imports(ROOT / "harness" / "world.py"))
    assert {"fake_llm.server", "harness.network.base", "harness.clock"} <= found


def test_every_package_is_shipped():
    """Each folder of modules is in pyproject.toml, and nothing in it is gone."""
    facts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    folders = {
        f"wedgehog.{'.'.join(path.parent.relative_to(ROOT).parts)}"
        for package in PACKAGES
        for path in (ROOT / package).rglob("__init__.py")
    }
    assert set(facts["packages"]) == folders
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
