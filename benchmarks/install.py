"""What `pip install` of the project brings, and what its commands cost before they work.

>>> python -m benchmarks.install --into docs/benchmarks.md  # doctest: +SKIP
"""

import argparse
import datetime
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

from benchmarks.gauge import machine, write

ROUNDS = 7
SHOWN = 5
STARTS = {
    "python, nothing imported": ("-c", "pass"),
    "import wedgehog": ("-c", "import wedgehog"),
    "wedgehog --version": ("-m", "wedgehog", "--version"),
    "wedgehog run --help": ("-m", "wedgehog", "run", "--help"),
    "wedgehog run, nothing to play": ("-m", "wedgehog", "run", "--dry-run"),
}


def main() -> None:
    """Install, measure, print the tables, and write them into the document of `--into`."""
    told = argparse.ArgumentParser(description=__doc__)
    told.add_argument("--into", type=Path, help="a document with marks for the tables")
    into = told.parse_args().into
    with tempfile.TemporaryDirectory() as folder:
        python = installed(Path(folder))
        result = f"{heading()}\n\n{sizes(python)}\n\n{starts(python)}\n"
    print(result)
    if into:
        write(into, "install", result)


def installed(folder: Path) -> Path:
    """Install the base package, without any extra, in a new environment; return its Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "-c", "requirements.lock", "."], check=True)
    subprocess.run([python, "-m", "pip", "uninstall", "-q", "-y", "pip", "setuptools"], check=True)
    return python


def heading() -> str:
    """Say when and where it was measured."""
    today = datetime.datetime.now(datetime.UTC).date()
    return (
        f"Measured on {today}: {machine()}; Python {platform.python_version()}; starts are medians of {ROUNDS} rounds."
    )


def sizes(python: Path) -> str:
    """Return a table of the installed packages with the most megabytes, and of all."""
    (site,) = python.parents[1].glob("lib/python*/site-packages")
    measured = {path.name: megabytes(path) for path in site.iterdir()}
    largest = sorted(measured, key=lambda name: -measured[name])[:SHOWN]
    rows = [("all", sum(measured.values())), *((name, measured[name]) for name in largest)]
    return "\n".join(("| installed | MB |", "|---|---:|", *(f"| {name} | {size:.0f} |" for name, size in rows)))


def megabytes(path: Path) -> float:
    """Return the space that a file or a folder takes on the disk, with the bytecode that pip compiles."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_blocks * 512 for file in files if file.is_file()) / 1e6


def starts(python: Path) -> str:
    """Return a table of the processor time that each start takes."""
    taken = {name: [cpu_s(python, *words) for _ in range(ROUNDS + 1)][1:] for name, words in STARTS.items()}
    return "\n".join(("| start | ms of CPU |", "|---|---:|", *_rows(taken)))


def _rows(taken: dict[str, list[float]]) -> Iterator[str]:
    for name, seconds in taken.items():
        yield f"| {name} | {statistics.median(seconds) * 1000:.0f} |"


def cpu_s(python: Path, *words: str) -> float:
    """Return the processor time, user and system, of one process, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    subprocess.run([python, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main())
