"""The overview of the public reports counts the rows of their pages, and each report stands in one row."""

import re
from collections import Counter
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
CATALOGUE = Path(__file__).parents[2] / "scenarios" / "catalogue"
OVERVIEW = DOCS / "reports-of-the-world.md"
PAGES = sorted((DOCS / "public-reports").glob("*.md"))
CLASSES = ("caught", "strict", "expressible", "half", "out")
ROW = re.compile(r"^\| \[[^\]]+\]\((?P<link>https://[^)]+)\) \|")
LISTED = re.compile(r"^- \*\*(\w+)\*\* \((\d+)\): ")
"""A batch whose reports are lists: a class, and how many it has."""
BATCH = re.compile(r"^\| \[(?P<title>[^\]]+)\]\((?P<page>[\w/.-]+)[^)]*\) \| (?P<numbers>[\d |]+) \|$")
FIRST = "The first hundred"


def class_of(heading: str, line: str) -> str:
    """The class in a row; in the first tables it is that of their heading."""
    cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
    told = next((cell for cell in cells[1:] if cell in CLASSES), None)
    return told or {"Caught at level strict": "strict"}.get(
        heading.partition(":")[0], heading.partition(":")[0].lower()
    )


def rows() -> dict[str, Counter[str]]:
    """How many reports of each class a batch has, by its title."""
    found: dict[str, Counter[str]] = {}
    for page in PAGES:
        heading = ""
        for line in page.read_text().splitlines():
            if line.startswith("## "):
                heading = line.removeprefix("## ")
            of_first = heading.partition(":")[0].lower() in (*CLASSES, "caught at level strict")
            batch = found.setdefault(FIRST if of_first else heading, Counter())
            if ROW.match(line):
                batch[class_of(heading, line)] += 1
            elif (told := LISTED.match(line)) and told[1].lower() in CLASSES:
                batch[told[1].lower()] += int(told[2])
    return {title: counts for title, counts in found.items() if counts}


def overview() -> dict[str, list[int]]:
    """The numbers of each batch: reports, caught when read, caught, strict and all others."""
    told = filter(None, map(BATCH.match, OVERVIEW.read_text().splitlines()))
    return {it["title"]: [int(number) for number in it["numbers"].split(" | ")] for it in told}


def test_the_overview_counts_the_rows_of_each_batch():
    """A row that moves to another class changes both."""
    found = {title: [batch.total(), batch["caught"], batch["strict"]] for title, batch in rows().items()}
    counted = {title: [*numbers, numbers[0] - sum(numbers[1:])] for title, numbers in found.items()}
    assert {title: [numbers[0], *numbers[2:]] for title, numbers in overview().items()} == counted


def test_its_last_line_is_the_sum():
    """And the first paragraph and the README name it."""
    sums = [sum(column) for column in zip(*overview().values(), strict=True)]
    text = OVERVIEW.read_text()
    assert f"| **all** | {' | '.join(f'**{it:,}**' for it in sums)} |" in text
    assert f"These pages hold {sums[0]:,} public reports" in text
    told = (
        f"Of [{sums[0]:,} public reports](docs/reports-of-the-world.md) of broken agents, a stock run finds {sums[2]}, "
    )
    assert f"{told}and {sums[3]} more at level `strict`." in (DOCS.parent / "README.md").read_text()


def test_no_report_has_two_rows():
    """It would be counted twice."""
    found = [row["link"] for page in PAGES for line in page.read_text().splitlines() if (row := ROW.match(line))]
    assert [link for link, times in Counter(found).items() if times > 1] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda it: it.stem)
def test_each_scenario_that_a_row_names_is_there(page: Path):
    """The first words of its last cell name the scenarios."""
    known = {path.stem for path in CATALOGUE.glob("*.yaml")}
    named = set()
    for line in page.read_text().splitlines():
        if ROW.match(line):
            last = line.strip("| ").rpartition(" | ")[2]
            named |= set(re.findall(r"`([a-z0-9]+(?:-[a-z0-9]+)+)`", last.partition(":")[0]))
    assert named <= known, named - known
