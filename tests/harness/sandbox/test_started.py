"""What really runs is read from the command line and from the files that it names."""

import hashlib
import json
import os
import sys
from pathlib import Path

import pytest

from wedgehog.harness.sandbox.started import sha256, what_imports, what_runs


def script(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_a_script_is_the_entry_and_its_interpreter_the_executable(tmp_path: Path):
    """Options of the interpreter are skipped; the hash is that of the script."""
    script(tmp_path / "agent.py", "print()")
    for line in (["agent.py", "hi"], ["-u", "agent.py"], ["-X", "dev", "-W", "error", "agent.py", "-m", "x"]):
        started = what_runs([sys.executable, *line], tmp_path)
        assert started.entry == str(tmp_path / "agent.py")
        assert started.entry_hash == hashlib.sha256(b"print()").hexdigest()
        assert started.executable == str(Path(sys.executable).resolve())
        assert started.argv == (sys.executable, *line)


def test_a_value_of_an_interpreters_option_is_no_script(tmp_path: Path):
    """`bash -o pipefail run.sh`, and an interpreter under another name: a link to busybox or to a shim."""
    run = script(tmp_path / "run.sh")
    (tmp_path / "bash").symlink_to(script(tmp_path / "mise"))
    assert what_runs(["./bash", "-o", "pipefail", "run.sh"], tmp_path).entry == str(run)


def test_what_starts_another_program_is_not_the_agents_file(tmp_path: Path):
    """Two agents of one interpreter or launcher are not one agent: `python -c …`, `npx agent`."""
    script(tmp_path / "npm" / "npx-cli.js", "#!/usr/bin/env node")
    (tmp_path / "npx").symlink_to(tmp_path / "npm" / "npx-cli.js")
    script(tmp_path / "shim")
    (tmp_path / "node").symlink_to(tmp_path / "shim")
    for line in ([sys.executable, "-c", "print()"], ["./npx", "agent"], ["./node", "-e", "0"]):
        started = what_runs(line, tmp_path)
        assert started.executable.startswith("/") and (started.entry, started.entry_hash) == (None, None)


def test_a_module_is_found_without_being_run(tmp_path: Path):
    """In the working folder, or in the interpreter's packages, whose version is known."""
    package = script(tmp_path / "myagent" / "__init__.py", "raise SystemExit('imported')").parent
    script(package / "__main__.py", "raise SystemExit('run')")
    assert what_runs([sys.executable, "-m", "myagent"], tmp_path).entry == str(package / "__main__.py")
    started = what_runs([sys.executable, "-m", "pytest"], tmp_path)
    assert started.version == pytest.__version__
    assert started.entry and started.entry.endswith("pytest/__main__.py")


def test_an_npm_package_is_named_by_the_version_around_its_entry(tmp_path: Path):
    """Through the link in .bin; with and without a scope."""
    for name in ("plain", "@scope/agent"):
        package = tmp_path / "node_modules" / name
        script(package / "dist" / "cli.js", "#!/usr/bin/env node")
        (package / "package.json").write_text(json.dumps({"version": "1.2.3"}))
        (tmp_path / "cli").unlink(missing_ok=True)
        (tmp_path / "cli").symlink_to(package / "dist" / "cli.js")
        started = what_runs(["./cli", "hi"], tmp_path)
        assert (started.version, started.entry) == ("1.2.3", str(package / "dist" / "cli.js"))


def test_a_console_script_is_named_by_the_version_of_its_python_package(tmp_path: Path):
    """The package whose metadata lists the command."""
    script(tmp_path / "venv" / "bin" / "agent", "#!python")
    info = tmp_path / "venv" / "lib" / "python3.11" / "site-packages" / "my_agent-4.5.dist-info"
    script(info / "METADATA", "Name: my-agent\nVersion: 4.5\n")
    script(info / "entry_points.txt", "[console_scripts]\nagent = my_agent:main\n")
    assert what_runs(["agent"], tmp_path, {"PATH": str(tmp_path / "venv" / "bin")}).version == "4.5"


def test_an_interpreters_script_is_not_looked_up_among_the_commands_of_all_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """No package installs `python`; to read the commands of two hundred packages holds every message back."""
    script(tmp_path / "agent.py")
    monkeypatch.setattr("wedgehog.harness.sandbox.started.distributions", lambda **path: pytest.fail(f"read {path}"))
    assert what_runs([sys.executable, "agent.py"], tmp_path).version is None


def test_a_binary_is_its_own_entry_and_has_no_version_to_be_had_cheaply(tmp_path: Path):
    """Links are resolved."""
    script(tmp_path / "real", "binary")
    (tmp_path / "agent").symlink_to(tmp_path / "real")
    started = what_runs([str(tmp_path / "agent")], Path("/"))
    assert (started.executable, started.entry, started.version) == (
        str(tmp_path / "real"),
        str(tmp_path / "real"),
        None,
    )


def test_a_missing_program_is_named_as_it_was_written(tmp_path: Path):
    """The attempt to start it reports the error."""
    started = what_runs(["no-such-program", "x"], tmp_path)
    assert (started.executable, started.entry, started.entry_hash) == ("no-such-program", None, None)


def test_a_callables_file_is_found_without_importing_it(tmp_path: Path):
    """Beside the spec, in this Python, or by its path; a missing module has no file."""
    script(tmp_path / "pack" / "__init__.py", "raise SystemExit('imported')")
    script(tmp_path / "pack" / "inner.py", "raise SystemExit('imported')")
    inner = str(tmp_path / "pack" / "inner.py")
    assert what_imports("pack.inner:run", [str(tmp_path)]).entry == inner
    assert what_imports(f"{inner}:run", []).entry_hash == hashlib.sha256(Path(inner).read_bytes()).hexdigest()
    assert what_imports("pytest:main", []).version == pytest.__version__
    assert what_imports("nowhere.at.all:run", []).entry is None


def test_a_script_in_an_installed_package_has_that_packages_version(tmp_path: Path):
    """Also if no command of the package names it."""
    place = Path(pytest.__file__)
    started = what_runs([sys.executable, str(place)], tmp_path)
    assert (started.version, started.source) == (pytest.__version__, "")


def test_the_interpreter_is_told_with_its_version(tmp_path: Path):
    """By the configuration of its environment, which has all three numbers; else by its name."""
    script(tmp_path / "agent.py")
    python = script(tmp_path / "env" / "bin" / "python3.12")
    for config, said in (
        (None, "Python 3.12"),
        ("version = 3.12.4\n", "Python 3.12.4"),
        ("home = x\nversion_info = 3.12.5\n", "Python 3.12.5"),
    ):
        if config is not None:
            (tmp_path / "env" / "pyvenv.cfg").write_text(config)
        assert what_runs([str(python), "agent.py"], tmp_path).interpreter == said
    assert what_runs([str(script(tmp_path / "bin" / "node")), "agent.py"], tmp_path).interpreter == ""


def test_the_source_tree_around_a_script_is_told(tmp_path: Path):
    """The nearest project with a name and a version, and the commit that is checked out."""
    here = tmp_path / "tree"
    script(here / "src" / "deep" / "agent.py")
    script(here / "src" / "pyproject.toml", "[tool.ruff]\n")
    script(here / "pyproject.toml", '[project]\nname = "mine"\nversion = "1.2.0"\n')
    commit = "3f2a9c1d0b7e" + "0" * 28

    def source() -> str:
        return what_runs([sys.executable, str(here / "src" / "deep" / "agent.py")], tmp_path).source

    assert source() == "mine 1.2.0 (pyproject.toml)"
    script(here / ".git" / "HEAD", "ref: refs/heads/main\n")
    script(here / ".git" / "packed-refs", f"# pack-refs\n{commit} refs/heads/main\n")
    assert source() == "mine 1.2.0 (pyproject.toml), commit 3f2a9c1d0b7e (changes since are not looked for)"
    script(here / ".git" / "refs" / "heads" / "main", f"{'a' * 40}\n")
    assert "commit aaaaaaaaaaaa" in source()
    script(here / "src" / "package.json", '{"name": "web", "version": "2.0.1"}')
    assert source().startswith("web 2.0.1 (package.json), commit")


def test_a_work_tree_of_git_has_its_head_elsewhere(tmp_path: Path):
    commit = "b" * 40
    script(tmp_path / "tree" / "agent.py")
    script(tmp_path / "tree" / ".git", f"gitdir: {tmp_path}/main/.git/worktrees/tree\n")
    script(tmp_path / "main" / ".git" / "worktrees" / "tree" / "HEAD", "ref: refs/heads/topic\n")
    script(tmp_path / "main" / ".git" / "worktrees" / "tree" / "commondir", "../..\n")
    script(tmp_path / "main" / ".git" / "refs" / "heads" / "topic", f"{commit}\n")
    source = what_runs([sys.executable, str(tmp_path / "tree" / "agent.py")], tmp_path).source
    assert source == "commit bbbbbbbbbbbb (changes since are not looked for)"


def test_a_broken_repository_has_no_commit(tmp_path: Path):
    script(tmp_path / "agent.py")
    for head in ("", "ref: refs/heads/none\n", "not a commit"):
        script(tmp_path / ".git" / "HEAD", head)
        assert what_runs([sys.executable, str(tmp_path / "agent.py")], tmp_path).source == ""


def test_a_hash_is_that_of_the_file_as_it_is_now(tmp_path: Path):
    """Also in one process, of a file that was written again with as many bytes, or replaced with its old time."""
    file = script(tmp_path / "agent.py", "one")
    os.utime(file, ns=(1, 1))
    found = [sha256(file)]
    file.write_text("two")
    found.append(sha256(file))
    script(tmp_path / "new.py", "six").replace(file)
    os.utime(file, ns=(1, 1))
    found.append(sha256(file))
    file.unlink()
    assert [*found, sha256(file)] == [*(hashlib.sha256(it).hexdigest() for it in (b"one", b"two", b"six")), None]
