"""`wedgehog explain`: what a name in a report means, in the words of the documentation."""

import inspect
from collections.abc import Iterator
from typing import Annotated

import typer

from wedgehog.harness.commands.console import PluginOption, Stdout, user_mistakes


def explain(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Invariants, faults or scenarios.")],
    plugin: PluginOption = None,
) -> None:
    """Say what a name in a report means.

    Of an invariant: what must hold, when it is judged, and how to fix what violates it.
    """
    console = Stdout()
    with user_mistakes():
        for name, paragraphs in [(name, list(_told(name))) for name in names]:
            console.print(name, style="bold", markup=False)
            for paragraph in paragraphs:
                console.indented(paragraph)


def _told(name: str) -> Iterator[str]:
    """The paragraphs about a name. Raises ValueError for one that nothing has."""
    from wedgehog.harness import faults as _every_fault  # noqa: F401  importing it registers them
    from wedgehog.harness.campaign.selection import stock_folder
    from wedgehog.harness.faults.base import registered
    from wedgehog.harness.invariants import known
    from wedgehog.harness.record.expectation import did_you_mean

    scenarios = {it.stem: it for it in stock_folder().rglob("*.yaml") if it.parent.name in ("catalogue", "scenarios")}
    if name in known():
        yield from _paragraphs(known()[name].run)
        bounds = {it: parameter.default for it, parameter in known()[name].parameters.items()}
        if bounds:
            said = (f"{it} {'(no stock bound)' if stock is None else f'{stock:g}'}" for it, stock in bounds.items())
            yield f"Bounds: {', '.join(said)}."
    elif name in registered():
        yield from _paragraphs(registered()[name])
    elif name in scenarios:
        from wedgehog.harness.scenario.scenario_file import load_scenario

        scenario = load_scenario(scenarios[name]).scenario
        yield scenario.why
        yield from [f"seen: {scenario.seen}"] if scenario.seen else []
        yield f"Play it: wedgehog run {name} --agent SPEC"
    else:
        near = did_you_mean(name, [*known(), *registered(), *scenarios])
        raise ValueError(f"no invariant, fault or stock scenario is called {name!r}{near}")


def _paragraphs(documented: object) -> Iterator[str]:
    """The paragraphs of a docstring, each on one line."""
    for paragraph in (inspect.getdoc(documented) or "").split("\n\n"):
        yield " ".join(paragraph.split())
