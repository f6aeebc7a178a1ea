"""`wedgehog fuzz`."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from wedgehog.harness.commands.console import (
    INTERRUPTED,
    NetworkOption,
    OutOption,
    PluginOption,
    Stdout,
    err,
    user_mistakes,
)
from wedgehog.harness.commands.stop_signals import run_until_stopped


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
    out: OutOption = Path("runs"),
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
    also: Annotated[
        list[str] | None,
        typer.Option(metavar="FAULT", help="Try a fault that only gateways show, such as duplicate_ids. Repeatable."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            min=1,
            metavar="N",
            help="Scenarios at the same time. Default: two per processor, 12 at most; in virtual time one.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of the search.")] = 0,
    *,
    live: Annotated[
        bool, typer.Option("--live", help="Play each failure that is found in virtual time live too.")
    ] = False,
    plugin: PluginOption = None,
) -> None:
    """Search for scenarios that break an agent.

    Each failure is shrunk and saved as a scenario file.

    Exit code: 0 no failure, 1 a failure, 2 bad usage, 3 nothing could be decided.
    """
    from wedgehog.harness.campaign.options import Options, usual_jobs
    from wedgehog.harness.campaign.selection import named_agent
    from wedgehog.harness.commands.fuzz import Fuzz, FuzzOptions, budget_s, known_faults
    from wedgehog.harness.run.plugins import load_plugins

    with user_mistakes():
        load_plugins(plugin or ())
        if len(agent) > 2:
            raise ValueError("--agent: one agent, or two to find where they differ")
        agents = tuple(map(named_agent, agent))
        lasts_s = budget_s(budget or ("1h" if most else "60s"))
        more = known_faults(also or ())
        asked = FuzzOptions(agents, tuple(agent), lasts_s, into, worst, again, world, jobs, most, more, live)
        words = shlex.join(["wedgehog", *sys.argv[1:]])
        search = Fuzz(asked, Options(out, network, jobs or 2 * usual_jobs(), seed, words, tuple(plugin or ())), err)
        interrupted = run_until_stopped(search.run(), "interrupted; what was found is saved")
        for line in search.lines():
            Stdout().print(line, markup=False, soft_wrap=True)
    raise typer.Exit(INTERRUPTED if interrupted else search.exit_code)
