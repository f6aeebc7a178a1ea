"""Drawn scenarios are legal, use only what the agent has, and contain the call of each fault."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from wedgehog.fake_llm.script.file_tools import FILE_ROLES
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.faults.base import registered
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.scenario.trigger import HOST
from wedgehog.harness.search.capabilities import Capabilities
from wedgehog.harness.search.cells import (
    NO_FAULT,
    OF_A_SUBAGENT,
    OF_COMPACTION,
    SECOND_MESSAGE,
    STEPS,
    SearchCell,
    cells,
    drawn_fault,
    drawn_line,
)
from wedgehog.harness.search.coverage import Coverage
from wedgehog.harness.search.draw import HypothesisChoices, SeededChoices
from wedgehog.harness.search.drawn_scenario import Drawer, compaction_probe, fault_of, items
from wedgehog.harness.search.planned_scenarios import one_attempt_each
from wedgehog.harness.search.scripts import HOSTED, SCRIPTS, ScriptKind, as_items, kinds_in
from wedgehog.harness.search.shrink import SIMPLIFICATIONS

WRITE = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
LINKS = ("llm", "agent", "channel", "chat", "tool:mcp")
WHOLE = Capabilities(
    True,
    {"write": WRITE},
    True,
    3,
    LINKS,
    second_message=True,
    wakes_up=True,
    time_scale=20,
    slow_s=100,
    delegates=True,
    compacts=True,
)
CELLS = cells(WHOLE.links)


def smaller(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All candidates, the largest cuts first."""
    return chain.from_iterable(simplification(document) for simplification in SIMPLIFICATIONS)


def test_every_fault_has_cells():
    """But none that nothing heals, or that needs hard-coded hosts, our token endpoint, a WebSocket or a second model.

    Nor one of replies by a schema or in a form of the agent's own, or of a database of its own. A second message and
    no fault are cells too.
    """
    undrawn = {"demands", "poison", "window", "dns_error", "dns_late", "bad_certificate"}
    undrawn |= {"token_expired", "token_late", "refresh_refused", "ws_close", "foreign_thoughts", "wrong_shape"}
    undrawn |= {"database_locked", "plain_answer", "text_call"}
    assert {cell.fault for cell in CELLS} == {*registered(), NO_FAULT, SECOND_MESSAGE} - undrawn


def test_a_chat_refuses_a_message_once_or_three_times():
    """One that refuses all keeps its user from reading anything, whatever the agent does."""
    at_a_chat = [cell for cell in CELLS if "chat" in cell.at]
    assert {(cell.fault, cell.link, cell.place) for cell in at_a_chat} == {("chat_status", "chat", "message sent")}
    assert {cell.times for cell in at_a_chat} == {1, 3}
    drawn = [drawn_line(SeededChoices(str(number)), at_a_chat[0])["do"] for number in range(40)]
    assert {it["chat_status"]["code"] for it in drawn} == {429, 500, 502, 503, 504}
    assert all([*it["chat_status"]] == ["code"] for it in drawn)


def test_cells_that_do_not_fit_are_left_out_and_the_others_keep_their_order():
    """A search draws by number: the same cells in another order would be other scenarios."""
    small = Capabilities(shell=True, second_message=True)
    assert cells(WHOLE.links, small.fits) == [cell for cell in CELLS if small.fits(cell)]


@pytest.mark.parametrize("name", sorted(registered()))
def test_a_scenario_of_every_cell_is_legal(name: str):
    """And its conversation has the call at which the fault fires."""
    mine = [cell for cell in CELLS if cell.fault == name]
    for number, cell in enumerate(mine):
        document = Drawer(SeededChoices(f"{number}"), WHOLE).scenario([cell], "drawn-1")
        scenario = Scenario.model_validate(document)
        place = {"turn": 1, "step": 1, **STEPS[cell.step]}
        assert len(scenario.turns[place["turn"] - 1].model) >= place["step"]
        if cell.step == OF_A_SUBAGENT:
            assert "subagent" in {item.get("tool") for item in items(document["turns"][0])}
        if "tool" in cell.place:
            called = next(iter(items(document["turns"][place["turn"] - 1])))
            assert {"tool", "text"} & called.keys()
            assert scenario.tools_called & {"shell", HOSTED}, "only these tell when they begin and end"


FIRST_CALLS = [
    it
    for it in CELLS
    if it.link == "llm" and it.step == "first call" and "tool" not in it.place and it.script in (None, "plain")
]


Drawn = list[tuple[list[SearchCell], dict[str, Any]]]


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    """2000 scenarios of one to three cells, for an agent that can do everything."""
    found = []
    for seed in range(2000):
        draw = SeededChoices(f"test {seed}")
        chosen = [draw.choose(CELLS) for _ in range(draw.between(1, 3))]
        found.append((chosen, Drawer(draw, WHOLE).scenario(chosen, "drawn-1")))
    return found


def test_thousands_of_drawn_scenarios_are_legal(drawn: Drawn):
    """Each is what the reader of scenario files accepts, and no cell is lost in it."""
    for chosen, document in drawn:
        Scenario.model_validate(document)
        beside = sum("during" in turn for turn in document["turns"])
        free = sum(cell.fault == NO_FAULT for cell in chosen)
        assert len(document["faults"]) + beside + free == len(chosen)


def test_people_processes_and_times_are_drawn_with_their_variants(drawn: Drawn):
    """Kills of every kind, aborts, second messages, wake-ups, resumed sessions, healed and sticky faults."""
    documents = [document for _, document in drawn]
    lines = [line for document in documents for line in document["faults"]]
    kills = [line["do"]["kill"] for line in lines if fault_of(line) == "kill" and isinstance(line["do"], dict)]
    assert {kill.get("whom", "tree") for kill in kills} == {"tree", "leader", "tool", "server"}
    assert {"SIGKILL", "SIGTERM"} <= {kill["signal"] for kill in kills}
    assert {"abort", "give_up", "freeze", "disk_full"} <= {fault_of(line) for line in lines}
    assert {"heal", "sticks_to", "times"} <= {key for line in lines for key in line}
    turns = [turn for document in documents for turn in document["turns"]]
    assert {"user", "resume", "wake_up", "during"} <= {key for turn in turns for key in turn}


@pytest.mark.parametrize("script", SCRIPTS)
def test_each_kind_of_script_is_drawn(script: ScriptKind):
    """In a conversation without a fault; a slow tool leaves some of the turn's time."""
    cell = SearchCell(NO_FAULT, "llm", "call", "first call", 1, script)
    document = Drawer(SeededChoices(script), WHOLE).scenario([cell], "drawn-1")
    usual = script in ("plain", "several tools", "failing tool", "long answer")
    assert list(kinds_in(document["turns"])) == ([] if usual else [script])
    commands = [item.get("args", {}).get("command") for turn in document["turns"] for item in items(turn)]
    assert script != "slow tool" or "sleep 5; echo late" in commands, "100 s at time scale 20"
    assert document["time_scale"] == 20 and document["invariants"]["turn_deadline"] == {"turn_s": 120}


def test_a_tool_that_counts_is_not_told_to_count_far():
    """The work would take most of the turn, and no fault is needed for that."""
    count = {"type": "object", "properties": {"count": {"type": "integer", "minimum": 1, "maximum": 700}}}
    own = Capabilities(False, {"work": {**count, "required": ["count"]}}, False, 1, ("llm",))
    cell = SearchCell(NO_FAULT, "llm", "call", "first call", 1, "several tools")
    documents = [Drawer(SeededChoices(f"{seed}"), own).scenario([cell], "drawn-1") for seed in range(200)]
    counts = {item["args"]["count"] for it in documents for item in items(it["turns"][0]) if "args" in item}
    assert counts == set(range(1, 10))


def test_what_an_agent_shows_of_an_empty_reply_is_not_judged():
    """Some print an empty line, some say that nothing came: both are right."""
    empty = next(cell for cell in CELLS if cell.fault == "empty_reply")
    document = Drawer(SeededChoices("0"), WHOLE).scenario([empty], "drawn-1")
    assert Scenario.model_validate(document).invariants["error_surfaced"] is None


def test_a_slow_fault_has_no_tool_that_takes_most_of_the_turn():
    """Both together would make a patient agent exceed its bound."""
    slow = next(cell for cell in CELLS if cell.fault == "latency")
    document = Drawer(SeededChoices("0"), WHOLE).scenario([replace(slow, script="slow tool")], "drawn-1")
    assert "sleep 0.25; echo late" in str(document)


def test_a_left_out_turn_moves_the_moment_of_a_second_message():
    """It is still said while the same turn runs."""
    beside = {"user": "Wait.", "during": {"turn": 2, "phase": "body"}, "model": [{"text": "b"}]}
    turns = [{"user": "One.", "model": [{"text": "a"}]}, {"user": "Two.", "model": [{"text": "b"}]}, beside]
    shorter = [it["turns"] for it in smaller({"name": "a", "turns": turns, "faults": []})]
    assert [turns[1], {**beside, "during": {"turn": 1, "phase": "body"}}] in shorter


@settings(max_examples=100)
@given(
    data=st.data(),
    possible=st.lists(st.sampled_from(FIRST_CALLS), min_size=1, max_size=3),
    shell=st.booleans(),
    own=st.sets(st.sampled_from(("write", "look_up"))),
)
def test_only_tools_of_the_agent_are_called(
    data: st.DataObject, possible: list[SearchCell], shell: bool, own: set[str]
):
    """Without any tool there are no rounds of tools, and a fault after one never fires: such cells are left out.

    No name of an agent's own tool is taken for one of our tool host's.
    """
    capabilities = Capabilities(shell, dict.fromkeys(own, WRITE), False, 1, ("llm",))
    document = Drawer(HypothesisChoices(data.draw), capabilities).scenario(possible, "drawn-1")
    called = {item["tool"] for turn in document["turns"] for item in items(turn) if "tool" in item}
    assert called <= ({"shell"} if shell else set()) | own and "tools" not in document
    assert len(document["turns"]) == 1


@settings(max_examples=20)
@given(data=st.data(), chosen=st.lists(st.sampled_from(CELLS), min_size=1, max_size=3))
def test_shrinking_ends(data: st.DataObject, chosen: list[SearchCell]):
    """Also where every smaller scenario fails; then one turn, one reply and one fault are left."""
    document = Drawer(HypothesisChoices(data.draw), WHOLE).scenario(chosen, "drawn-1")
    for _ in range(200):
        smallest = next(filter(_legal, smaller(document)), None)
        if smallest is None:
            break
        document = smallest
    assert smallest is None
    assert len(document["turns"]) == 1 and len(document["faults"]) <= 1


def test_a_turn_is_left_out_though_a_fault_on_the_tool_host_stays():
    """The host keeps its tool, which no reply calls any more."""
    killed = next(cell for cell in CELLS if cell.fault == "kill" and cell.link == HOST and cell.step == "compaction")
    for seed in range(9):
        document = Drawer(SeededChoices(str(seed)), WHOLE).scenario([killed], "drawn-1")
        while (smallest := next(filter(_legal, smaller(document)), None)) is not None:
            document = smallest
        assert len(document["turns"]) == 1, seed


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


def test_conversations_without_a_fault_come_first():
    """They are the simplest scenarios; then each fault once, with a place that is new where there is one."""
    coverage, faults = Coverage(CELLS, scripts=WHOLE.scripts), len({cell.fault for cell in CELLS})
    first = [cell for _ in range(len(SCRIPTS) + faults - 1) if (cell := coverage.next(60))]
    assert {cell.script for cell in first[: len(SCRIPTS)] if cell.fault == NO_FAULT} == set(SCRIPTS)
    assert len({cell.fault for cell in first}) == faults
    assert {cell.place for cell in first} == {cell.place for cell in CELLS}


def test_a_fault_that_takes_longer_than_is_left_waits():
    """The first try of each fault tells how long it takes."""
    slow, quick = (next(cell for cell in CELLS if cell.fault == name) for name in ("stall", "status"))
    coverage = Coverage([slow, quick])
    coverage.took(slow, 30)
    assert coverage.next(20) == quick
    assert coverage.next(20) is None
    assert coverage.next(40) == slow


def test_what_only_gateways_show_is_drawn_only_if_asked():
    """No official provider sends two calls of one id, or an event twice."""
    drawn = {cell.fault for cell in CELLS if WHOLE.fits(cell)}
    assert drawn.isdisjoint({"duplicate_ids", "duplicated_event", "reordered_events"}) and "cut" in drawn
    asked = replace(WHOLE, also=("duplicate_ids",))
    assert {cell.fault for cell in CELLS if asked.fits(cell)} == drawn | {"duplicate_ids"}


def test_a_session_file_is_never_torn():
    """Not every agent appends to its file."""
    kills = [cell for cell in CELLS if cell.fault == "kill"]
    drawn = [drawn_line(SeededChoices(str(number)), cell) for number in range(20) for cell in kills[:20]]
    assert drawn and not any("tear" in str(line) for line in drawn)


@pytest.mark.parametrize(("timer_s", "scale"), [(90, 20), (30, 10), (2, 1)])
def test_a_time_scale_leaves_each_timer_time_for_its_work(timer_s: float, scale: float):
    """A tool with a deadline of 30 s would have 1.5 s at a scale of 20: on a busy machine too few to start."""
    command = ["x", "{time_scale}", "{message}"]
    timers = [{"name": "exec", "s": timer_s}, {"name": "turn", "s": 600}]
    spec = AgentSpec.model_validate({"name": "a", "wire": "anthropic", "command": command, "timeouts": timers})
    assert Capabilities.of(spec, ControlFacts(True)).time_scale == scale


def test_usual_faults_come_first_after_conversations_without_any():
    """Each once before any other fault, and those of the provider and the network on every attempt."""
    coverage = Coverage(cells(("llm", "agent")), scripts=tuple(SCRIPTS))
    first = [cell for _ in range(30) if (cell := coverage.next(100.0)) is not None and cell.fault != NO_FAULT]
    usual = sorted(
        (name for name, known in registered().items() if known.usual), key=lambda it: -registered()[it].usual
    )
    assert [cell.fault for cell in first[: len(usual)]] == usual and usual[:3] == ["stall", "status", "cut"]
    assert {cell.times for cell in first[: len(usual)] if cell.link == "llm"} == {"always"}


@pytest.mark.parametrize("name", ["endless_tools", "garbage_arguments", "near_miss_tool"])
def test_a_fault_of_tool_calls_has_a_call_to_change(name: str):
    """At each of its steps and with any other script; an agent without tools does not get it."""
    mine = [cell for cell in cells(("llm",)) if cell.fault == name and cell.times == 1]
    of_calls = [cell for cell in mine if WHOLE.fits(cell)]
    assert of_calls and not any(Capabilities().fits(cell) for cell in of_calls)
    for seed, cell in enumerate(of_calls * 5):
        document = Drawer(SeededChoices(str(seed)), Capabilities(shell=True)).scenario([cell], "drawn")
        at = document["faults"][0].get("at", {})
        reply = document["turns"][at.get("turn", 1) - 1]["model"][at.get("step", 1) - 1]
        assert any("tool" in item for item in as_items(reply)), document


def test_calls_of_subagents_are_drawn_for_an_agent_whose_control_shows_a_tool_for_them():
    """Not for another agent, and no fault of tool calls: what a subagent says is not drawn."""
    spec = AgentSpec.model_validate({"name": "one", "wire": "openai-chat", "command": ["one"]})
    mine = [cell for cell in CELLS if cell.step == OF_A_SUBAGENT]
    delegating = Capabilities.of(spec, ControlFacts(True, shell=True, delegates=True))
    assert {cell.fault for cell in mine if delegating.fits(cell)} >= {"status", "stall", "cut", "abort", "kill"}
    assert not any(delegating.fits(cell) for cell in mine if cell.needs_call)
    assert not any(Capabilities.of(spec, ControlFacts(True, shell=True)).fits(cell) for cell in mine)


def test_requests_for_a_compaction_are_drawn_for_an_agent_that_makes_them():
    """Its model reports a full window in turn 2, and a third turn follows; a shorter session shows none."""
    mine = [cell for cell in CELLS if cell.step == OF_COMPACTION]
    assert {cell.fault for cell in mine if WHOLE.fits(cell)} >= {"status", "stall", "cut", "abort", "kill", "latency"}
    assert not any(other.fits(cell) for cell in mine for other in (Capabilities(turns=3), replace(WHOLE, turns=2)))
    document = compaction_probe(WHOLE)
    assert document is not None and document["faults"][0]["at"] == {"turn": 2, "on": "compaction", "phase": "headers"}
    full = [any("usage" in item for item in items(turn)) for turn in document["turns"]]
    assert full == [False, True, False]
    assert "spend_bound" in document["invariants"]
    assert compaction_probe(Capabilities(turns=2)) is None


@pytest.mark.parametrize("script", SCRIPTS)
def test_one_call_in_a_reply_where_the_model_writes_calls_in_its_text(script: ScriptKind):
    """An agent that reads one call of a text would leave the others out; the kind of the call stays."""
    spec = AgentSpec.model_validate(
        {"name": "a", "wire": "openai-chat", "command": ["a", "{message}"], "calls_in_text": {"shell": "run {command}"}}
    )
    schema = {"properties": {"command": {"type": "string"}}}
    control = ControlFacts(True, shell=True, delegates=True, resumes=True, schemas={"shell": schema})
    can = Capabilities.of(spec, control)
    assert ("several tools" in can.scripts) is False
    assert Capabilities.common([WHOLE, can]).one_call and not Capabilities.common([WHOLE, WHOLE]).one_call
    if script not in can.scripts:
        return
    cell = SearchCell("status", "llm", "call", "call of a subagent", 1, script)
    for seed in range(20):
        drawn = Scenario.model_validate(Drawer(SeededChoices(f"{seed}"), can).scenario([cell], "drawn"))
        assert drawn.calls_at_once == 1
        if script == "failing tool":
            assert "exit 3" in drawn.commands


def test_what_harms_a_subagent_is_not_an_attempt_of_the_main_call():
    """Both fire at once; two faults on one subagent's call fire on its attempts in turn."""
    main, sub = {"do": "cut"}, {"do": "stall", "at": {"on": "subagent"}}
    assert one_attempt_each([main, sub]) == [main, sub]
    assert one_attempt_each([sub, {**sub, "do": "cut"}])[1]["at"] == {"on": "subagent", "attempt": 2}


def test_a_drawn_fault_lasts_longer_than_0_s():
    """One that lasts no time never fires, and its scenario would show nothing."""
    seeds = [SeededChoices(str(number)) for number in range(60)]
    drawn = [drawn_fault(seed, cls) for cls in registered().values() for seed in seeds]
    durations = [do[name].get(key) for do in drawn if isinstance(do, dict) for name in do for key in ("s", "for_s")]
    assert {0.25, "forever"} <= set(durations)
    assert 0 not in durations


def test_files_are_edited_only_by_agents_that_can_and_are_left_out_where_no_call_names_them():
    """Of an agent without such tools nothing is asked; a command beside an edit would hide what became of the file."""
    assert "file edit" not in WHOLE.scripts and "file edit" in replace(WHOLE, files=True).scripts
    cell = SearchCell(NO_FAULT, "llm", "call", "first call", 1, "file edit")
    document = Drawer(SeededChoices("files"), replace(WHOLE, files=True)).scenario([cell], "drawn-1")
    called = {item["tool"] for item in items(document["turns"][0]) if "tool" in item}
    assert called <= {"read_file", "write_file", "edit_file"} and [*document["files"]] == ["hedgehog.txt"]
    longer = document | {"turns": [{"user": "Go on.", "model": [{"text": "Yes. {nonce}"}]}, document["turns"][0]]}
    smaller = [it for simplification in SIMPLIFICATIONS for it in simplification(longer)]
    without = [it for it in smaller if not any("tool" in item for turn in it["turns"] for item in items(turn))]
    assert without and all("files" not in it for it in without)


def test_a_fault_at_a_tool_never_waits_for_an_edit_of_a_file():
    """The agent's own tools for files do not report when they begin: the fault would never fire."""
    at_a_tool = next(cell for cell in cells(LINKS) if "tool" in cell.place and cell.script is None)
    drawers = [Drawer(SeededChoices(str(number)), replace(WHOLE, files=True)) for number in range(40)]
    documents = [drawer.scenario([at_a_tool], "drawn-1") for drawer in drawers]
    first_turns = [{item["tool"] for item in items(it["turns"][0]) if "tool" in item} for it in documents]
    assert all(called & {"shell", "write", HOSTED} and not called & set(FILE_ROLES) for called in first_turns)
