"""The command `wedgehog`. Messages go to stderr, tables to stdout."""

import asyncio
import json
import shlex
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

from wedgehog.harness.commands.cli_agents import agents
from wedgehog.harness.commands.cli_gate import BaselineOption, baseline, compare, gate_code, print_plan, read_for_gate
from wedgehog.harness.commands.console import (
    INTERRUPTED,
    JobsOption,
    LevelOption,
    NetworkOption,
    Stdout,
    WorldOption,
    answered,
    err,
    open_progress,
    report,
    user_mistakes,
)
from wedgehog.harness.network.ports import HOST

if TYPE_CHECKING:
    from wedgehog.harness.run.campaign import Options
    from wedgehog.harness.run.selection import Entry
    from wedgehog.reports.baseline import Baseline

app = typer.Typer(
    name="wedgehog",
    help="Finds out what an LLM agent does when its model, its tools or its network misbehave.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(agents, name="agents")
app.command()(baseline)
app.command()(compare)


def _loaded(plugins: list[str] | None) -> list[str] | None:
    from wedgehog.harness.run.plugins import load_plugins

    with user_mistakes():
        load_plugins(plugins or ())
    return plugins


Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        metavar="PLUGIN",
        callback=_loaded,
        help="A Python file or module with your own faults or invariants; it is executed. Repeatable.",
    ),
]


@app.command()
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
    out: Annotated[Path, typer.Option(help="The folder for run folders.")] = Path("runs"),
    network: NetworkOption = "auto",
    world: WorldOption = "live",
    repeat: Annotated[int, typer.Option(min=1, help="Play everything N times, each time with another seed.")] = 1,
    jobs: JobsOption = None,
    words: Annotated[
        list[str] | None,
        typer.Option("-k", metavar="WORDS", help="Only scenarios with one of these words in name or tags. Repeatable."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All scenarios, not only the core, and the whole fix x scenario matrix.")
    ] = False,
    seed: Annotated[int, typer.Option(help="The seed of each run's random words.")] = 0,
    plugin: Plugins = None,
    level: LevelOption = None,
    *,
    turn_s: Annotated[
        float | None,
        typer.Option("--turn-s", min=0.1, help="The bound of a turn for all agents, in place of scenario and spec."),
    ] = None,
    against: BaselineOption = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="With --baseline: say how many repeats can decide, and play nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON on stdout.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print the sentence of every invariant.")] = False,
) -> None:
    """Play scenarios against agents, judge the runs and print a report.

    Exit code: 0 all as expected (or passed), 1 a run failed, 2 bad usage, 3 an error or inconclusive run.
    With --baseline: 0 nothing is worse, 1 a result is worse, 3 nothing is worse and a run is not decided.
    """
    from wedgehog.harness.run.campaign import Options, usual_jobs
    from wedgehog.harness.run.selection import Wanted, select

    with user_mistakes():
        places, agents = tuple(scenarios or ()), tuple(agent or ())
        entries = select(Wanted(places, agents, everything, " ".join(words or ()), repeat, level))
        again = shlex.join(["wedgehog", *sys.argv[1:]])
        options = Options(out, network, jobs or usual_jobs(), seed, again, tuple(plugin or ()), world, turn_s)
        known = read_for_gate(against)
        if plan:
            print_plan(known, {(it.scenario.name, it.agent.name) for it in entries}, repeat)
            raise typer.Exit
        _campaign(entries, options, known, as_json=as_json, verbose=verbose)


def _campaign(
    entries: "Sequence[Entry]",
    options: "Options",
    known: "Baseline | None" = None,
    *,
    as_json: bool = False,
    verbose: bool,
) -> NoReturn:
    """Play a campaign, print its report and exit with its code, or with that of the gate."""
    from wedgehog.harness.run.campaign import Campaign, exit_code

    with open_progress(len(entries), err) as progress:
        campaign = Campaign(entries, options, progress, progress.say)
        interrupted = _play(campaign.play())
    _report(campaign.store.folder, as_json=as_json, verbose=verbose)
    code = exit_code(campaign.judgements)
    if known is not None:
        code = gate_code(campaign.store.folder, known, quiet=as_json)
    raise typer.Exit(INTERRUPTED if interrupted else code)


def _play(
    work: Coroutine[Any, Any, object],
    stopped: str = "interrupted; the report covers the finished runs",
    loop: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> bool:
    """Run to the end, or until SIGINT, SIGTERM or SIGHUP, with cleanup; return whether it was interrupted."""

    async def guarded() -> bool:
        task = asyncio.create_task(work)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # (A second signal would cancel the cleanup that the first one began.)
            loop.add_signal_handler(number, lambda: task.cancelling() or task.cancel())
        try:
            await task
        except asyncio.CancelledError:
            err.print(f"wedgehog: {stopped}")
            return True
        return False

    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(guarded())


def _report(folder: Path, *, as_json: bool, verbose: bool) -> None:
    from wedgehog.reports import write_all
    from wedgehog.reports.terminal import print_report

    write_all(folder)
    if as_json:
        from wedgehog.reports.campaign_folder import load
        from wedgehog.reports.rows import table

        Stdout().data(table(load(folder)).to_json(orient="records", indent=1))
    else:
        print_report(folder, Stdout(), verbose=verbose)


@app.command()
def fuzz(
    agent: Annotated[
        list[str],
        typer.Option(
            "--agent", "-a", metavar="SPEC", help="Agent spec (YAML) or known runtime; two of them to find differences."
        ),
    ],
    budget: Annotated[
        str | None, typer.Option(help="How long to search: 60s, 5m, 1h. [default: 60s; with --scenarios 1h]")
    ] = None,
    worst: Annotated[
        Literal["cost", "calls", "silence"] | None,
        typer.Option(help="Search for the greatest bill, the most paid calls or the longest turn."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Forget what earlier searches tried; keep what they found.")
    ] = False,
    into: Annotated[Path, typer.Option(help="The folder of found scenarios and of what was tried.")] = Path("fuzz"),
    out: Annotated[Path, typer.Option(help="The folder for run folders.")] = Path("runs"),
    network: NetworkOption = "auto",
    world: Annotated[
        Literal["live", "sim"] | None,
        typer.Option(
            help="`sim`: virtual time, many scenarios in a second. Default: `sim` if the agent can run there."
        ),
    ] = None,
    most: Annotated[
        int | None,
        typer.Option("--scenarios", min=1, metavar="N", help="End after N scenarios, in virtual time."),
    ] = None,
    jobs: JobsOption = None,
    seed: Annotated[int, typer.Option(help="The seed of the search.")] = 0,
    plugin: Plugins = None,
) -> None:
    """Search for scenarios that break an agent; shrink each failure and save it as a scenario file.

    Exit code: 0 no failure, 1 a failure, 2 bad usage, 3 nothing could be decided.
    """
    from wedgehog.harness.commands.fuzz import Fuzz, FuzzOptions, seconds
    from wedgehog.harness.run.campaign import Options, usual_jobs
    from wedgehog.harness.run.plugins import load_plugins
    from wedgehog.harness.run.selection import named_agent

    with user_mistakes():
        load_plugins(plugin or ())
        if len(agent) > 2:
            raise ValueError("--agent: one agent, or two to find where they differ")
        agents = tuple(map(named_agent, agent))
        budget_s = seconds(budget or ("1h" if most else "60s"))
        asked = FuzzOptions(agents, tuple(agent), budget_s, into, worst, again, world, jobs, most)
        words = shlex.join(["wedgehog", *sys.argv[1:]])
        search = Fuzz(asked, Options(out, network, jobs or 2 * usual_jobs(), seed, words, tuple(plugin or ())), err)
        interrupted = _play(search.run(), "interrupted; what was found is saved")
        for line in search.lines():
            Stdout().print(line, markup=False, soft_wrap=True)
    raise typer.Exit(INTERRUPTED if interrupted else search.exit_code)


@app.command()
def check(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or a campaign's.")],
    plugin: Plugins = None,
    level: LevelOption = None,
    against: BaselineOption = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print the sentence of every invariant.")] = False,
    parquet: Annotated[bool, typer.Option(help="Also write runs, calls and latency as Parquet.")] = False,
) -> None:
    """Judge stored histories again, and write the reports again. The exit codes are those of `run`."""
    from wedgehog.harness.record.store import run_folders
    from wedgehog.harness.run.campaign import UNCLEAR, exit_code
    from wedgehog.harness.run.stored import judge_all

    with user_mistakes():
        folder, known = folder.resolve(), read_for_gate(against)
        found = list(run_folders(folder))
        if not found:
            raise ValueError(f"{folder}: no finished run in this folder")
        judgements, unread = judge_all(found, level)
        if not judgements:
            raise ValueError("\n".join(unread))
        for line in unread:
            err.print(f"wedgehog: {line}", markup=False)
        campaign = next((it for it in (folder, *folder.parents) if (it / "campaign.json").is_file()), folder)
        _report(campaign, as_json=False, verbose=verbose)
        if parquet:
            from wedgehog.reports.parquet import write_parquet

            write_parquet(campaign)
    if known is not None:
        raise typer.Exit(gate_code(campaign, known))
    raise typer.Exit(exit_code(judgements) or (UNCLEAR if unread else 0))


@app.command()
def replay(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of one run (as a report prints it).")],
    out: Annotated[Path, typer.Option(help="The folder for run folders.")] = Path("runs"),
    network: NetworkOption = "auto",
    world: WorldOption = "live",
    plugin: Plugins = None,
) -> None:
    """Play one stored run again with the same scenario, agent and seed."""
    from wedgehog.harness.run.campaign import Options
    from wedgehog.harness.run.selection import Entry, check_invariant
    from wedgehog.harness.run.stored import read_inputs, stored_agent
    from wedgehog.harness.scenario.model import load_scenario

    with user_mistakes():
        inputs = read_inputs(folder)
        original = Path(str(inputs["scenario_path"]))
        file = load_scenario(original if original.is_file() else folder / "scenario.yaml", check_invariant)
        entry = Entry(file, stored_agent(folder, inputs), bool(inputs["matrix_only"]))
        again = shlex.join(["wedgehog", *sys.argv[1:]])
        options = Options(out, network, 1, int(str(inputs["seed"])), again, tuple(plugin or ()), world)
        _campaign([entry], options, verbose=True)


@app.command()
def scenarios(
    place: Annotated[str | None, typer.Argument(help="A file, folder or stock name.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    plugin: Plugins = None,
) -> None:
    """List scenarios and their reasons."""
    from wedgehog.harness.run.selection import place_of, stock_folder
    from wedgehog.harness.scenario.model import find_scenarios, load_scenario

    with user_mistakes():
        root = place_of(place) if place else stock_folder()
        found = [load_scenario(path) for path in find_scenarios(root)]
    if as_json:
        keys = ("name", "why", "seen")
        rows = [{"family": f.family, "core": f.core} | f.scenario.model_dump(include=set(keys)) for f in found]
        Stdout().data(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    console = Stdout()
    for file in found:
        console.print(f"{file.family}/{file.scenario.name}{' (core)' if file.core else ''}", style="bold", markup=False)
        console.print(f"    {file.scenario.why}", markup=False)
        if file.scenario.seen:
            console.print(f"    seen: {file.scenario.seen}", style="dim", markup=False)


@app.command()
def serve(
    script: Annotated[Path, typer.Option(help="The script file with the fake model's replies.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 chooses a free port.")] = 0,
    host: Annotated[str, typer.Option(help="Loopback by default. The server has no access control.")] = HOST,
    lenient: Annotated[bool, typer.Option(help="Answer requests with a broken history, and record it.")] = False,
    admin_port: Annotated[int, typer.Option(min=0, max=65535, help="Of the admin API; 0 chooses a free port.")] = 0,
    balance_usd: Annotated[float | None, typer.Option(min=0, help="The balance of each session, in dollars.")] = None,
    balance_tokens: Annotated[int | None, typer.Option(min=0, help="The balance of each session, in tokens.")] = None,
) -> None:
    """Run the fake LLM provider alone."""
    from wedgehog.harness.commands.serve import fast_loop, prepaid
    from wedgehog.harness.commands.serve import serve as serve_script

    with user_mistakes():
        balance = prepaid(balance_usd, balance_tokens)
        say = partial(err.print, markup=False)
        work = serve_script(script, host, port, strict=not lenient, say=say, admin_port=admin_port, balance=balance)
        _play(work, "stopped", fast_loop)


@app.command()
def init(
    file: Annotated[Path, typer.Argument(help="The path of the new spec.")] = Path("agent.yaml"),
    name: Annotated[str, typer.Option(help="The name of the agent.")] = "",
    wire: Annotated[str, typer.Option(help="Its wire format.")] = "",
    command: Annotated[str, typer.Option(help="Its command line, with {message} for the user's message.")] = "",
    resume: Annotated[str | None, typer.Option(help="Its command line for the next message of a session.")] = None,
) -> None:
    """Write a first agent spec; asks for each value that no option gives."""
    from wedgehog.harness.commands import init as first

    with user_mistakes():
        if file.exists():
            raise ValueError(f"{file}: exists already; it is not overwritten")
        name = answered("What is the agent called?", name, first.wrong_name, "my-agent")
        wires = f"Which wire format does it speak ({', '.join(first.WIRES)})?"
        wire = answered(wires, wire, first.wrong_wire, "openai-chat")
        command = answered("Its command line, with {message} where the message goes:", command, first.wrong_command)
        if resume or (resume is None and sys.stdin.isatty()):
            again = "And for the next message on the same session (empty: the same)?"
            resume = answered(again, resume or "", first.wrong_resume, "")
        text = first.spec_text(str(file), name, wire, command, (resume or "").strip())
        file.write_text(text, encoding="utf-8")
    err.print(f"wrote {file}; now: wedgehog agents check {file}", markup=False)


@app.command()
def doctor() -> None:
    """Check the installation and list what is missing."""
    from wedgehog.harness.commands.doctor import findings

    report(findings())


@app.command("schema")
def schema_of(
    kind: Annotated[Literal["scenario", "agent", "script"], typer.Argument(help="The kind of file.")],
    plugin: Plugins = None,
) -> None:
    """Print the JSON Schema of a file format, for editors."""
    from wedgehog.harness.commands.reference import schema

    Stdout().data(json.dumps(schema(kind), indent=2))


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    app(args=list(argv) if argv is not None else None)


if __name__ == "__main__":
    main()
