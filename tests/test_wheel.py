"""The wheel that users install: every package is inside, and the command works without the source tree."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PARTS = ("fake_llm", "harness", "reports", "scenarios")
BUILD = "import sys; from setuptools.build_meta import build_wheel; print(build_wheel(sys.argv[1]))"
COUNT = """
from importlib.resources import files
from wedgehog.harness.agents.known_runtimes import named
from wedgehog.harness.faults.base import registered
from wedgehog.harness.invariants import known
import wedgehog.harness.faults
assert "site-packages" in wedgehog.harness.__file__ and named("tunacode").name.startswith("tunacode")
print(len(registered()), len(known()), len(list(files("wedgehog.scenarios").joinpath("catalogue").iterdir())))
"""

pytest.importorskip("setuptools", reason="setuptools builds the wheel: pip install -r requirements.lock")


def _run(*words: str | Path, cwd: Path) -> str:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(list(map(str, words)), cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that no build folder is left in the source tree."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in PARTS:
        shutil.copytree(ROOT / name, folder / "source" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "source")
    said = _run(sys.executable, "-c", BUILD, folder, cwd=folder / "source")
    return folder / said.strip().splitlines()[-1]


@pytest.fixture(scope="module")
def python(wheel: Path) -> Path:
    """A new environment with the wheel; its dependencies are those of this one."""
    folder = wheel.parent / "env"
    venv.create(folder, with_pip=False)
    (site,) = folder.glob("lib/*/site-packages")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
    # The folder alone is added: the .pth files in it, with an editable install of this project, are not read.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin" / "python"


def test_every_file_of_the_packages_is_in_the_wheel(wheel: Path):
    """A package that pyproject.toml does not list is found here, and a YAML file that is no package data too."""
    packed = set(zipfile.ZipFile(wheel).namelist())
    found = (file for part in PARTS for file in (ROOT / part).rglob("*") if file.suffix in (".py", ".yaml", ".css"))
    names = {file.relative_to(ROOT).as_posix() for file in found if "__pycache__" not in file.parts}
    wanted = {"wedgehog/" + name.removeprefix("harness/face/") for name in names}
    assert wanted - packed == set()


def test_the_installed_command_finds_its_own_data(python: Path, tmp_path: Path):
    assert _run(python, "-m", "wedgehog", "--version", cwd=tmp_path).strip().endswith("0.1.0")
    assert "stall-once" in _run(python, "-m", "wedgehog", "scenarios", cwd=tmp_path)


def test_the_installed_registries_hold_what_the_source_holds(python: Path, tmp_path: Path):
    from wedgehog.harness.faults.base import registered
    from wedgehog.harness.invariants import known

    faults, invariants, scenarios = map(int, _run(python, "-c", COUNT, cwd=tmp_path).split())
    stock = len(list((ROOT / "scenarios" / "catalogue").glob("*.yaml")))
    assert (faults, invariants) == (len(registered()), len(known())) and scenarios == stock
