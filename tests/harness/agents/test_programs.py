"""The files that agents run are found from their specs."""

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from wedgehog.harness.agents.programs import edited_programs, programs_of
from wedgehog.harness.agents.spec import AgentSpec, load_spec
from wedgehog.harness.record.events.run import AgentStarted


def spec_of(folder: Path, **keys: Any) -> AgentSpec:
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump({"name": "mine", "wire": "anthropic", **keys}))
    return load_spec(path)


def found(folder: Path, **keys: Any) -> Mapping[str, str]:
    """The programs of a spec with these keys."""
    return programs_of([spec_of(folder, **keys)])


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def of(*files: Path) -> Mapping[str, str]:
    """These files, each with the hash of its text."""
    return {str(file): digest(file.read_text()) for file in files}


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


def recorded(folder: Path, *programs: tuple[Path, str]) -> Path:
    """The history of a run with these programs, each with its text."""
    history = folder / "history.jsonl"
    starts = (AgentStarted(argv=(), executable="", entry=str(file), entry_hash=digest(text)) for file, text in programs)
    history.write_text("".join(f"{json.dumps(it.as_json())}\n" for it in starts))
    return history


def test_a_program_that_ran_with_another_text_is_named_and_an_unchanged_one_is_not(tmp_path: Path):
    """Whatever its file holds now: the edit may have been taken back."""
    agent = written(tmp_path / "agent.py")
    spec = spec_of(tmp_path, command=["{python}", "{here}/agent.py", "{message}"])
    planned = programs_of([spec])
    assert edited_programs(spec, recorded(tmp_path, (agent, "print()\n")), planned) == []
    assert edited_programs(spec, recorded(tmp_path, (agent, "edited"), (agent, "edited")), planned) == [str(agent)]


def test_a_link_that_leads_to_another_version_is_named(tmp_path: Path):
    """Its installer has updated it; a program that the spec does not show is not named."""
    versions = [written(tmp_path / "versions" / number, f"#!/bin/sh\necho {number}\n") for number in ("1", "2")]
    command = tmp_path / "mycli"
    command.symlink_to(versions[0])
    spec = spec_of(tmp_path, command=["{here}/mycli", "{message}"])
    planned = programs_of([spec])
    command.unlink()
    command.symlink_to(versions[1])
    ran = [(file, file.read_text()) for file in (versions[1], written(tmp_path / "other.py", "of another spec"))]
    assert edited_programs(spec, recorded(tmp_path, *ran), planned) == [str(versions[1])]


def test_a_runs_copy_is_named_by_its_file_and_what_a_run_makes_is_not_named(tmp_path: Path):
    """The folders of a run are gone when it has ended; `files:` may write another text in each run."""
    agent = written(tmp_path / "app" / "agent.py")
    spec = spec_of(tmp_path, workdir="app", command=["{python}", "agent.py", "{message}"])
    copy, made = Path("/gone/run/cwd/agent.py"), Path("/gone/run/home/run.sh")
    history = recorded(tmp_path, (copy, "edited"), (made, "of this run"))
    assert edited_programs(spec, history, programs_of([spec])) == [str(agent)]
    assert edited_programs(spec, tmp_path / "no history", programs_of([spec])) == []
