"""The command `wedgehog`. Messages go to stderr, tables to stdout."""

import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from wedgehog.harness.commands.cli_agents import agents
from wedgehog.harness.commands.cli_check import check
from wedgehog.harness.commands.cli_explain import explain
from wedgehog.harness.commands.cli_export import export
from wedgehog.harness.commands.cli_fuzz import fuzz
from wedgehog.harness.commands.cli_gate import baseline, compare
from wedgehog.harness.commands.cli_run import replay, run
from wedgehog.harness.commands.console import PluginOption, Stdout, answered, err, report, user_mistakes
from wedgehog.harness.commands.known_commands import KnownCommands
from wedgehog.harness.commands.project_defaults import project_defaults
from wedgehog.harness.commands.stop_signals import run_until_stopped
from wedgehog.harness.network.ports import HOST
from wedgehog.harness.sim.garbage import search_rarely

app = typer.Typer(
    name="wedgehog",
    cls=KnownCommands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version as installed_version

        Stdout().data(f"wedgehog {installed_version('wedgehog')}")
        raise typer.Exit


@app.callback()
def wedgehog(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Find out what an LLM agent does when its model, its tools or its network misbehave.

    The table [tool.wedgehog] of your pyproject.toml can hold defaults of agent, jobs, out, level, network and plugin.
    """
    with user_mistakes():
        context.default_map = project_defaults(Path.cwd())


app.command()(run)
app.command()(fuzz)
app.command()(check)
app.command()(replay)
app.command()(baseline)
app.command()(compare)
app.command()(export)
app.command()(explain)
app.add_typer(agents, name="agents")


@app.command()
def scenarios(
    place: Annotated[str | None, typer.Argument(help="A file, folder or stock name.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    plugin: PluginOption = None,
) -> None:
    """List scenarios and their reasons."""
    from wedgehog.harness.campaign.selection import path_of_name, stock_folder
    from wedgehog.harness.scenario.scenario_file import find_scenarios, load_scenario

    with user_mistakes():
        root = path_of_name(place) if place else stock_folder()
        found = [load_scenario(path) for path in find_scenarios(root)]
    if as_json:
        keys = ("name", "why", "seen")
        rows = [{"family": f.family, "core": f.core} | f.scenario.model_dump(include=set(keys)) for f in found]
        Stdout().data(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    console = Stdout()
    for file in found:
        console.print(f"{file.family}/{file.scenario.name}{' (core)' if file.core else ''}", style="bold", markup=False)
        console.indented(file.scenario.why)
        if file.scenario.seen:
            console.indented(f"seen: {file.scenario.seen}", "dim")


@app.command()
def serve(
    script: Annotated[Path, typer.Option(help="The script file with the fake model's replies.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 chooses a free port.")] = 0,
    host: Annotated[str, typer.Option(help="Loopback by default. The server has no access control.")] = HOST,
    lenient: Annotated[bool, typer.Option(help="Answer requests with a broken history, and record it.")] = False,
    admin_port: Annotated[int, typer.Option(min=0, max=65535, help="Of the admin API; 0 chooses a free port.")] = 0,
    balance_usd: Annotated[float | None, typer.Option(min=0, help="The balance of each session, in dollars.")] = None,
    balance_tokens: Annotated[int | None, typer.Option(min=0, help="The balance of each session, in tokens.")] = None,
    log: Annotated[
        bool | None,
        typer.Option("--log/--no-log", show_default=False, help="A line for each request (default: on a terminal)."),
    ] = None,
) -> None:
    """Run the fake LLM provider alone."""
    from wedgehog.harness.commands.serve import fast_loop, prepaid
    from wedgehog.harness.commands.serve import serve as serve_script

    with user_mistakes():
        balance = prepaid(balance_usd, balance_tokens)
        say = partial(err.print, markup=False)
        lines = err.data if (err.is_terminal if log is None else log) else None
        work = serve_script(
            script, host, port, strict=not lenient, say=say, admin_port=admin_port, balance=balance, log=lines
        )
        run_until_stopped(work, "stopped", fast_loop)


@app.command()
def init(
    file: Annotated[Path, typer.Argument(help="The path of the new spec.")] = Path("agent.yaml"),
    name: Annotated[str, typer.Option(help="The name of the agent.")] = "",
    wire: Annotated[str, typer.Option(help="Its wire format.")] = "",
    command: Annotated[
        str,
        typer.Option(
            help="Its command line, with {message} for the user's message; with {port} for a service; file.py:function "
            "for a function."
        ),
    ] = "",
    resume: Annotated[str | None, typer.Option(help="Its command line for the next message of a session.")] = None,
    kind: Annotated[
        Literal["command", "callable", "http", "page", "chat", "lines", "acp", "tui"] | None,
        typer.Option(
            show_default=False,
            help="How it gets its messages: one process each, as a Python function, as a service, on a page in a "
            "browser, in a chat; or as a process that stays, by lines, by ACP, in a terminal. Default: as the project "
            "suggests, else `command`.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing: take what the project suggests.")] = False,
) -> None:
    """Write a first agent spec.

    Asks for each value that no option gives, and proposes what the project in the working folder suggests.
    """
    from wedgehog.harness.commands.first_spec import spec_text as first
    from wedgehog.harness.commands.first_spec.propose import propose

    with user_mistakes():
        if file.exists():
            raise ValueError(f"{file}: exists already; it is not overwritten")
        found = propose(Path.cwd(), kind)
        ask = partial(answered, asks=not yes)
        name = ask("What is the agent called?", name, first.wrong_name, found.name)
        wires = f"Which wire format does it speak ({', '.join(first.WIRES)})?"
        wire = ask(wires, wire, first.wrong_wire, found.wire)
        kind, proposed = first.chosen(kind, command, found)
        if proposed:
            err.print(f"wedgehog: {found.because} suggests: {proposed}", markup=False)
        asked = first.ASKS.get(kind, "Its command line:")
        command = ask(asked, command, partial(first.wrong_answer_to, kind), proposed)
        next_one = found.resume if command == proposed else ""
        if kind in ("acp", "callable", "http", "page"):
            resume = ""
        elif resume or (resume is None and sys.stdin.isatty()):
            asked = "And for the next message on the same session (empty: the same)?"
            resume = ask(asked, resume or "", partial(first.wrong_resume, kind), next_one)
        elif resume is None:
            resume = next_one
        talks = found.talks if command == proposed else None
        again = (resume or "").strip()
        text = first.spec_text(
            str(file), name, wire, command, again, kind, found.python, talks, found.links, found.tokens, found.calls
        )
        file.write_text(text, encoding="utf-8")
    err.print(f"wrote {file}; now: wedgehog agents check {file}, and then: wedgehog run --agent {file}", markup=False)


@app.command()
def doctor() -> None:
    """Check the installation and list what is missing."""
    from wedgehog.harness.commands.doctor import findings

    report(findings())


@app.command("schema")
def schema_of(
    kind: Annotated[Literal["scenario", "agent", "script"], typer.Argument(help="The kind of file.")],
    plugin: PluginOption = None,
) -> None:
    """Print the JSON Schema of a file format, for editors."""
    from wedgehog.harness.commands.reference import schema

    Stdout().data(json.dumps(schema(kind), indent=2))


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    search_rarely()
    app(args=list(argv) if argv is not None else None)


if __name__ == "__main__":
    main()
