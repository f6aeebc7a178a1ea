"""What the documentation says of files, faults and invariants is what the code does."""

import copy
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from wedgehog.fake_llm.script.conversations import ConversationBounds, ConversationConfig
from wedgehog.fake_llm.script.script_file import ConversationWhen, ReplyLine, When
from wedgehog.harness.agents.service_spec import Http, HttpCall
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.agents.spec_keys import Limits, Timeout
from wedgehog.harness.commands.reference import _FORMATS, blocks, rendered, schema, table
from wedgehog.harness.faults.base import parse_fault, registered
from wedgehog.harness.invariants import known
from wedgehog.harness.record.expectation import _LIKE
from wedgehog.harness.scenario.document import load
from wedgehog.harness.scenario.fault_config import ANY_PIPE, FaultConfig, TriggerConfig
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.scenario.scenario_keys import PageConfig
from wedgehog.harness.scenario.turn_config import TurnConfig
from wedgehog.reports.rows import COLUMNS

STOCK = Path(str(files("wedgehog.scenarios"))) / "incidents"
DOCS = Path(__file__).parents[2] / "docs"
SCENARIOS = sorted([*STOCK.glob("*/scenarios/*.yaml"), *DOCS.glob("examples/**/stall-*.yaml")])
SPECS = sorted([*STOCK.glob("*/agents/*.yaml"), *DOCS.glob("examples/**/my-agent.yaml")])


def complaints(kind, data) -> list[str]:
    return [error.message for error in Draft202012Validator(schema(kind)).iter_errors(data)]


def name_of(path: Path) -> str:
    return f"{path.parent.parent.name}-{path.stem}"


def test_the_committed_pages_and_schemas_are_fresh(docs: Path):
    """`python -m wedgehog.harness.commands.reference docs` would change nothing."""
    stale = [path.name for path, text in rendered(docs).items() if not path.is_file() or path.read_text() != text]
    assert not stale, "run: python -m wedgehog.harness.commands.reference docs"


def test_every_generated_block_stands_on_a_page(docs: Path):
    """A block that no page shows is documentation that is never read."""
    pages = "".join(page.read_text() for page in docs.glob("*.md"))
    assert [name for name in blocks() if f"<!-- generated: {name} -->" not in pages] == []


def test_every_fault_and_invariant_is_in_the_tables():
    """The tables come from the registries."""
    text = "".join(blocks().values())
    rows = [f"| `{name}` |" for name in registered()] + [f"| [`{name}`](#{name}) |" for name in known()]
    assert [row for row in rows if row not in text] == []


def test_the_levels_name_what_counts_at_strict_only(docs: Path):
    """`turn_answered` stands there too: it is stock where a scenario names it."""
    _, _, levels = (docs / "verdicts.md").read_text(encoding="utf-8").partition("\n## Levels\n")
    cells = re.findall(r"\| ((?:`\w+`(?:, )?)+) \|$", levels.partition("\n## ")[0], re.M)
    named = {name for cell in cells for name in re.findall(r"\w+", cell)}
    assert named - {"turn_answered"} == {name for name, it in known().items() if it.level == "strict"}


def test_a_cell_cannot_break_its_table():
    """A bar in a cell is written as text."""
    assert table(("a",), [("x|y",)]).splitlines()[-1] == "| x\\|y |"


@pytest.mark.parametrize("path", SCENARIOS, ids=name_of)
def test_every_stock_scenario_fits_the_schema(path: Path):
    """An editor that checks against the schema complains of none of ours."""
    assert complaints("scenario", load(path).data) == []


@pytest.mark.parametrize("path", SPECS, ids=name_of)
def test_every_stock_spec_fits_the_schema(path: Path):
    """Likewise."""
    assert complaints("agent", load(path).data) == []


def test_the_example_script_fits_the_schema(docs: Path):
    """Likewise."""
    assert complaints("script", load(docs / "examples" / "script.yaml").data) == []


@pytest.mark.parametrize(
    "change",
    [
        {"turms": []},
        {"faults": [{"do": {"cut": "sideways"}}]},
        {"faults": [{"do": {"stal": "forever"}}]},
        {"faults": [{"do": {"status": 200}}]},
        {"faults": [{"do": "drip"}]},
        {"faults": [{"do": "abort", "link": "disk"}]},
        {"invariants": {"turn_deadlin": {}}},
        {"invariants": {"turn_deadline": {"turns": 3}}},
        {"invariants": {"turn_deadline": "sometimes"}},
        {"expect": {"fixed": {"fail": ["nonsense"]}}},
    ],
)
def test_the_schema_sees_a_mistake(docs: Path, change: dict):
    """What the loader refuses for its words, the schema refuses too."""
    data = copy.deepcopy(load(docs / "examples" / "tutorial" / "stall-once.yaml").data)
    assert complaints("scenario", data) == []
    assert complaints("scenario", data | change) != []


@pytest.mark.parametrize(
    "do",
    [
        "abort",
        "stall",
        {"stall": 3},
        {"stall": {"for_s": "forever"}},
        {"drip": {"every_s": 1, "bytes": 4}},
        {"status": {"code": 429, "retry_after": "date:30"}},
        {"endless_tools": False},
        {"slow": {"s_per_kb": 0.5}},
    ],
)
def test_each_way_to_write_a_fault_fits_the_schema(docs: Path, do: object):
    """A name, a name with its main parameter, a name with all parameters: as the loader reads them."""
    assert parse_fault(do)
    data = load(docs / "examples" / "tutorial" / "stall-once.yaml").data
    assert complaints("scenario", data | {"faults": [{"do": do}]}) == []


CONVERSATIONS: list[type[BaseModel]] = [ConversationConfig, ConversationWhen, ConversationBounds]


@pytest.mark.parametrize(
    ("page", "models"),
    [
        ("scenarios.md", [Scenario, TurnConfig, TriggerConfig, FaultConfig, PageConfig, *CONVERSATIONS]),
        ("agents.md", [AgentSpec, Http, Limits, HttpCall, Timeout]),
        ("script.md", [ReplyLine, When]),
    ],
)
def test_every_key_of_a_file_is_explained(docs: Path, page: str, models: list[type[BaseModel]]):
    """A key that the page does not name is a key that is never found."""
    named = set(re.findall(r"`([a-z_]+)", (docs / page).read_text()))
    assert [key for model in models for key in model.model_fields if key not in named] == []


def test_every_stock_bound_is_explained(docs: Path):
    """The page of verdicts names each number with its parameter."""
    rows = [line for line in (docs / "verdicts.md").read_text().splitlines() if line.startswith("|")]
    for found in known().values():
        for name, parameter in found.parameters.items():
            if parameter.default not in (None, False):
                numbers = (f"{parameter.default:g}", f"{parameter.default:,}")
                assert any(f"`{name}`" in row and any(it in row for it in numbers) for row in rows), name


def test_every_column_of_the_summary_is_explained(docs: Path):
    """summary.csv is read by programs that other people write."""
    text = (docs / "reports.md").read_text()
    assert [column for column in COLUMNS if f"`{column}`" not in text] == []


def test_links_between_pages_lead_somewhere(docs: Path):
    """Every relative link of the README and of docs/ names a file that is there."""
    pages = [docs.parent / "README.md", *docs.glob("*.md")]
    found = [(page, link) for page in pages for link in re.findall(r"\]\(([^)#\s]+)", page.read_text())]
    broken = [f"{page.name}: {link}" for page, link in found if "://" not in link and not (page.parent / link).exists()]
    assert broken == []


@pytest.mark.parametrize("kind", ["scenario", "agent", "script"])
def test_the_command_prints_a_schema(kind: str):
    """So that an installed Wedgehog needs no checkout for it."""
    import json

    from typer.testing import CliRunner

    from wedgehog.harness.commands.cli import app

    result = CliRunner().invoke(app, ["schema", kind])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == schema(kind)


def test_a_mistake_in_a_name_is_told_in_words():
    """A regular expression says nothing to most users, so each one of the file formats has words and an example."""
    patterns = {it for kind in ("scenario", "agent", "script") for it in _patterns(_FORMATS[kind][1]())}
    by_hand = {f"^{ANY_PIPE}$", "^off(:|$)"}
    assert len(patterns) > 8 and patterns - by_hand - set(_LIKE) == set()
    assert all(re.search(pattern, says.rpartition("such as ")[2]) for pattern, says in _LIKE.items())


def _patterns(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        yield from (it for key, it in part.items() if key == "pattern" and isinstance(it, str))
        yield from (key for key in part.get("patternProperties", ()))
        part = list(part.values())
    if isinstance(part, list):
        for one in part:
            yield from _patterns(one)
