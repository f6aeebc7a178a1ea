"""`wedgehog agents`: list, install and check agents, and measure their timers."""

from pathlib import Path
from typing import Annotated

import typer

from wedgehog.harness.commands.console import BAD_USAGE, JobsOption, NetworkOption, Stdout, err, report, user_mistakes

agents = typer.Typer(
    help="List agents: known runtimes and the stock specimens. Install a runtime; check a spec.",
    invoke_without_command=True,
    rich_markup_mode=None,
)
Named = Annotated[str, typer.Argument(metavar="NAME[@VERSION]", help="A known runtime, as `wedgehog agents` lists it.")]


@agents.callback()
def listed(context: typer.Context) -> None:
    """List the known runtimes and the stock specimens, unless a subcommand is given."""
    if context.invoked_subcommand is None:
        _known()


@agents.command("list")
def list_(folder: Annotated[Path | None, typer.Argument(help="A folder of agent specs.")] = None) -> None:
    """List the specs of a folder, or all known agents.

    Specs are listed with their variants and fixes.
    """
    if folder is None:
        return _known()
    with user_mistakes():
        found = sorted(folder.glob("*.yaml"))
        if not found:
            raise ValueError(f"{folder}: no agent spec (*.yaml) in this folder")
        _specs(found)


@agents.command()
def install(
    names: Annotated[list[str], typer.Argument(metavar="NAME[@VERSION]...", help="Known runtimes.")],
    again: Annotated[bool, typer.Option(help="Install again where it is installed already.")] = False,
) -> None:
    """Install known runtimes.

    Each version has its own cache folder. They run offline afterwards.
    """
    from wedgehog.harness.agents.known_runtimes import InstallError, named
    from wedgehog.harness.agents.known_runtimes import install as put

    with user_mistakes():
        for spec in [named(name) for name in names]:
            try:
                put(spec, lambda line: err.print(line, markup=False), again=again)
            except InstallError as wrong:
                err.print(f"wedgehog: {wrong}", markup=False)
                raise typer.Exit(BAD_USAGE) from None


@agents.command()
def remove(name: Named) -> None:
    """Delete one installed version."""
    from wedgehog.harness.agents.known_runtimes import named
    from wedgehog.harness.agents.known_runtimes import remove as delete

    with user_mistakes():
        spec = named(name)
        if not delete(spec.installed_as, spec.version):
            raise ValueError(f"{spec.name} is not installed")
        err.print(f"removed {spec.name}", markup=False)


@agents.command()
def check(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help="A spec file, or a known runtime.")],
    network: NetworkOption = "embedded",
    keep: Annotated[Path | None, typer.Option(help="Keep the run folders here.")] = None,
) -> None:
    """Check what an agent can do.

    Plays a text turn, a tool turn, a resume and a refused key. Exit code 1 if a required feature is missing.
    """
    import asyncio

    from wedgehog.harness.campaign.selection import named_agent
    from wedgehog.harness.commands.agents_check import check as look

    with user_mistakes():
        agent = named_agent(spec)
        findings = asyncio.run(look(agent, network, keep, lambda note: err.print(note, markup=False)))
    report(findings)


@agents.command()
def timers(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help="A spec file, or a known runtime.")],
    look_out: Annotated[float, typer.Option(min=1, help="Seconds for which each stall is observed.")] = 60,
    jobs: JobsOption = None,
    network: NetworkOption = "embedded",
    keep: Annotated[Path | None, typer.Option(help="Keep the run folders here.")] = None,
) -> None:
    """Measure the timers of an agent.

    Stalls it in eleven ways. Prints its timers, how they are nested, and which have no effect.
    """
    import asyncio

    from wedgehog.harness.campaign.options import usual_jobs
    from wedgehog.harness.campaign.selection import named_agent
    from wedgehog.harness.commands.timers.chain import findings, lines
    from wedgehog.harness.commands.timers.take import ProbeOptions, take

    with user_mistakes():
        agent = named_agent(spec)
        how = ProbeOptions(look_out, network, jobs or usual_jobs(), keep)
        measured = asyncio.run(take(agent, how, lambda line: err.print(line, markup=False)))
    console = Stdout()
    console.print(f"{agent.name}: its timers as they are, each watched for {look_out:g} s", markup=False)
    for line in lines(measured):
        console.print(line, markup=False, soft_wrap=True)
    for finding in findings(measured):
        console.print(f"! {finding}", markup=False, soft_wrap=True)


def _known() -> None:
    """List the known runtimes and the stock specimens."""
    from wedgehog.harness.campaign.selection import stock_folder

    with user_mistakes():
        _runtimes(Stdout())
    _specs(sorted(stock_folder().glob("incidents/*/agents/*.yaml")))


def _runtimes(console: Stdout) -> None:
    from rich.table import Table

    from wedgehog.harness.agents.known_runtimes import known
    from wedgehog.harness.agents.runtime_install import installed

    table = Table(box=None, pad_edge=False)
    for heading in ("runtime", "version", "licence", "wire", "installed"):
        table.add_column(heading, overflow="fold")
    for name, spec in known().items():
        assert spec.runtime is not None  # noqa: S101  a test holds every file to it
        have = ", ".join(installed(spec.installed_as)) or "no"
        table.add_row(name, spec.runtime.version, spec.runtime.licence, spec.wire, have)
    console.print(table)
    console.print("wedgehog agents install NAME[@VERSION]", style="dim", markup=False)


def _specs(paths: list[Path]) -> None:
    from wedgehog.harness.agents.spec import load_spec, variants

    console = Stdout()
    with user_mistakes():
        for path in paths:
            spec = load_spec(path)
            names = ", ".join(agent.name for agent in variants(spec))
            console.print(f"{path}: {spec.name} ({spec.wire}, {spec.kind})", style="bold", markup=False)
            console.print(f"    {names}", markup=False)
            for fix, why in spec.fixes.items():
                console.print(f"    fix {fix}{' (in the fixed set)' if fix in spec.fixed else ''}: {why}", markup=False)
