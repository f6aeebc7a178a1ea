"""The tools and the database of a scenario file: what they may say, and what is wrong in one line."""

from pathlib import Path

import pytest

from wedgehog.harness.scenario.document import BadFileError
from wedgehog.harness.scenario.scenario_file import load_scenario

HEAD = "name: a-story\nwhy: Because.\nturns:\n  - user: Go on.\n"


def loaded(tmp_path: Path, rest: str):
    (tmp_path / "a.yaml").write_text(HEAD + rest)
    return load_scenario(tmp_path / "a.yaml").scenario


def complaint(tmp_path: Path, rest: str) -> str:
    with pytest.raises(BadFileError) as caught:
        loaded(tmp_path, rest)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"{tmp_path}/")


def test_a_tool_says_its_parameters_in_one_word_each(tmp_path: Path):
    """A question mark makes one optional; a mapping is a JSON Schema as it stands."""
    tools = "tools: {weather: {input: {city: string, days: 'integer?', unit: {enum: [C, F]}}, answer: 21 °C}}\n"
    weather = loaded(tmp_path, tools).tools["weather"]
    properties = {"city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"enum": ["C", "F"]}}
    assert weather.schema_of_input == {"type": "object", "properties": properties, "required": ["city", "unit"]}
    assert (weather.answer, weather.error, weather.delay_s) == ("21 °C", None, 0)


def test_the_database_takes_fifty_milliseconds_per_query_unless_told_otherwise(tmp_path: Path):
    """And a scenario that says nothing of it has none."""
    assert loaded(tmp_path, "store: {}\n").store.latency_s == 0.05
    assert loaded(tmp_path, "").store is None


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("tools: {weather: {input: {city: text}}}\n", "city: expected string, number, integer, boolean, array, object"),
        (
            "tools: {weather: {input: {city: string}, input_schema: {type: object}}}\n",
            "`input` and `input_schema` are two words for one schema: expected one, found both",
        ),
        ("tools: {weather: {anser: x}}\n", "unknown key 'anser' (did you mean 'answer'?)"),
        ("tools: {a b: {}}\n", "a tool's name is a word of at most 128 letters, digits, _, - and ., found 'a b'"),
        ("tools: {shell: {}}\n", "`shell` means the agent's own shell: give the tool another name"),
        ("tools: {find: {}, refind: {}}\n", "'refind' ends in 'find', and a tool is known by how its name ends"),
        ("store: {latency: 1}\n", "unknown key 'latency' (did you mean 'latency_s'?)"),
        ("store: {latency_s: -1}\n", "expected a number of at least 0, found -1"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_with_its_place(tmp_path: Path, rest: str, said: str):
    """File and line first."""
    found = complaint(tmp_path, rest)
    assert said in found and found.startswith("a.yaml:5: ")


TOOLS = "tools: {weather: {}}\nstore: {}\n"


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("{do: lose_result}", "lose_result is something our tool host does: write `link: tool:mcp`"),
        ("{link: tool:mcp, do: lose_result}", "lose_result fires at a tool call: write `at: {tool: 1}`"),
        ("{link: tool:mcp, at: {phase: connect}, do: lose_result}", "lose_result fires at a tool call"),
        (
            "{link: tool:mcp, at: {phase: request}, do: unauthorized}",
            "or `phase: connect` for every request of the turn",
        ),
        (
            "{link: tool:mcp, at: {phase: connect, step: 2}, do: unauthorized}",
            "from the start of a turn: leave `step` out",
        ),
        (
            "{link: tool:mcp, at: {tool: 1, when: done}, do: lose_result}",
            "lose_result fires before the result is there: leave `when` out",
        ),
        ("{link: tool:mcp, do: {cut: fin}}", "on tool:mcp a cut fires at `tool: 1`"),
        ("{link: tool:mcp, at: {event: 3}, do: {cut: fin}}", "`event` is a place in a model's reply"),
        ("{link: tool:mcp, at: {phase: body}, do: {cut: fin}}", "`phase` is a place in a model's reply"),
        (
            "{link: tool:mcp, at: {tool: 1, when: done}, do: {cut: fin}}",
            "a cut fires before the first byte",
        ),
        ("{link: store:db, at: {tool: 1}, do: {stall: forever}}", "on store:db a stall fires at `query: 1`"),
        ("{link: store:db, at: {phase: connect}, do: cut}", "cut counts bytes: write `query: 1`"),
        ("{link: tool:web, at: {phase: connect}, do: cut}", "cut counts bytes: write `phase: request`"),
        ("{link: tool:web, do: cut}", "on tool:web a cut fires at `phase: request`"),
        ("{link: tool:web, at: {byte: 9}, do: stall}", "on tool:web a stall fires at `phase: request`"),
        ("{link: tool:web, do: refuse}", "on tool:web a refuse fires at `phase: connect`, at `after_s` or at a `tool`"),
        ("{link: channel, at: {event: 2}, do: {latency: 1}}", "on channel a latency fires at `phase: connect`"),
        ("{at: {query: 1}, do: {cut: fin}}", "`query` counts what our database is asked: write `link: store:db`"),
    ],
)
def test_a_fault_that_could_never_strike_is_refused(tmp_path: Path, fault: str, said: str):
    """Instead of a run that is inconclusive for ever."""
    assert said in complaint(tmp_path, f"{TOOLS}faults:\n  - {fault}\n")


@pytest.mark.parametrize(
    "fault",
    [
        "{link: tool:mcp, at: {tool: 1}, do: lose_result}",
        "{link: tool:mcp, at: {tool: 2, byte: 30}, do: {cut: fin}}",
        "{link: tool:mcp, at: {phase: connect}, do: refuse}",
        "{link: tool:mcp, at: {after_s: 2}, do: {down: 3}}",
        "{link: tool:mcp, at: {tool: 1, when: done}, do: refuse}",
        "{link: store:db, at: {query: 3, byte: 5}, do: {stall: forever}}",
        "{link: store:db, at: {phase: connect}, do: {latency: 1}}",
        "{link: store:db, at: {tool: 1}, do: refuse}",
        "{link: tool:web, at: {phase: request}, do: cut}",
        "{link: tool:web, at: {after_s: 1}, do: {latency: 1}}",
        "{link: channel, do: give_up}",
        "{link: channel, at: {event: 2}, do: down}",
    ],
)
def test_a_fault_that_can_strike_is_taken(tmp_path: Path, fault: str):
    """Each with its own trigger."""
    calls = "    model: [[{tool: weather}, {tool: weather}]]\n"
    assert len(loaded(tmp_path, f"{calls}{TOOLS}faults:\n  - {fault}\n").faults) == 1


def test_a_fault_on_tools_that_are_not_there_is_refused(tmp_path: Path):
    """The host without tools, the database without a use."""
    lose = "    model: [{tool: weather}]\nfaults:\n  - {link: tool:mcp, at: {tool: 1}, do: lose_result}\n"
    assert "our tool host has no tools: write `tools: {…: {answer: …}}`" in complaint(tmp_path, lose)
    stall = "faults:\n  - {link: store:db, at: {query: 1}, do: {stall: forever}}\n"
    assert "there is no database: write `store: {latency_s: 0.05}`" in complaint(tmp_path, stall)
