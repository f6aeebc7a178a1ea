"""`wedgehog run --resume RUN`: an interrupted campaign is played to its end, as it was begun."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from wedgehog.harness.run.campaign import Options
    from wedgehog.harness.run.plan import Resumed

BESIDE = {"resume", "jobs", "against", "as_json", "verbose"}
"""The parameters of `run` that may stand beside `--resume`; the folder has all others."""


def taken_up(context: typer.Context, folder: Path, jobs: int) -> "tuple[Resumed, Options]":
    """The campaign in `folder` and its options. Errors: BadFileError, PluginError, ValueError."""
    from wedgehog.harness.run.campaign import Options
    from wedgehog.harness.run.plan import read_plan, take_up
    from wedgehog.harness.run.plugins import load_plugins

    if given := [name for name in context.params if name not in BESIDE and _is_given(context, name)]:
        wrong = ", ".join(_as_written(context, name) for name in given)
        raise ValueError(f"--resume: {folder} says what is played and how; leave out {wrong}")
    folder = folder.resolve()
    load_plugins(read_plan(folder).plugins)
    resumed = take_up(folder)
    plan = resumed.plan
    again, network = shlex.join(["wedgehog", *sys.argv[1:]]), "auto" if plan.network == "sim" else plan.network
    options = Options(folder.parent, network, jobs, plan.seed, again, plan.plugins, plan.world, plan.turn_s)
    return resumed, options


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _as_written(context: typer.Context, name: str) -> str:
    """A parameter as the help names it."""
    found = next(it for it in context.command.params if it.name == name)
    return max(found.opts, key=len) if found.param_type_name == "option" else str(found.name).upper()
