"""How to start `wedgehog-pipe` from a folder of a run, whatever the PATH is."""

import shlex
import sys
from pathlib import Path

ARGV = (sys.executable, "-E", "-P", "-c", "from wedgehog.harness.stdio_proxy.main import main; main()")
"""`wedgehog-pipe` under our own Python; the agent's PYTHON… variables and folders have no effect."""


def write_launcher(folder: Path) -> Path:
    """Write an executable `wedgehog-pipe` to `folder`."""
    launcher = folder / "wedgehog-pipe"
    launcher.write_text(f'#!/bin/sh\nexec {shlex.join(ARGV)} "$@"\n', encoding="utf-8")
    launcher.chmod(0o755)
    return launcher
