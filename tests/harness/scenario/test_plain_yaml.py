"""libyaml and PyYAML's own code read the same nodes; a mistake has PyYAML's words, whichever reads the file."""

import random
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from wedgehog.harness.scenario import plain_yaml
from wedgehog.harness.scenario.document import BadFileError, read

HERE = Path("story.yaml")
DAMAGE = (
    "\t",
    '"',
    "'",
    ":",
    ": ",
    "- ",
    "[",
    "]",
    "{",
    "}",
    ",",
    "&a ",
    "*a",
    "!x ",
    "%",
    "---\n",
    "|",
    ">",
    "#",
    "?",
)
DAMAGE = (
    *DAMAGE,
    "\n",
    "\r",
    "\x07",
    "\x85",
    "\u2028",
    "\U0001f600",
    "\\",
    "@",
    "`",
    "~",
    "  ",
    "null",
    "<<: ",
    "...\n",
)


def shape(node: yaml.Node | None) -> Any:
    """A node's tag, value and line, and those of the nodes in it."""
    match node:
        case yaml.MappingNode():
            value: Any = [(shape(key), shape(entry)) for key, entry in node.value]
        case yaml.SequenceNode():
            value = [shape(entry) for entry in node.value]
        case _:
            value = node and node.value
    missing = node is not None and (node.tag, value) == ("tag:yaml.org,2002:null", "")
    return node and (node.tag, value, None if missing else node.start_mark.line)


def nodes(text: str, loader: Any) -> Any:
    """What this loader reads; None: a mistake."""
    try:
        return shape(yaml.compose(text, Loader=loader))
    except yaml.YAMLError:
        return None


def told(text: str) -> str:
    """The data, or the mistake as a user reads it."""
    try:
        return str(read(text, HERE).data)
    except BadFileError as bad:
        return str(bad)


def scenario_texts() -> list[str]:
    """A third of the stock catalogue, to save time."""
    folder = Path(str(files("wedgehog.scenarios"))) / "catalogue"
    return [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.yaml"))[::3]]


def damaged(text: str, draw: random.Random) -> str:
    """The text with one part replaced."""
    at = draw.randrange(len(text))
    return text[:at] + draw.choice(DAMAGE) + text[at + draw.choice((0, 0, 1, 5)) :]


@pytest.fixture
def without_libyaml(monkeypatch: pytest.MonkeyPatch):
    """PyYAML can be built without it."""
    monkeypatch.setattr(plain_yaml, "LOADERS", (plain_yaml.PlainLoader,))


def test_both_readers_read_the_same_nodes_whole_and_damaged():
    """Tags, values and lines are equal wherever both read the text."""
    draw = random.Random(7)
    whole = scenario_texts()
    both = 0
    for text in (*whole, *(damaged(text[:600], draw) for text in whole * 4)):
        slow, fast = (nodes(text, loader) for loader in (plain_yaml.PlainLoader, plain_yaml.LibyamlLoader))
        if slow and fast:
            assert fast == slow, text
            both += 1
    assert both > len(whole) * 2


def test_libyaml_reads_a_right_file(monkeypatch: pytest.MonkeyPatch):
    """PyYAML's own code, nine times slower, is not asked."""
    monkeypatch.setattr(plain_yaml, "PlainLoader", None)
    monkeypatch.setattr(plain_yaml, "LOADERS", (plain_yaml.LibyamlLoader, None))
    assert told("a: [1, on, 0x1f, 2024-01-02]") == "{'a': [1, 'on', 31, '2024-01-02']}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "a: [1, 2\nc: 3\n",
            "story.yaml:2: not valid YAML: while parsing a flow sequence expected ',' or ']', but got",
        ),
        ("a:\n\t- b\n", "story.yaml:2: not valid YAML: a tab where only spaces may indent"),
        ("a: 1\n---\nb: 2\n", "story.yaml:2: not valid YAML: expected a single document, found a second one"),
        ("a: *b\n", "story.yaml:1: not valid YAML: found undefined alias 'b'"),
        ("a: &b 1\nc: &b 2\n", "story.yaml:2: not valid YAML: found duplicate anchor 'b'; first occurrence"),
        ("a: b: c\n", "story.yaml:1: not valid YAML: mapping values are not allowed here"),
        ("a: {b:{c: d}}\n", "{'a': {'b': {'c': 'd'}}}"),
    ],
)
def test_a_mistake_has_the_same_words_with_and_without_libyaml(text: str, expected: str, request):
    """libyaml's own would be `did not find expected node content`."""
    with_it = told(text)
    request.getfixturevalue("without_libyaml")
    assert with_it == told(text)
    assert with_it.startswith(expected)


@pytest.mark.parametrize("part", ["[", "{a: ", "- ", "[{a: "])
def test_a_deeply_nested_file_is_refused_without_a_crash(part: str):
    """libyaml's own composer overflows the stack of the process on it."""
    assert told(part * 100_000) == "story.yaml: nested too deeply"


def test_a_file_is_read_where_pyyaml_has_no_libyaml(without_libyaml: None):
    """The base install needs no compiled part of PyYAML."""
    assert told("on: [1, no]") == "{'on': [1, 'no']}"
