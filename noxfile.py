"""What is run on this project, each in an environment of its own: `nox -s tests`, `nox -s chaos`, lint, types."""

import json
import os
import shutil
import sys
from pathlib import Path

import nox
from nox.command import CommandFailed

nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "types", "tests"]

# The sessions start several hundred Python processes. Each would compile all that it imports where no bytecode may be
# written, as in many container images.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# setuptools would install modules that an earlier build left here and that have moved since. (With -R nothing is built,
# and another nox may be building.)
if "-R" not in sys.argv:
    shutil.rmtree("build", ignore_errors=True)

LOCK = ("-c", "requirements.lock")
EARLIER_SDKS = {
    "openai-1": "openai==1.109.1",
    "anthropic-0": "anthropic==0.125.0",
    "google-genai-1": "google-genai==1.75.0",
}
NPM_SDKS = {
    "js-current": (
        "openai@7.57.0",
        "@anthropic-ai/sdk@1.12.0",
        "@google/genai@3.1.0",
        "ollama@0.6.4",
        "ai@7.0.173",
        "@ai-sdk/openai@4.0.118",
        "@ai-sdk/anthropic@4.0.105",
        "@ai-sdk/google@4.0.121",
    ),
    "js-earlier": (
        "openai@6.49.0",
        "@anthropic-ai/sdk@0.137.0",
        "@google/genai@2.32.0",
        "ai@6.0.326",
        "@ai-sdk/openai@3.0.141",
        "@ai-sdk/anthropic@3.0.138",
        "@ai-sdk/google@3.0.141",
    ),
}
RUNTIMES = ("cn", "openai-agents", "pi", "pydantic-ai", "tunacode")
ALL_RUNTIMES = tuple(
    # (Another setting of the same releases is no other runtime.)
    sorted(path.stem for path in Path("harness/agents/runtimes").glob("*.yaml") if "same_as:" not in path.read_text())
)
COMPILE = "import compileall as it, wedgehog; it.compile_dir(wedgehog.__path__[0], quiet=1, workers=0)"
REAL_TIME = ("tests/live/", "tests/parity/", "tests/harness/commands/", "tests/docs/", "tests/reports/test_page_in_")
"""Where the tests begin that start agents, browsers and servers, and measure them by a real clock."""
MOST_AGAIN = 10
LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")
PACKAGES = ("wedgehog.fake_llm", "wedgehog.harness", "wedgehog.reports")


@nox.session
def tests(session: nox.Session) -> None:
    """The test-suite, three processes for each core; arguments after `--` go to pytest."""
    session.install(*LOCK, ".[test]")
    # uv compiles nothing when it installs, and here it installs our package each time: all workers would compile it.
    session.run("python", "-c", COMPILE)
    # Half of the workers run every file; the others use the time in which these wait: see tests/spread.py.
    workers = str(3 * (os.cpu_count() or 1))
    # A file stays with one worker, because its tests may share a campaign. The order is that of tests/conftest.py.
    spread = ("-n", workers, "--dist", "loadfile", "--no-loadscope-reorder")
    LAST_FAILED.unlink(missing_ok=True)
    try:
        # The number of tests is known at the end: see tests/whole_files.py. So no percentage is shown.
        session.run("pytest", *spread, "-o", "console_output_style=classic", *session.posargs)
    except CommandFailed as stopped:
        failed = json.loads(LAST_FAILED.read_text()) if LAST_FAILED.is_file() else []
        # With arguments, or after another end than failed tests (1), some tests may not have run at all.
        if session.posargs or stopped.return_code != 1 or not 0 < len(failed) <= MOST_AGAIN:
            raise
        if not all(test.startswith(REAL_TIME) for test in failed):
            raise
        session.warn("once more, alone: the tests of real time that a busy machine may have failed")
        session.run("pytest", "--last-failed", "--verbose")


@nox.session
def sdk(session: nox.Session) -> None:
    """The provider's official SDKs, two generations, Python and JavaScript, against the fake one."""
    session.install(*LOCK, ".[test]")
    folder = session.cache_dir / "sdk"
    for name, requirement in EARLIER_SDKS.items():
        if not (folder / name).is_dir():
            session.install("--target", str(folder / name), requirement)
    for name, packages in NPM_SDKS.items() if shutil.which("npm") else ():
        # Forced, because the newest ones ask for a newer Node than they need.
        quiet = ("--force", "--no-audit", "--no-fund", "--loglevel=error")
        session.run("npm", "install", *quiet, "--prefix", str(folder / name), *packages, external=True)
    environment = {"WEDGEHOG_SDKS": str(folder), "WEDGEHOG_REQUIRE_SDKS": "1"}
    session.run("pytest", "-m", "sdk", "tests/sdk", *session.posargs, env=environment)


@nox.session
def fuzz(session: nox.Session) -> None:
    """100,000 requests for each dialect of the fake provider, valid and broken, and what came of them; `-- N` for N."""
    session.install(*LOCK, ".[test]")
    number, *more = session.posargs or ["100000"]
    session.run("pytest", "-v", "-rP", "tests/fuzz", *more, env={"WEDGEHOG_FUZZ": number})


@nox.session
def bench(session: nox.Session) -> None:
    """What `wedgehog serve`, pipes, an installation, large reports and the simulated world cost; kept in docs/."""
    session.install(*LOCK, ".")
    folder = session.cache_dir / "aimock"
    if shutil.which("npm"):
        quiet = ("--no-audit", "--no-fund", "--loglevel=error")
        session.run("npm", "install", *quiet, "--prefix", str(folder), "@copilotkit/aimock@1.43.0", external=True)
    into = session.posargs or ["--into", "docs/benchmarks.md"]
    session.run("python", "-m", "benchmarks.fake_llm", "--node-modules", str(folder / "node_modules"), *into)
    session.run("python", "-m", "benchmarks.pipe", *(() if session.posargs else ("--into", "docs/pipes.md")))
    session.run("python", "-m", "benchmarks.install", *into)
    session.install(*LOCK, ".[plots,parquet]")
    session.run("python", "-m", "benchmarks.fold", *(() if session.posargs else ("--into", "docs/reports.md")))
    session.install(*LOCK, ".[bench]")
    session.run("python", "-m", "benchmarks.sim", *(() if session.posargs else ("--into", "docs/virtual-time.md")))


@nox.session
def chaos(session: nox.Session) -> None:
    """The main job: break agents on purpose and judge them; arguments after `--` go to `wedgehog run`."""
    session.install(*LOCK, ".[hosts]")
    session.run("wedgehog", "run", *session.posargs)


@nox.session
def runtimes(session: nox.Session) -> None:
    """Real agents side by side: installs some and plays the catalogue's starters; `-- --all` for all, at night."""
    session.install(*LOCK, ".")
    everything = "--all" in session.posargs
    session.run("wedgehog", "agents", "install", *(ALL_RUNTIMES if everything else RUNTIMES))
    agents = (word for name in (ALL_RUNTIMES if everything else RUNTIMES) for word in ("--agent", name))
    session.run("wedgehog", "run", *agents, *session.posargs, success_codes=[0, 1, 3])


@nox.session
def lint(session: nox.Session) -> None:
    """Style is a test."""
    session.install(*LOCK, ".[lint]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def docs(session: nox.Session) -> None:
    """The site of the documentation, into site/; a link that leads nowhere fails."""
    session.install(*LOCK, ".[docs]")
    session.run("mkdocs", "build", "--strict", *session.posargs, env={"NO_MKDOCS_2_WARNING": "1"})


@nox.session
def types(session: nox.Session) -> None:
    """Every type, strictly, on the installed packages."""
    session.install(*LOCK, ".[types]")
    session.run("mypy", *(word for package in PACKAGES for word in ("-p", package)))
    for folder in sorted(Path("scenarios/incidents").iterdir()):
        # A specimen is a program of its own: its files import each other, and nothing of ours. (All are checked from
        # here, so that they share what mypy has read of the libraries.)
        session.run("mypy", *sorted(map(str, folder.glob("*.py"))))
