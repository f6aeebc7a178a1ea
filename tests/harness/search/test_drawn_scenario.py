"""Drawn scenarios are legal, use only what the agent has, and contain the call of each fault."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from wedgehog.harness.faults.base import registered
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.search.cells import STEPS, Cell, Coverage, cells
from wedgehog.harness.search.draw import HypothesisChoices, SeededChoices
from wedgehog.harness.search.drawn_scenario import Drawer, Palette, items
from wedgehog.harness.search.shrink import smaller

WRITE = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
WHOLE = Palette(True, {"write": WRITE}, True, 2, ("llm", "agent", "channel", "tool:mcp"))
CELLS = cells(WHOLE.links)


def test_every_fault_has_cells():
    """Also a plugin's: nothing names them."""
    assert {cell.fault for cell in CELLS} == set(registered())


@pytest.mark.parametrize("name", sorted(registered()))
def test_a_scenario_of_every_cell_is_legal(name: str):
    """And its conversation has the call at which the fault fires."""
    mine = [cell for cell in CELLS if cell.fault == name]
    for number, cell in enumerate(mine):
        document = Drawer(SeededChoices(f"{number}"), WHOLE).scenario([cell], "drawn-1")
        scenario = Scenario.model_validate(document)
        place = {"turn": 1, "step": 1, **STEPS[cell.step]}
        assert len(scenario.turns[place["turn"] - 1].model) >= place["step"]
        if "tool" in cell.place:
            called = next(iter(items(document["turns"][place["turn"] - 1])))
            assert {"tool", "text"} & called.keys()
            assert scenario.tools_called & {"shell", "look_up"}, "only these tell when they begin and end"


FIRST_CALLS = [it for it in CELLS if it.link == "llm" and it.step == "first call" and "tool" not in it.place]


@settings(max_examples=100)
@given(
    data=st.data(),
    possible=st.lists(st.sampled_from(FIRST_CALLS), min_size=1, max_size=3),
    shell=st.booleans(),
    own=st.booleans(),
)
def test_only_tools_of_the_agent_are_called(data: st.DataObject, possible: list[Cell], shell: bool, own: bool):
    """Without any tool there are no rounds of tools, and a fault after one never fires: such cells are left out."""
    palette = Palette(shell, {"write": WRITE} if own else {}, False, 1, ("llm",))
    document = Drawer(HypothesisChoices(data.draw), palette).scenario(possible, "drawn-1")
    called = {item["tool"] for turn in document["turns"] for item in items(turn) if "tool" in item}
    assert called <= ({"shell"} if shell else set()) | ({"write"} if own else set())
    assert len(document["turns"]) == 1


@settings(max_examples=20)
@given(data=st.data(), chosen=st.lists(st.sampled_from(CELLS), min_size=1, max_size=3))
def test_shrinking_ends(data: st.DataObject, chosen: list[Cell]):
    """Also where every smaller scenario fails; then one turn, one reply and one fault are left."""
    document = Drawer(HypothesisChoices(data.draw), WHOLE).scenario(chosen, "drawn-1")
    for _ in range(200):
        smallest = next(filter(_legal, smaller(document)), None)
        if smallest is None:
            break
        document = smallest
    assert smallest is None
    assert (len(document["turns"]), len(document["faults"])) == (1, 1)


def _legal(document: dict[str, Any]) -> bool:
    try:
        Scenario.model_validate(document)
    except ValidationError:
        return False
    return True


def test_pairs_are_covered_long_before_all_cells_are_tried():
    """Every two of fault, place, call and repetition."""
    coverage, wanted = Coverage(CELLS), {pair for cell in CELLS for pair in cell.pairs}
    covered = set[Any]()
    while covered < wanted:
        cell = coverage.next(60)
        assert cell is not None
        covered.update(cell.pairs)
    assert len(coverage.tried) < len(CELLS) / 4


def test_a_fault_that_takes_longer_than_is_left_waits():
    """The first try of each fault tells how long it takes."""
    slow, quick = (next(cell for cell in CELLS if cell.fault == name) for name in ("stall", "status"))
    coverage = Coverage([slow, quick])
    coverage.took(slow, 30)
    assert coverage.next(20) == quick
    assert coverage.next(20) is None
    assert coverage.next(40) == slow
