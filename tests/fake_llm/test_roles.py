"""Roles: a script can run a command in an agent's shell of any name."""

from typing import Any

import pytest

from wedgehog.fake_llm.conversation import ToolSpec
from wedgehog.fake_llm.script.roles import find_fetch, find_question, find_shell, names_question
from wedgehog.fake_llm.script.schema_values import fill


def tool(name: str, required: tuple[str, ...] = (), **properties: Any) -> ToolSpec:
    return ToolSpec(name, "", {"type": "object", "properties": properties, "required": list(required)})


TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("advertised", "arguments"),
    [
        (tool("Bash", ("command",), command=TEXT, timeout={"type": "number"}), {"command": "ls"}),
        (tool("exec_command", ("cmd",), cmd=TEXT), {"cmd": "ls"}),
        (
            tool("run_commands", ("commands",), commands={"type": "array", "items": TEXT}),
            {"commands": ["ls"]},
        ),
        (tool("run_shell_command", ("command",), command=TEXT, description=TEXT), {"command": "ls"}),
        (tool("Terminal", script=TEXT), {"script": "ls"}),
        (tool("sh", ("command",), command=TEXT), {"command": "ls"}),
        (tool("mcp__box__run", ("cmd",), cmd=TEXT), {"cmd": "ls"}),
        (
            tool(
                "bash",
                ("command", "description", "background", "workdir"),
                command=TEXT,
                description=TEXT,
                background={"type": "boolean"},
                workdir={"type": "string", "enum": ["/tmp", "/"]},
            ),
            {"command": "ls", "description": "a short phrase", "background": False, "workdir": "/tmp"},
        ),
    ],
)
def test_a_command_becomes_the_arguments_that_this_shell_requires(advertised: ToolSpec, arguments: dict[str, Any]):
    """The command's own parameter, as text or as a list of one, and what is required besides; nothing optional."""
    shell = find_shell([tool("read", path=TEXT), advertised])
    assert shell is not None and shell.name == advertised.name
    assert shell.arguments("ls") == arguments


@pytest.mark.parametrize(
    "advertised",
    [
        tool("read_file", path=TEXT),
        tool("bash", path=TEXT),
        tool("bash", command={"type": "object"}),
        tool("search", command=TEXT),
        tool("dry_run", command=TEXT),
        tool("publish", command=TEXT),
        ToolSpec("bash", "", None),
        ToolSpec("bash", "", {}),
        ToolSpec("bash", "", {"type": "object", "properties": None}),
    ],
)
def test_a_tool_that_takes_no_command_is_no_shell(advertised: ToolSpec):
    """Neither by its name alone nor by its parameter alone; a tool without a schema causes no error."""
    assert find_shell([advertised]) is None


@pytest.mark.parametrize(
    "kind",
    [
        {"type": ["string", "null"]},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"anyOf": [{"type": "string"}, {"type": "array", "items": TEXT}]},
    ],
)
def test_a_command_that_may_also_be_something_else_can_still_be_text(kind: dict[str, Any]):
    """Optional parameters and unions, as schema generators write them."""
    shell = find_shell([tool("bash", command=kind)])
    assert shell is not None and shell.arguments("ls") == {"command": "ls"}


def test_the_first_shell_of_several_is_taken():
    """In the order in which the agent advertises them."""
    shell = find_shell([tool("bash", command=TEXT), tool("exec", cmd=TEXT)])
    assert shell is not None and shell.name == "bash"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string"}, "a short phrase"),
        ({"type": "boolean"}, False),
        ({"type": "null"}, None),
        ({"type": "integer"}, 1),
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "number", "minimum": -3}, 1),
        ({"type": "string", "enum": ["low", "high"]}, "low"),
        ({"const": 7}, 7),
        ({"type": "string", "default": "x"}, "x"),
        ({"type": "string", "default": None}, None),
        ({"type": ["null", "integer"]}, 1),
        ({"type": "array", "items": {"type": "string"}}, []),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [1, 1]),
        ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, False),
        ({"type": "object"}, {}),
        ({"properties": {"a": {"type": "integer"}, "b": {}}}, {"a": 1, "b": "a short phrase"}),
        ({"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]}, {"a": 1}),
        ({}, "a short phrase"),
    ],
)
def test_a_schema_is_filled_with_a_small_value_of_its_kind(schema: dict[str, Any], value: Any):
    """Background calls with a structured answer get one that fits."""
    assert fill(schema) == value


@pytest.mark.parametrize(
    ("advertised", "arguments"),
    [
        (tool("WebFetch", ("url", "prompt"), url=TEXT, prompt=TEXT), {"url": "http://x/", "prompt": "a short phrase"}),
        (tool("mcp__web__fetch", ("url",), url=TEXT), {"url": "http://x/"}),
        (tool("read_url", uri=TEXT), {"uri": "http://x/"}),
        (tool("scrape", urls={"type": "array", "items": TEXT}), {"urls": ["http://x/"]}),
        (tool("http_get", url=TEXT), {"url": "http://x/"}),
        (tool("visit_webpage", url=TEXT), {"url": "http://x/"}),
    ],
)
def test_an_address_becomes_the_arguments_that_this_reader_requires(advertised: ToolSpec, arguments: dict[str, Any]):
    """The first tool whose name says that it reads pages, and that takes an address."""
    reader = find_fetch([tool("web_search", query=TEXT), tool("clone", url=TEXT), advertised])
    assert reader is not None and reader.name == advertised.name
    assert reader.arguments("http://x/") == arguments


@pytest.mark.parametrize(
    "advertised",
    [
        tool("web_search", query=TEXT),
        tool("git_clone", url=TEXT),
        tool("fetch", id=TEXT),
        tool("browser_open_url", url=TEXT),
        tool("download", url=TEXT),
    ],
)
def test_a_tool_that_does_more_with_an_address_or_takes_none_is_no_reader(advertised: ToolSpec):
    """A browser would open its window."""
    assert find_fetch([advertised]) is None


@pytest.mark.parametrize(
    ("name", "asks"),
    [
        ("AskUserQuestion", True),
        ("ask_followup_question", True),
        ("request_user_input", True),
        ("question", True),
        ("clarify", True),
        ("vscode_askQuestions", True),
        ("mcp__desk__ask_human", True),
        ("multitask_user", False),
        ("ask_agent", False),
        ("list_questions_asked", False),
        ("task", False),
    ],
)
def test_a_tool_that_asks_the_user_is_known_by_its_name(name: str, asks: bool):
    """It takes words of some kind."""
    assert names_question(name) is asks
    assert (find_question([tool("bash", command=TEXT), tool(name, q=TEXT)]) is not None) is asks
    assert find_question([tool(name)]) is None
