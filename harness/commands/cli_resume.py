"""`wedgehog run --resume RUN`: plays an interrupted campaign to its end; and options that exclude each other."""

import shlex
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from wedgehog.harness.campaign.options import Options
    from wedgehog.harness.campaign.plan import Resumed

BESIDE = {"resume", "jobs", "against", "cluster", "as_json", "verbose", "quiet"}
"""The parameters of `run` that may stand beside `--resume`; the folder has all others."""


def taken_up(context: typer.Context, folder: Path) -> "tuple[Resumed, Options]":
    """The campaign in `folder` and its options. Errors: BadFileError, PluginError, ValueError."""
    from wedgehog.harness.campaign.options import Options
    from wedgehog.harness.campaign.plan import read_plan, take_up
    from wedgehog.harness.run.plugins import load_plugins

    began = read_plan(folder.resolve())
    refuse_beside(context, "--resume", context.params.keys() - BESIDE, f"{folder} says what is played and how")
    folder = folder.resolve()
    began.check_plugins()
    load_plugins(tuple(began.plugins))
    resumed = take_up(folder)
    plan = resumed.plan
    again, network = shlex.join(["wedgehog", *sys.argv[1:]]), "auto" if plan.network == "sim" else plan.network
    options = Options(folder.parent, network, seed=plan.seed, command_line=again, plugins=tuple(plan.plugins))
    return resumed, replace(options, world=plan.world, turn_s=plan.turn_s)


def refuse_beside(context: typer.Context, option: str, names: Iterable[str], why: str) -> None:
    """ValueError if one of the parameters `names` was given on the command line beside `option`."""
    if given := [name for name in context.params if name in names and _is_given(context, name)]:
        wrong = ", ".join(_as_written(context, name) for name in given)
        raise ValueError(f"{option}: {why}; leave out {wrong}")


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _as_written(context: typer.Context, name: str) -> str:
    """A parameter as the help names it."""
    found = next(it for it in context.command.params if it.name == name)
    return max(found.opts, key=len) if found.param_type_name == "option" else str(found.name).upper()
