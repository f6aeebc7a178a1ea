"""`python -m wedgehog` is the command `wedgehog`."""

from wedgehog.harness.commands.cli import app

app(prog_name="wedgehog")
