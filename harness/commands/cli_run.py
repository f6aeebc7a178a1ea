"""`wedgehog run` and `wedgehog replay`: play and judge."""

import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from wedgehog.harness.commands.cli_gate import BaselineOption, gate_code, print_plan, read_for_gate
from wedgehog.harness.commands.cli_resume import refuse_beside, taken_up
from wedgehog.harness.commands.console import (
    INTERRUPTED,
    LevelOption,
    NetworkOption,
    OutOption,
    PluginOption,
    Stdout,
    WorldOption,
    err,
    open_progress,
    user_mistakes,
)
from wedgehog.harness.commands.stop_signals import run_until_stopped
from wedgehog.harness.commands.watch import watch

if TYPE_CHECKING:
    from wedgehog.harness.campaign.campaign import Campaign
    from wedgehog.harness.campaign.options import Options
    from wedgehog.harness.campaign.plan import Resumed
    from wedgehog.harness.campaign.selection import Entry, Wanted
    from wedgehog.harness.record.judgement import Judgement
    from wedgehog.reports.campaign_folder import StoredCampaign
    from wedgehog.reports.gate.baseline import Baseline


@dataclass(frozen=True)
class Output:
    """How much is printed, and as what."""

    as_json: bool = False
    verbose: bool = False
    quiet: bool = False


SELECTING = {"scenarios", "agent", "words", "everything", "repeat"}
"""The parameters of `run` that choose what is played."""


def run(
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(
            help="Scenario files, folders or stock names (default: with --agent the catalogue's starters, else the "
            "core of the incidents)."
        ),
    ] = None,
    agent: Annotated[
        list[str] | None,
        typer.Option(
            "--agent",
            "-a",
            metavar="SPEC",
            help="Agent spec (YAML) or known runtime; repeatable. Default: the incident's own.",
        ),
    ] = None,
    out: OutOption = Path("runs"),
    network: NetworkOption = "auto",
    world: WorldOption = "live",
    repeat: Annotated[int, typer.Option(min=1, help="Play everything N times, each time with another seed.")] = 1,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            min=1,
            metavar="N",
            help="Runs at the same time. Default: one per processor, and up to three, 6 in all, while they wait.",
        ),
    ] = None,
    words: Annotated[
        list[str] | None,
        typer.Option("-k", metavar="WORDS", help="Only scenarios with one of these words in name or tags. Repeatable."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All scenarios, not only the core, and the whole fix x scenario matrix.")
    ] = False,
    seed: Annotated[
        int, typer.Option(help="The seed of random numbers in virtual time; live runs have new words.")
    ] = 0,
    plugin: PluginOption = None,
    level: LevelOption = None,
    *,
    context: typer.Context,
    turn_s: Annotated[
        float | None,
        typer.Option("--turn-s", min=0.1, help="The bound of a turn for all agents, in place of scenario and spec."),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Go on with an interrupted campaign, by its folder; finished runs stay."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Play on a Dask cluster: `local:4` starts one of four workers here; `tcp://HOST:PORT` is a scheduler.",
        ),
    ] = None,
    last_failed: Annotated[
        bool,
        typer.Option(
            "--last-failed", "--lf", help="Play only what failed, or was not decided, in the last run in --out."
        ),
    ] = False,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", "-x", help="Stop at the first failure.")] = False,
    again_after_changes: Annotated[
        bool, typer.Option("--watch", help="Play again after each change of a file, until Ctrl-C.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would be played, and play nothing.")] = False,
    against: BaselineOption = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="With --baseline: say how many repeats can decide, and play nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON on stdout.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print the sentence of every invariant.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print only what needs attention, and the totals.")
    ] = False,
) -> None:
    """Play scenarios against agents, and judge.

    Exit code: 0 all as expected (or passed), 1 a run failed, 2 bad usage, 3 an error or inconclusive run,
    or an agent that played no scenario.
    With --baseline: 0 nothing is worse, 1 a result is worse, 3 nothing is worse and a run is not decided.
    """
    from wedgehog.harness.campaign.options import Options, most_jobs, usual_jobs
    from wedgehog.harness.campaign.selection import Wanted, select
    from wedgehog.harness.campaign.stored import failed_before

    if again_after_changes:
        watch((*(scenarios or ()), *(agent or ())), out)
    output = Output(as_json, verbose, quiet)
    at_once, at_most = (jobs, 0) if jobs else (usual_jobs(), most_jobs())
    with user_mistakes():
        if resume is not None:
            found, options = taken_up(context, resume)
            options = replace(options, jobs=at_once, most_jobs=at_most)
            play_campaign(found.entries, options, read_for_gate(against), found, output, cluster)
        if last_failed:
            entries = failed_before(out, level)
            refuse_beside(context, "--last-failed", SELECTING, f"{out / 'latest'} says what is played")
        else:
            places, agents = tuple(scenarios or ()), tuple(agent or ())
            wanted = Wanted(places, agents, everything, " ".join(words or ()), repeat, level)
            entries = select(wanted)
            if world == "live":
                entries = _without_minutes(entries, wanted)
        if dry_run or not entries:
            _list(entries)
            raise typer.Exit
        again = shlex.join(["wedgehog", *sys.argv[1:]])
        options = Options(
            out, network, at_once, seed, again, tuple(plugin or ()), world, turn_s, fail_fast, most_jobs=at_most
        )
        known = read_for_gate(against)
        if plan:
            print_plan(known, {(it.scenario.name, it.agent.name) for it in entries}, repeat, world)
            raise typer.Exit
        play_campaign(entries, options, known, output=output, cluster=cluster)


def _without_minutes(entries: "Sequence[Entry]", wanted: "Wanted") -> "list[Entry]":
    """The runs that a live campaign plays unasked; says which scenarios are left out."""
    from wedgehog.harness.campaign.selection import without_minutes

    kept, left = without_minutes(entries, wanted)
    if left:
        said = f"wedgehog: not played, as it takes minutes: {', '.join(left)} (name it, or use --world sim)"
        err.print(said, markup=False, soft_wrap=True)
    return kept


def _list(entries: "Sequence[Entry]") -> None:
    """Print what would be played."""
    for entry in entries:
        Stdout().print(f"{entry.file.scenario.name} x {entry.agent.name}", markup=False, soft_wrap=True)
    err.print(f"wedgehog: {len(entries)} run{'' if len(entries) == 1 else 's'} to play", markup=False)


def play_campaign(
    entries: "Sequence[Entry]",
    options: "Options",
    known: "Baseline | None" = None,
    resumed: "Resumed | None" = None,
    output: Output = Output(),
    cluster: str | None = None,
) -> NoReturn:
    """Play a campaign, print its report and exit with its code, or with that of the gate."""
    from wedgehog.harness.agents.missing import check_agents
    from wedgehog.reports.facts import keep_facts

    check_agents(entry.agent for entry in entries)
    runs = len(entries) - len(resumed.finished if resumed else ())
    with open_progress(runs, err, quiet=output.quiet) as progress:
        campaign = _campaign(cluster)(entries, options, progress, progress.say, resumed, keep_facts)
        go_on = f"go on with: wedgehog run --resume {shlex.quote(str(campaign.store.folder))}"
        stopped = f"interrupted; the report covers the finished runs; {go_on}"
        interrupted = run_until_stopped(campaign.play(), stopped)
    print_reports(campaign.store.folder, output)
    code = played_code(campaign.judgements)
    if known is not None:
        code = gate_code(campaign.store.folder, known, quiet=output.as_json)
    raise typer.Exit(INTERRUPTED if interrupted else code)


def played_code(judgements: Sequence["Judgement"]) -> int:
    """The exit code of a campaign; names each agent that played nothing, because that is no pass."""
    from wedgehog.harness.campaign.exit_code import UNCLEAR, exit_code
    from wedgehog.harness.record.judgement import never_played

    unplayed = never_played(judgements)
    for agent, reason in unplayed.items():
        err.print(f"wedgehog: {agent} played no scenario: {reason}", markup=False)
    return exit_code(judgements) or (UNCLEAR if unplayed else 0)


def _campaign(cluster: str | None) -> "Callable[..., Campaign]":
    """What plays the campaign: this process, or a cluster."""
    from wedgehog.harness.campaign.campaign import Campaign

    if cluster is None:
        return Campaign
    from wedgehog.harness.campaign.cluster import ClusterCampaign

    return partial(ClusterCampaign, cluster)


def replay(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of one run (as a report prints it).")],
    out: OutOption = Path("runs"),
    network: NetworkOption = "auto",
    world: WorldOption = "live",
    plugin: PluginOption = None,
) -> None:
    """Play one stored run again.

    With the same scenario, agent and seed.
    """
    from wedgehog.harness.campaign.options import Options
    from wedgehog.harness.campaign.stored import stored_entry

    with user_mistakes():
        entry, seed = stored_entry(folder)
        again = shlex.join(["wedgehog", *sys.argv[1:]])
        options = Options(out, network, 1, seed, again, tuple(plugin or ()), world)
        play_campaign([entry], options, output=Output(verbose=True))


def print_reports(folder: Path, output: Output, *, parquet: bool = False) -> "StoredCampaign":
    """Write the reports of a campaign and print the summary."""
    from wedgehog.reports import write_folder
    from wedgehog.reports.terminal import print_campaign

    campaign = write_folder(folder, parquet=parquet)
    if output.as_json:
        from wedgehog.reports.rows import as_json, table

        Stdout().data(as_json(table(campaign)))
    else:
        print_campaign(campaign, Stdout(), verbose=output.verbose, quiet=output.quiet)
    return campaign
