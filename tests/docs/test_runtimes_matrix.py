"""The short table of the runtimes counts the cells of the big matrix."""

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "runtimes-matrix.md"
FIRST_PAGE = ROOT / "docs" / "runtimes.md"
CATALOGUE = ROOT / "scenarios" / "catalogue"
ROW = re.compile(r"^\| `(?P<scenario>[a-z0-9-]+)` \| (?P<cells>.+) \|$")
COUNTS = re.compile(r"^\| (?P<runtime>[a-z-]+) \| (?P<numbers>[\d |]+) \|$")
PASS, STRICT, RED, RED_SOMETIMES, OTHER, UNDECIDED = "✓", "s", "✗", "✗¹", "\N{EN DASH}", "?"


def matrix() -> dict[str, list[str]]:
    """The cells of each scenario, in the order of the runtimes."""
    rows = filter(None, map(ROW.match, PAGE.read_text().splitlines()))
    return {row["scenario"]: row["cells"].split(" | ") for row in rows}


def short_table() -> dict[str, list[int]]:
    """The numbers of each runtime: judged, pass, strict, red, five of five, undecided, does not apply."""
    told = filter(None, map(COUNTS.match, PAGE.read_text().splitlines()))
    return {it["runtime"]: [int(number) for number in it["numbers"].split(" | ")] for it in told}


def numbers_of(cells: Counter[str]) -> list[int]:
    """What the short table should say of these cells."""
    red = cells[RED] + cells[RED_SOMETIMES]
    judged = cells[PASS] + cells[STRICT] + red
    return [judged, cells[PASS], cells[STRICT], red, cells[RED], cells[UNDECIDED], cells[OTHER]]


def test_the_short_table_counts_the_cells_of_each_runtime():
    """A cell that changes its sign changes both."""
    columns = [Counter(cells) for cells in zip(*matrix().values(), strict=True)]
    heading = next(line for line in PAGE.read_text().splitlines() if line.startswith("| | cn |"))
    runtimes = heading.strip("| ").split(" | ")
    assert short_table() == dict(zip(runtimes, map(numbers_of, columns), strict=True))


def test_each_cell_has_a_sign_of_the_legend():
    """Another sign would be counted nowhere."""
    signs = {cell for cells in matrix().values() for cell in cells}
    assert signs <= {PASS, STRICT, RED, RED_SOMETIMES, OTHER, UNDECIDED}


def test_the_first_paragraph_counts_the_scenarios():
    """And each of them is in the catalogue."""
    assert f"\n{len(matrix())} scenarios that apply to at least one of ten" in PAGE.read_text()
    assert set(matrix()) <= {path.stem for path in CATALOGUE.glob("*.yaml")}


def test_each_scenario_of_the_catalogue_is_a_row_or_is_said_to_apply_to_none():
    """A new scenario that was never played is missed here."""
    told = PAGE.read_text().split("apply to none of the ten", 1)[1].split("\n## ", 1)[0]
    names = re.findall(r"`([a-z0-9-]+)(…?)`", told)
    others = {row["scenario"] for row in filter(None, map(ROW.match, FIRST_PAGE.read_text().splitlines()))}
    rows = set(matrix()) | others | {name for name, more in names if not more}
    of_kinds = tuple(name for name, more in names if more)
    missed = {path.stem for path in CATALOGUE.glob("*.yaml")} - rows
    assert sorted(name for name in missed if not name.startswith(of_kinds)) == []
