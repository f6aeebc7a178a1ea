"""Faults and invariants of a user's own: named on the command line, imported before anything is read."""

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from wedgehog.harness.faults import base as fault_registry
from wedgehog.harness.faults.base import parse_fault, registered
from wedgehog.harness.invariants import known
from wedgehog.harness.invariants import registry as invariant_registry
from wedgehog.harness.run.plugins import PluginError, hashed, load_plugins, plugin_words

FAULT = """
from dataclasses import dataclass
from wedgehog.harness.faults.reply_fault import ReplyFault
from wedgehog.harness.faults.base import fault

@fault("{name}", family="reply")
@dataclass(frozen=True, slots=True)
class Own(ReplyFault):
    \"\"\"Nothing much.\"\"\"
"""
INVARIANT = """
from wedgehog.harness.record.history import History
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.record.verdict import Verdict, passed

@invariant("{name}")
def own(history: History{more}) -> Verdict:
    \"\"\"Nothing much.\"\"\"
    return passed()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working folder; what plugins register, import and add to the path is forgotten after the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fault_registry, "_registry", dict(fault_registry._registry))
    monkeypatch.setattr(invariant_registry, "_REGISTRY", dict(invariant_registry._REGISTRY))
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_file_brings_a_fault_and_an_invariant(folder: Path):
    """From wherever it lies; what stands beside it can be imported."""
    (folder / "sub").mkdir()
    (folder / "sub" / "words_beside.py").write_text("NAME = 'own_fault'")
    own = FAULT.replace('"{name}"', "NAME") + INVARIANT.format(name="own_check", more="")
    (folder / "sub" / "own.py").write_text("from words_beside import NAME\n" + own)
    load_plugins(["sub/own.py"])
    assert parse_fault("own_fault").name == "own_fault" and "own_check" in known()


def test_a_module_is_found_from_the_working_folder(folder: Path):
    """A package of one's own project, and the modules that it imports by itself."""
    (folder / "mine").mkdir()
    (folder / "mine" / "__init__.py").write_text("")
    (folder / "mine" / "checks.py").write_text("from mine import faults")
    (folder / "mine" / "faults.py").write_text(FAULT.format(name="own_fault"))
    load_plugins(["mine.checks"])
    assert "own_fault" in registered()


def test_an_installed_module_comes_before_one_that_lies_here(folder: Path):
    """A `json.py` in the working folder must not become everybody's json."""
    (folder / "json.py").write_text("raise SystemExit('taken for json')")
    (folder / "own.py").write_text("import json; json.loads('1')\n" + FAULT.format(name="own_fault"))
    load_plugins(["own"])
    assert sys.path.index(str(folder)) == len(sys.path) - 1


def test_named_twice_is_loaded_once(folder: Path):
    """In one command, and in one process."""
    (folder / "own.py").write_text(FAULT.format(name="own_fault"))
    load_plugins(["own.py", "own.py"])
    load_plugins(["own.py"])
    assert "own_fault" in registered()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("gone.py", None, "plugin gone.py: no such file"),
        ("own.txt", "", "plugin own.txt: no such module, here or installed (a file ends in .py)"),
        ("./own.txt", "", "plugin ./own.txt: no Python file"),
        ("gone.checks", None, "plugin gone.checks: no such module, here or installed (a file ends in .py)"),
        ("own.py", "x = 1", "plugin own.py: it registers no fault and no invariant"),
        ("own.py", "\nx = = 1", "plugin own.py, line 2: SyntaxError: invalid syntax"),
        ("own.py", "\n\nimport nothing_like_it", "line 3: ModuleNotFoundError: No module named 'nothing_like_it'"),
        ("own", "\nimport nothing_like_it", "plugin own, line 2: ModuleNotFoundError: No module named"),
        ("own.py", "raise SystemExit('no')", "plugin own.py, line 1: SystemExit: no"),
        ("own.py", FAULT.format(name="cut"), "plugin own.py, line 6: FaultError: two faults are called cut"),
        ("own.py", INVARIANT.format(name="turn_deadline", more=""), "two invariants are called turn_deadline"),
        ("own.py", INVARIANT.format(name="faults", more=""), "no invariant may be called faults"),
        (
            "own.py",
            INVARIANT.format(name="x", more=", *, most: str = ''"),
            "parameter most: it needs a default, and int",
        ),
        ("own.py", INVARIANT.format(name="x", more=", *, most: int"), "parameter most: it needs a default, and int"),
        ("own.py", INVARIANT.format(name="x", more=", *, most=3"), "parameter most: it needs a default, and int"),
    ],
)
def test_what_is_wrong_with_a_plugin_is_one_line(folder: Path, name: str, text: str | None, said: str):
    """With the plugin's own line, where it came so far."""
    if text is not None:
        (folder / (name if "." in name else f"{name}.py")).write_text(text)
    with pytest.raises(PluginError) as wrong:
        load_plugins([name])
    assert said in str(wrong.value) and "\n" not in str(wrong.value)


def test_plugins_as_words_of_a_command():
    """For the command that replays a run."""
    assert plugin_words(["a.py", "b.c"]) == ["--plugin", "a.py", "--plugin", "b.c"]


def test_a_plugin_is_known_by_the_text_of_its_file_or_module(folder: Path):
    (folder / "own.py").write_text("a")
    (folder / "pack").mkdir()
    (folder / "pack" / "own.py").write_text("b")
    a, b = (hashlib.sha256(text).hexdigest() for text in (b"a", b"b"))
    assert hashed(["own.py", "own", "pack.own", "not_there"]) == {"own.py": a, "own": a, "pack.own": b, "not_there": ""}
