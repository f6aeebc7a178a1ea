"""An agent's tools for files are found by their parameters, whatever they are called."""

from typing import Any

import pytest

from wedgehog.fake_llm.conversation import ToolSpec
from wedgehog.fake_llm.reply import FileAction
from wedgehog.fake_llm.script.file_tools import FILE_ROLES, file_action, find_file_tool, offered_roles, tool_for

WHERE = "/projects/a.txt"
ACTIONS = {
    "read_file": FileAction("read_file", "a.txt"),
    "write_file": FileAction("write_file", "a.txt", content="one\ntwo\n"),
    "edit_file": FileAction("edit_file", "a.txt", old="one", new="two"),
    "search_files": FileAction("search_files", ".", pattern="one"),
}


def tool(name: str, *required: str, optional: tuple[str, ...] = (), says: str = "", **more: Any) -> ToolSpec:
    properties = {it: {"type": "string"} for it in (*required, *optional)} | more
    return ToolSpec(name, says, {"type": "object", "properties": properties, "required": list(required)})


def called(tools: list[ToolSpec], role: str) -> tuple[str, dict[str, Any]] | None:
    found = find_file_tool(tools, role)
    return None if found is None else (found.name, found.arguments(ACTIONS[role], WHERE))


EDITOR = {"type": "string", "enum": ["view", "create", "str_replace", "insert"]}
FILE = {"type": "object", "properties": {"path": {"type": "string"}, "start_line": {}}, "required": ["path"]}
MODE = {"type": "string", "enum": ["replace", "patch"]}
ONE = {"type": "object", "properties": {"oldText": {"type": "string"}, "newText": {"type": "string"}}}
DIFF = {"type": "string", "description": "------- SEARCH\n[old lines]\n=======\n[new lines]\n+++++++ REPLACE"}
UNIFIED = "--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-one\n+two\n"
AGENTS: dict[str, tuple[list[ToolSpec], dict[str, Any]]] = {
    "Claude Code": (
        [
            tool("Bash", "command"),
            tool("Read", "file_path"),
            tool("Write", "file_path", "content"),
            tool("Edit", "file_path", "old_string", "new_string"),
            tool("Grep", "pattern", optional=("path",)),
        ],
        {
            "read_file": ("Read", {"file_path": WHERE}),
            "write_file": ("Write", {"file_path": WHERE, "content": "one\ntwo\n"}),
            "edit_file": ("Edit", {"file_path": WHERE, "old_string": "one", "new_string": "two"}),
            "search_files": ("Grep", {"pattern": "one", "path": WHERE}),
        },
    ),
    "opencode": (
        [
            tool("edit", "filePath", "oldString", "newString"),
            tool("read", "filePath"),
            tool("write", "content", "filePath"),
        ],
        {
            "read_file": ("read", {"filePath": WHERE}),
            "write_file": ("write", {"filePath": WHERE, "content": "one\ntwo\n"}),
            "edit_file": ("edit", {"filePath": WHERE, "oldString": "one", "newString": "two"}),
        },
    ),
    "gemini-cli": (
        [
            tool("read_file", "file_path"),
            tool("replace", "file_path", "instruction", "old_string", "new_string"),
            tool("write_file", "file_path", "content"),
            tool("search_file_content", "pattern", optional=("dir_path",)),
        ],
        {
            "read_file": ("read_file", {"file_path": WHERE}),
            "write_file": ("write_file", {"file_path": WHERE, "content": "one\ntwo\n"}),
            "search_files": ("search_file_content", {"pattern": "one", "dir_path": WHERE}),
        },
    ),
    "pi": (
        [
            tool("read", "path"),
            tool("write", "path", "content"),
            tool("edit", "path", "edits", edits={"type": "array", "items": ONE}),
        ],
        {
            "read_file": ("read", {"path": WHERE}),
            "write_file": ("write", {"path": WHERE, "content": "one\ntwo\n"}),
            "edit_file": ("edit", {"path": WHERE, "edits": [{"oldText": "one", "newText": "two"}]}),
        },
    ),
    "one editor": (
        [tool("str_replace_editor", "command", "path", optional=("file_text", "old_str", "new_str"), command=EDITOR)],
        {
            "read_file": ("str_replace_editor", {"path": WHERE, "command": "view"}),
            "write_file": ("str_replace_editor", {"path": WHERE, "file_text": "one\ntwo\n", "command": "create"}),
            "edit_file": (
                "str_replace_editor",
                {"path": WHERE, "old_str": "one", "new_str": "two", "command": "str_replace"},
            ),
        },
    ),
    "hermes": (
        [tool("patch", "mode", optional=("path", "old_string", "new_string", "patch"), mode=MODE)],
        {"edit_file": ("patch", {"path": WHERE, "old_string": "one", "new_string": "two", "mode": "replace"})},
    ),
    "a patch": (
        [tool("apply_patch", "input")],
        {
            "write_file": (
                "apply_patch",
                {"input": "*** Begin Patch\n*** Add File: a.txt\n+one\n+two\n*** End Patch"},
            ),
            "edit_file": (
                "apply_patch",
                {"input": "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch"},
            ),
        },
    ),
    "Cline": (
        [
            tool("read_files", files={"type": "array", "items": FILE}),
            tool("search_codebase", queries={"type": "array", "items": {"type": "string"}}),
        ],
        {
            "read_file": ("read_files", {"files": [{"path": WHERE}]}),
            "search_files": ("search_codebase", {"queries": ["one"]}),
        },
    ),
    "blocks that search and replace": (
        [tool("write_to_file", "path", "content"), tool("replace_in_file", "path", "diff", diff=DIFF)],
        {
            "write_file": ("write_to_file", {"path": WHERE, "content": "one\ntwo\n"}),
            "edit_file": (
                "replace_in_file",
                {"path": WHERE, "diff": "------- SEARCH\none\n=======\ntwo\n+++++++ REPLACE\n"},
            ),
        },
    ),
    "unified diffs": (
        [tool("apply_patch", "patch", says="Applies a unified diff to one or more files.")],
        {
            "write_file": ("apply_patch", {"patch": "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n"}),
            "edit_file": ("apply_patch", {"patch": UNIFIED}),
        },
    ),
    "a unified diff of one file": (
        [tool("edit_file", "path", "diff", says="The diff is what `git diff` writes.")],
        {"edit_file": ("edit_file", {"path": WHERE, "diff": UNIFIED})},
    ),
    "a diff of its own": ([tool("edit_file", "path", "diff", says="Changes a file.")], {}),
    "Serena": (
        [tool("create_text_file", "relative_path", "content"), tool("read_file", "relative_path")],
        {
            "read_file": ("read_file", {"relative_path": WHERE}),
            "write_file": ("create_text_file", {"relative_path": WHERE, "content": "one\ntwo\n"}),
        },
    ),
    "none of these": (
        [tool("bash", "command"), tool("web_search", "query"), tool("read_url", "url"), tool("write_note", "text")],
        {},
    ),
}


@pytest.mark.parametrize("agent", AGENTS)
def test_each_agents_own_tools_are_called_in_their_own_way(agent: str):
    """A role without a tool is not offered."""
    tools, expected = AGENTS[agent]
    found = {role: call for role in FILE_ROLES if (call := called(tools, role))}
    assert {role: found[role] for role in expected} == expected
    assert offered_roles(tools) == set(found) >= set(expected)


def test_required_parameters_that_the_scenario_does_not_name_are_filled():
    """Gemini CLI wants to read why a text is replaced."""
    _, args = called(AGENTS["gemini-cli"][0], "edit_file") or ("", {})
    assert {"instruction", "file_path", "old_string", "new_string"} == set(args)


@pytest.mark.parametrize(
    ("name", "args"),
    [("read_file", {}), ("read_file", {"path": 3}), ("edit_file", {"path": "a"}), ("weather", {"path": "a"})],
)
def test_a_call_with_other_arguments_is_no_call_of_a_file_tool(name: str, args: dict[str, Any]):
    """A tool of the tool host may have the same name."""
    assert file_action(name, args) is None


CODEX = [tool("exec_command", "cmd"), tool("view_image", "path"), tool("apply_patch", "input")]


@pytest.mark.parametrize(
    ("path", "name", "args"),
    [
        ("Notes.PNG", "view_image", {"path": WHERE}),
        ("notes.txt", "exec_command", {"cmd": f"cat {WHERE}"}),
    ],
)
def test_an_agent_without_a_tool_that_reads_has_its_shell_and_one_for_pictures(path: str, name: str, args: Any):
    """As Codex: its model reads files by commands."""
    action = FileAction("read_file", path)
    found = tool_for(CODEX, action)
    assert found is not None
    assert (found.name, found.arguments(action, WHERE)) == (name, args)
    assert tool_for(CODEX[2:], action) is None


def test_its_shell_neither_writes_nor_searches():
    """Only tools of the agent's own do that."""
    assert [tool_for(CODEX[:2], ACTIONS[role]) for role in ("write_file", "edit_file", "search_files")] == [None] * 3


def test_a_file_that_is_emptied_by_a_patch_gets_an_empty_line():
    """A patch has no form for a file without a line."""
    empty = FileAction("write_file", "a.txt", content="")
    found = tool_for(CODEX, empty)
    assert found is not None
    assert found.arguments(empty, WHERE) == {"input": "*** Begin Patch\n*** Add File: a.txt\n+\n*** End Patch"}
