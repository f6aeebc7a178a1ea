"""`wedgehog check`: judge stored runs again."""

from typing import Annotated

import typer

from wedgehog.harness.commands.cli_gate import BaselineOption, gate_code, read_for_gate
from wedgehog.harness.commands.cli_run import Output, played_code, print_reports
from wedgehog.harness.commands.console import (
    LevelOption,
    PluginOption,
    RunArgument,
    err,
    user_mistakes,
)


def check(
    folder: RunArgument,
    plugin: PluginOption = None,
    level: LevelOption = None,
    against: BaselineOption = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print the sentence of every invariant.")] = False,
    parquet: Annotated[bool, typer.Option(help="Also write runs, calls and latency as Parquet.")] = False,
) -> None:
    """Judge stored runs again.

    The reports are written again too. The exit codes are those of `run`.
    """
    from wedgehog.harness.campaign.exit_code import UNCLEAR, exit_code
    from wedgehog.harness.campaign.stored import judge_all
    from wedgehog.harness.record.store import check_run_folder, run_folders
    from wedgehog.reports.facts import refresh_facts

    with user_mistakes():
        folder, known = folder.resolve(), read_for_gate(against)
        check_run_folder(folder)
        found = list(run_folders(folder))
        if not found:
            raise ValueError(f"{folder}: no finished run in this folder")
        judgements, unread = judge_all(found, level)
        if not judgements:
            raise ValueError("\n".join(unread))
        for line in unread:
            err.print(f"wedgehog: {line}", markup=False)
        for run in found:
            refresh_facts(run)
        campaign = next((it for it in (folder, *folder.parents) if (it / "campaign.json").is_file()), folder)
        lost = print_reports(campaign, Output(verbose=verbose), parquet=parquet).unfinished
    if known is not None:
        raise typer.Exit(gate_code(campaign, known))
    if folder == campaign:
        raise typer.Exit(played_code(judgements) or (UNCLEAR if unread or lost else 0))
    raise typer.Exit(exit_code(judgements) or (UNCLEAR if unread else 0))
