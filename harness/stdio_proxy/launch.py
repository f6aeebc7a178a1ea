"""How `wedgehog-pipe` is started from a folder of a run, whatever is on that process's PATH."""

import shlex
import sys
from pathlib import Path

ARGV = (sys.executable, "-E", "-P", "-c", "from wedgehog.harness.stdio_proxy.main import main; main()")
"""`wedgehog-pipe` by the Python that runs us; the agent's own PYTHON… variables and folders do not touch it."""


def write_launcher(folder: Path) -> Path:
    """An executable `wedgehog-pipe` in `folder`."""
    launcher = folder / "wedgehog-pipe"
    launcher.write_text(f'#!/bin/sh\nexec {shlex.join(ARGV)} "$@"\n', encoding="utf-8")
    launcher.chmod(0o755)
    return launcher
