"""`wedgehog baseline` and `wedgehog compare`, and the gate of `wedgehog run` and `wedgehog check`."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wedgehog.harness.commands.console import Stdout, err, user_mistakes

if TYPE_CHECKING:
    from wedgehog.reports.gate.baseline import Baseline

BaselineOption = Annotated[
    Path | None,
    typer.Option(
        "--baseline",
        metavar="FILE",
        help="Compare with this baseline: only a result that got worse fails (docs/gate.md).",
    ),
]


def baseline(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a campaign, such as runs/latest.")],
    into: Annotated[Path, typer.Option(metavar="FILE", help="The baseline to write or to update.")],
    prune: Annotated[bool, typer.Option("--prune", help="Drop results that this run does not have.")] = False,
) -> None:
    """Keep the results of a run as a baseline.

    It is a small file to review and to commit. Inconclusive runs and errors are left out, what the run skipped is
    dropped, and results that the run does not have stay.
    """
    from wedgehog.harness.record.store import check_run_folder
    from wedgehog.reports.campaign_folder import load
    from wedgehog.reports.gate.baseline import Baseline, read_baseline, updated, write_baseline
    from wedgehog.reports.gate.difference import KIND_WORDS
    from wedgehog.reports.gate.differences import differences
    from wedgehog.reports.played_cells import cells_of, skipped_of
    from wedgehog.reports.words import many

    with user_mistakes():
        old = read_baseline(into) if into.exists() else Baseline()
        check_run_folder(folder)
        campaign = load(folder.resolve())
        cells = cells_of(campaign)
        fresh = updated(old, campaign, cells, prune=prune)
        if not fresh.cells:
            raise ValueError(f"{folder}: no finished run with a verdict in this folder")
        write_baseline(fresh, into)
    skipped = skipped_of(campaign)
    for it in differences(old.played, fresh.played) if old.cells else ():
        reason = skipped.get((it.scenario, it.agent))
        if it.kind != "gone" or prune or reason:
            because = f"; skipped: {reason}" if reason else ""
            err.print(f"{KIND_WORDS[it.kind]}: {it.where}: {it.says}{because}", markup=False)
    for cell in cells.values():
        if cell.undecided:
            err.print(f"left out: {cell.scenario}, {cell.agent}: {cell.reads()}", markup=False)
    for line in campaign.edited:
        err.print(line, markup=False)
    if campaign.unfinished:
        err.print(f"left out: {many(campaign.lost, 'unfinished run')}", markup=False)
    err.print(f"wrote {into}: {many(sum(map(len, fresh.cells.values())), 'result')}", markup=False)


def compare(
    before: Annotated[str, typer.Argument(metavar="A", help="A run's folder, FOLDER:AGENT, a baseline, or an agent.")],
    after: Annotated[str, typer.Argument(metavar="B", help="The same, to be compared with A.")],
    within: Annotated[Path, typer.Option("--in", metavar="RUN", help="The run of an agent without folder.")] = Path(
        "runs/latest"
    ),
    *,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Compare two runs, versions or agents.

    Prints what got worse, better, new and gone in B.

    Exit code: 0 nothing is worse, 1 something is worse, 2 bad usage, 3 nothing is worse and B has undecided runs.
    """
    from wedgehog.reports.gate.compare import compare_lines, compare_markdown, compared, read_sides
    from wedgehog.reports.gate.differences import exit_code

    with user_mistakes():
        old, new = read_sides(before, after, within)
        found = compared(old, new)
        console = Stdout()
        for line in (compare_markdown if as_markdown else compare_lines)(old, new, found):
            console.print(line, markup=False, soft_wrap=True)
    raise typer.Exit(exit_code(found))


def read_for_gate(path: Path | None) -> "Baseline | None":
    """The baseline after `--baseline`; ValueError before anything is played."""
    if path is None:
        return None
    from wedgehog.reports.gate.baseline import read_baseline

    return read_baseline(path)


def gate_code(folder: Path, known: "Baseline", *, quiet: bool = False) -> int:
    """Compare a campaign with its baseline, print and write what the gate found, and return the exit code.

    The lines go to stdout, or to stderr if stdout has the summary as JSON (`quiet`).
    """
    from wedgehog.reports.gate.gate import annotations, gate, gate_lines, write_gate

    result = gate(folder, known)
    write_gate(result, folder)
    console = err if quiet else Stdout()
    console.print()
    for line in gate_lines(result):
        console.print(line, markup=False, soft_wrap=True)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for line in annotations(result):
            err.out(line, highlight=False)
    return result.exit_code


def print_plan(known: "Baseline | None", cells: set[tuple[str, str]], repeat: int, world: str) -> None:
    """Print how many repeats can decide in this world. ValueError: there is no baseline."""
    from wedgehog.reports.gate.repeat_plan import plan_lines

    if known is None:
        raise ValueError("--plan: expected --baseline FILE too")
    for line in plan_lines(known, cells, repeat, world):
        Stdout().print(line, markup=False, soft_wrap=True)
