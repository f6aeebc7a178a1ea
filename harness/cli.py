"""The command `wedgehog`: a thin shell. Words for people go to stderr, tables to stdout."""

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from wedgehog.harness.document import BadFile

app = typer.Typer(
    name="wedgehog",
    help="Finds out what an LLM agent does when its model, its tools or its network misbehave.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
err = Console(stderr=True, highlight=False, soft_wrap=True)

BAD_USAGE, INTERRUPTED = 2, 130
NetworkMode = Literal["auto", "toxiproxy", "embedded"]


@contextlib.contextmanager
def user_mistakes() -> Iterator[None]:
    """A user's mistake is one line and exit code 2, never a traceback."""
    from wedgehog.harness.network.base import NetworkError
    from wedgehog.harness.selection import BadUsage

    try:
        yield
    except (BadFile, BadUsage, NetworkError) as wrong:
        _fail(str(wrong))
    except OSError as wrong:
        _fail(f"{wrong.filename}: {wrong.strerror}" if wrong.filename else str(wrong))
    except ValueError as wrong:
        _fail(str(wrong))


def _fail(line: str) -> None:
    err.print(f"wedgehog: {line}", markup=False)
    raise typer.Exit(BAD_USAGE)


@app.command()
def run(
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(help="Scenario files, folders or stock names (default: the core of the stock incidents)."),
    ] = None,
    agent: Annotated[
        list[str] | None,
        typer.Option(
            "--agent", "-a", metavar="SPEC", help="Agent spec (YAML); repeatable. Default: the incident's own."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Where run folders go.")] = Path("runs"),
    network: Annotated[
        NetworkMode, typer.Option(envvar="WEDGEHOG_NETWORK", help="What makes the wire faults.")
    ] = "auto",
    repeat: Annotated[int, typer.Option(min=1, help="Play everything N times, each with a seed of its own.")] = 1,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Runs at the same time.")] = 6,
    words: Annotated[str, typer.Option("-k", help="Only scenarios with one of these words in name or tags.")] = "",
    everything: Annotated[
        bool, typer.Option("--all", help="Not only the core, and the whole fix x scenario matrix.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Draws the words of each run.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="The summary as JSON on stdout, for programs.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Every invariant's sentence.")] = False,
) -> None:
    """Play scenarios against agents, judge, report.

    Exit code: 0 all as expected (or passed), 1 a run failed, 2 bad usage, 3 an error or inconclusive run.
    """
    from wedgehog.harness.campaign import Campaign, Options, exit_code
    from wedgehog.harness.progress import open_progress
    from wedgehog.harness.selection import Wanted, select

    with user_mistakes():
        entries = select(Wanted(tuple(scenarios or ()), tuple(agent or ()), everything, words, repeat))
        options = Options(out, network, jobs, seed, " ".join(["wedgehog", *sys.argv[1:]]))
        with open_progress(len(entries), err) as progress:
            campaign = Campaign(entries, options, progress, progress.say)
            interrupted = _play(campaign.play())
        _report(campaign.store.folder, as_json=as_json, verbose=verbose)
    raise typer.Exit(INTERRUPTED if interrupted else exit_code(campaign.judgements))


def _play(work: Coroutine[Any, Any, object], stopped: str = "interrupted; reporting what was finished") -> bool:
    """Run to the end, or until Ctrl-C or SIGTERM, cleaning up either way; whether it was interrupted."""

    async def guarded() -> bool:
        task = asyncio.create_task(work)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            err.print(f"wedgehog: {stopped}")
            return True
        return False

    return asyncio.run(guarded())


def _report(folder: Path, *, as_json: bool, verbose: bool) -> None:
    from wedgehog.reports import write_all
    from wedgehog.reports.terminal import print_report

    write_all(folder)
    if as_json:
        from wedgehog.reports.campaign_folder import load
        from wedgehog.reports.rows import table

        sys.stdout.write(table(load(folder)).to_json(orient="records", indent=1) + "\n")
    else:
        print_report(folder, Console(highlight=False), verbose=verbose)


@app.command()
def check(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or a campaign's.")],
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Every invariant's sentence.")] = False,
) -> None:
    """Redo the verdicts from stored histories, and the reports with them."""
    from wedgehog.harness.campaign import exit_code, judge_again
    from wedgehog.harness.store import run_folders

    with user_mistakes():
        folder = folder.resolve()
        found = list(run_folders(folder))
        if not found:
            raise ValueError(f"{folder}: no finished run in here")
        judgements = [judge_again(one) for one in found]
        _report(_campaign_of(folder), as_json=False, verbose=verbose)
    raise typer.Exit(exit_code(judgements))


def _campaign_of(folder: Path) -> Path:
    return next((place for place in (folder, *folder.parents) if (place / "campaign.json").is_file()), folder)


@app.command()
def replay(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of one run (as a report prints it).")],
    out: Annotated[Path, typer.Option(help="Where run folders go.")] = Path("runs"),
    network: Annotated[
        NetworkMode, typer.Option(envvar="WEDGEHOG_NETWORK", help="What makes the wire faults.")
    ] = "auto",
) -> None:
    """Play one stored run again: the same scenario, agent and seed."""
    from wedgehog.harness.campaign import Campaign, Options, exit_code, read_inputs, stored_agent
    from wedgehog.harness.progress import open_progress
    from wedgehog.harness.scenario import load_scenario
    from wedgehog.harness.selection import Entry, check_invariant

    with user_mistakes():
        inputs = read_inputs(folder)
        original = Path(str(inputs["scenario_path"]))
        file = load_scenario(original if original.is_file() else folder / "scenario.yaml", check_invariant)
        entry = Entry(file, stored_agent(folder, inputs), bool(inputs["matrix_only"]))
        options = Options(out, network, 1, int(str(inputs["seed"])), f"wedgehog replay {folder}")
        with open_progress(1, err) as progress:
            campaign = Campaign([entry], options, progress, progress.say)
            interrupted = _play(campaign.play())
        _report(campaign.store.folder, as_json=False, verbose=True)
    raise typer.Exit(INTERRUPTED if interrupted else exit_code(campaign.judgements))


@app.command()
def scenarios(
    place: Annotated[str | None, typer.Argument(help="A file, folder or stock name.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """List scenarios with their why."""
    from wedgehog.harness.scenario import find_scenarios, load_scenario
    from wedgehog.harness.selection import place_of, stock_folder

    with user_mistakes():
        root = place_of(place) if place else stock_folder() / "incidents"
        found = [load_scenario(path) for path in find_scenarios(root)]
    if as_json:
        rows = [{"name": f.scenario.name, "family": f.family, "core": f.core, "why": f.scenario.why} for f in found]
        sys.stdout.write(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
        return
    console = Console(highlight=False)
    for file in found:
        console.print(f"{file.family}/{file.scenario.name}{' (core)' if file.core else ''}", style="bold", markup=False)
        console.print(f"    {file.scenario.why}", markup=False)


@app.command()
def agents(
    folder: Annotated[
        Path | None, typer.Argument(help="A folder of agent specs (default: the stock specimens).")
    ] = None,
) -> None:
    """List agents: the stock specimens with their fixes, or the specs of a folder."""
    from wedgehog.harness.agents.spec import load_spec, variants
    from wedgehog.harness.selection import stock_folder

    with user_mistakes():
        root = folder or stock_folder() / "incidents"
        pattern = "*.yaml" if folder else "*/agents/*.yaml"
        found = sorted(root.glob(pattern))
        if not found:
            raise ValueError(f"{root}: no agent spec (*.yaml) in here")
        console = Console(highlight=False)
        for path in found:
            spec = load_spec(path)
            names = ", ".join(agent.name for agent in variants(spec))
            console.print(f"{path}: {spec.name} ({spec.wire}, {spec.kind})", style="bold", markup=False)
            console.print(f"    {names}", markup=False)
            for fix, why in spec.fixes.items():
                console.print(f"    fix {fix}{' (in the fixed set)' if fix in spec.fixed else ''}: {why}", markup=False)


@app.command()
def serve(
    script: Annotated[Path, typer.Option(help="The script file: what the fake model says.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 0,
    host: Annotated[
        str, typer.Option(help="Loopback by default: anyone who can reach it can talk to it.")
    ] = "127.0.0.1",
    lenient: Annotated[bool, typer.Option(help="Record a broken history, but answer it.")] = False,
) -> None:
    """The fake LLM provider on its own."""
    from wedgehog.harness.serve import serve as serve_script

    with user_mistakes():
        work = serve_script(script, host, port, strict=not lenient, say=lambda line: err.print(line, markup=False))
        _play(work, "stopped")


@app.command()
def doctor() -> None:
    """Say where everything is, and what is missing."""
    from wedgehog.harness.doctor import findings

    console = Console(highlight=False)
    found = list(findings())
    for finding in found:
        sign = "ok  " if finding.ok else "MISS"
        console.print(f"{sign} {finding.what}: {finding.says}", markup=False, soft_wrap=True)
    raise typer.Exit(0 if all(finding.ok or finding.optional for finding in found) else 1)


@app.command("schema")
def schema_of(kind: Annotated[Literal["scenario", "agent", "script"], typer.Argument(help="Which file.")]) -> None:
    """Print the JSON Schema of a file that people write, for editors."""
    from wedgehog.harness.reference import schema

    sys.stdout.write(json.dumps(schema(kind), indent=2) + "\n")


def main(argv: Sequence[str] | None = None) -> None:
    """The entry point of the command."""
    app(args=list(argv) if argv is not None else None)


if __name__ == "__main__":
    main()
