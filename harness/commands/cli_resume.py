"""`wedgehog run --resume RUN`: plays an interrupted campaign to its end, with the options that it began with."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from wedgehog.harness.commands.given_options import refuse_beside

if TYPE_CHECKING:
    from wedgehog.harness.run.campaign_options import Options
    from wedgehog.harness.run.plan import Resumed

BESIDE = {"resume", "jobs", "against", "cluster", "as_json", "verbose", "quiet"}
"""The parameters of `run` that may stand beside `--resume`; the folder has all others."""


def taken_up(context: typer.Context, folder: Path, jobs: int) -> "tuple[Resumed, Options]":
    """The campaign in `folder` and its options. Errors: BadFileError, PluginError, ValueError."""
    from wedgehog.harness.run.campaign_options import Options
    from wedgehog.harness.run.plan import read_plan, take_up
    from wedgehog.harness.run.plugins import load_plugins

    refuse_beside(context, "--resume", context.params.keys() - BESIDE, f"{folder} says what is played and how")
    folder = folder.resolve()
    load_plugins(read_plan(folder).plugins)
    resumed = take_up(folder)
    plan = resumed.plan
    again, network = shlex.join(["wedgehog", *sys.argv[1:]]), "auto" if plan.network == "sim" else plan.network
    options = Options(folder.parent, network, jobs, plan.seed, again, plan.plugins, plan.world, plan.turn_s)
    return resumed, options
