"""An answer is read from the place where the agent's user would read it."""

import pytest

from wedgehog.harness.agents.output_source import OutputSource
from wedgehog.harness.scenario.mistake import BadValueError


@pytest.mark.parametrize(
    ("place", "text", "expected"),
    [
        ("stdout", "hello\n", "hello\n"),
        ("json:answer", '{"answer": "hi"}', "hi"),
        ("json:a.b[1].c", '{"a": {"b": [{}, {"c": "x"}]}}', "x"),
        ("json:payloads[*].text", '{"payloads": [{"text": "one"}, {"no": 1}, {"text": "two"}]}', "one\ntwo"),
        ("json:[0].t", '[{"t": "first"}]', "first"),
        ("json:meta", '{"meta": {"n": 1}}', '{"n": 1}'),
        ("json:answer", 'starting up\n[not json\n{\n "answer": "hi"\n}\n', "hi"),
        ("json:answer", '{"other": 1}', ""),
        ("json:a.b", '{"a": "text"}', ""),
        ("json:a[5]", '{"a": [1]}', ""),
        ("json:error", '{"error": null}', ""),
        ("json:error", '{"error": false}', ""),
        ("json:answer", "no json at all", ""),
        ("json:answer", "", ""),
        ("json:error", 'data: {"text": "Half"}\n\ndata: {"error": "no key"}\n\ndata: [DONE]\n\n', "no key"),
        ("json:error", '{"error": "of a log"}\n{\n "answer": "hi"\n}\n', ""),
        ("jsonl:text", '{"text": "one"}\n{"text": "two"}\n{"end": true}\n', "two"),
        ("jsonl:item.text", 'log\n{"item": {"text": "a"}}\n{"item": {"te', "a"),
        ("jsonl:text", "nothing here", ""),
        ("jsonl:text", '{"text": "one\u2028line"}', "one\u2028line"),
        ("joined:d", 'event: x\ndata: {"d": "in "}\r\n\r\ndata:{"d": "two"}\r\n\r\ndata: [DONE]\r\n', "in two"),
        ("joined:d.text", '{"d": {"text": "in "}}\n{"d": 1}\n{"d": {"text": "two"}}', "in two"),
    ],
)
def test_the_text_at_a_place_is_read_and_a_missing_one_is_empty(place: str, text: str, expected: str):
    """A missing path, broken JSON and null all give an empty string."""
    assert OutputSource.parse(place).within(text) == expected


@pytest.mark.parametrize(
    ("place", "text", "expected"),
    [
        ("json:usage.in", 'log\n{"usage": {"in": 12}}', 12),
        ("json:cost", '{"cost": 0.25}', 0.25),
        ("json:cost", 'data: {"cost": 0.25}\n\ndata: [DONE]\n\n', 0.25),
        ("json:cost", '{"cost": 0}', 0),
        ("json:models[*].in", '{"models": [{"in": 1}, {"in": 2}]}', 3),
        ("jsonl:usage.in", '{"usage": {"in": 5}}\n{"usage": {"in": 7}}\n{"end": true}', 7),
        ("json:cost", '{"cost": true}', None),
        ("json:cost", '{"cost": "1"}', None),
        ("json:cost", "nothing here", None),
    ],
)
def test_the_number_at_a_place_is_read(place: str, text: str, expected: float | None):
    """Several of one line are added; of several lines the last one counts; zero is a number."""
    assert OutputSource.parse(place).number_within(text) == expected


TEXT, OTHER, END = '{"text": "Done"}', '{"text": "first"}', '{"end": true}'


@pytest.mark.parametrize(
    ("place", "lines", "last"),
    [
        ("stdout", ["Done", "saved", "", " "], 1),
        ("json:text", ["log", "{", '"text": "Done"', "}", ""], 3),
        ("jsonl:text", [OTHER, TEXT, END, ""], 1),
        ("jsonl:text", [TEXT, END, TEXT, ""], 0),
        ("jsonl:text", [TEXT, OTHER, TEXT, ""], 2),
        ("jsonl:text", [END, '{"text": ""}', "log"], None),
        ("joined:text", [TEXT, TEXT, '{"text": "\\n"}', END], 1),
        ("stdout", ["", " "], None),
    ],
)
def test_an_answer_is_complete_with_the_last_line_that_changes_it(place: str, lines: list[str], last: int | None):
    """Not with later lines of something else, blank ones, or one that says the same again."""
    assert OutputSource.parse(place).last_line(lines) == last


@pytest.mark.parametrize("place", ["", "json", "json:", "json:a..b", "json:a[x]", "file:", "stdout:x", "xml:a"])
def test_a_place_that_means_nothing_is_refused(place: str):
    """Before anything runs."""
    with pytest.raises(BadValueError):
        OutputSource.parse(place)
