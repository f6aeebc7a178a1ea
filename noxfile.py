"""What is run on this project, each in an environment of its own: `nox -s tests`, `nox -s chaos`, lint, types."""

from pathlib import Path

import nox

nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "types", "tests"]

LOCK = ("-c", "requirements.lock")
PACKAGES = ("wedgehog.fake_llm", "wedgehog.harness", "wedgehog.reports")


@nox.session
def tests(session: nox.Session) -> None:
    """The test-suite; arguments after `--` go to pytest."""
    session.install(*LOCK, ".[test]")
    session.run("pytest", *session.posargs)


@nox.session
def chaos(session: nox.Session) -> None:
    """The main job: break agents on purpose and judge them; arguments after `--` go to `wedgehog run`."""
    session.install(*LOCK, ".")
    session.run("wedgehog", "run", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Style is a test."""
    session.install(*LOCK, ".[lint]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Every type, strictly, on the installed packages."""
    session.install(*LOCK, ".[types]")
    session.run("mypy", *(word for package in PACKAGES for word in ("-p", package)))
    config = Path("pyproject.toml").absolute()
    for folder in sorted(Path("scenarios/incidents").iterdir()):
        # A specimen is a program of its own: its files import each other, and nothing of ours.
        files = sorted(path.name for path in folder.glob("*.py"))
        with session.chdir(folder):
            session.run("mypy", "--config-file", str(config), *files)
