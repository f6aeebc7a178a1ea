"""The files that agents run are found from their specs."""

import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from wedgehog.harness.agents.programs import programs_of
from wedgehog.harness.agents.spec import load_spec


def found(folder: Path, **keys: Any) -> Mapping[str, str]:
    """The programs of a spec with these keys."""
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump({"name": "mine", "wire": "anthropic", **keys}))
    return programs_of([load_spec(path)])


def of(*files: Path) -> Mapping[str, str]:
    """These files, each with the hash of its text."""
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def written(file: Path, text: str = "print()\n", mode: int = 0o755) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)
    return file


def test_a_script_counts_and_its_interpreter_does_not(tmp_path: Path):
    """Of each command line; a program without a file has none."""
    agent, later = written(tmp_path / "agent.py"), written(tmp_path / "later.py")
    first, next_ = (["{python}", f"{{here}}/{name}.py", "{message}"] for name in ("agent", "later"))
    assert found(tmp_path, command=first, resume=next_) == of(agent, later)
    assert found(tmp_path, command=["{python}", "-c", "print()", "{message}"]) == {}


def test_a_command_that_is_a_link_counts_as_the_file_to_which_it_leads(tmp_path: Path):
    """Installers point it to the next version."""
    versions = [written(tmp_path / "versions" / number, f"#!/bin/sh\necho {number}\n") for number in ("1", "2")]
    command = tmp_path / "bin" / "mycli"
    command.parent.mkdir()
    for version in versions:
        command.unlink(missing_ok=True)
        command.symlink_to(version)
        assert found(tmp_path, command=["mycli", "{message}"], env={"PATH": "{here}/bin"}) == of(version)


def test_a_script_of_a_copied_folder_is_looked_up_in_the_folder(tmp_path: Path):
    """Each run has a copy of its own."""
    agent = written(tmp_path / "app" / "agent.py")
    assert found(tmp_path, workdir="app", command=["{python}", "agent.py", "{message}"]) == of(agent)


@pytest.mark.parametrize("own", [{"env": {"PYTHONPATH": "{here}/src"}}, {"inherit_env": ["PYTHONPATH"]}])
def test_a_module_is_found_on_the_python_path(own: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """That of the spec, or the one that it inherits."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["/nowhere", str(tmp_path / "src")]))
    written(tmp_path / "src" / "mypk" / "__init__.py", "")
    main = written(tmp_path / "src" / "mypk" / "__main__.py")
    assert found(tmp_path, command=["{python}", "-m", "mypk", "{message}"], **own) == of(main)


def test_the_file_of_a_callable_counts(tmp_path: Path):
    agent = written(tmp_path / "agent.py", "async def answer(message): return message\n")
    assert found(tmp_path, callable="{here}/agent.py:answer") == of(agent)
    assert found(tmp_path, callable="{here}/agent.py:answer", python=sys.executable) == of(agent)
