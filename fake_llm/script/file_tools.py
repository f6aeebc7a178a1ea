"""File tools by role: a scenario's `read_file` is an agent's Read, its `edit_file` a str_replace or a patch."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from wedgehog.fake_llm.conversation import ToolSpec
from wedgehog.fake_llm.reply import FileAction
from wedgehog.fake_llm.script.patches import edit_form, patch_form
from wedgehog.fake_llm.script.roles import filled, find_shell, kinds_of
from wedgehog.fake_llm.script.schema_values import resolved

READ_FILE: Final = "read_file"
WRITE_FILE: Final = "write_file"
EDIT_FILE: Final = "edit_file"
SEARCH_FILES: Final = "search_files"
FILE_ROLES: Final[Mapping[str, frozenset[str]]] = {
    READ_FILE: frozenset(("path",)),
    WRITE_FILE: frozenset(("path", "content")),
    EDIT_FILE: frozenset(("path", "old", "new")),
    SEARCH_FILES: frozenset(("path", "pattern")),
}
"""The arguments of each role in a scenario."""
VIEW_PICTURE: Final = "view_picture"
"""What some tools do for `read_file` with pictures, and only with these."""
_PICTURES: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_LISTED_PATHS = ("paths", "files")
_PATHS = (
    *("path", "file_path", "filepath", "filename", "file_name", "file", "absolute_path", "relative_path"),
    *("target_file", "relative_workspace_path"),
    *_LISTED_PATHS,
)
_CONTENTS = ("content", "contents", "file_text", "text", "file_content", "data", "body")
_OLD = ("old_string", "old_str", "old_text", "oldstring", "oldstr", "oldtext", "search", "old", "find", "before")
_NEW = ("new_string", "new_str", "new_text", "newstring", "newstr", "newtext", "replace", "new", "replacement", "after")
_PATCHES = ("patch", "patch_text", "patchtext", "input", "diff", "blocks")
_READS = re.compile(r"(^|[_.])(read|view|open|cat|get|load)$|read_?file|(view|open|load|get)_?file|file_?read", re.I)
_WRITES = re.compile(
    r"(^|[_.])(write|create|save)$|(write|create|save|overwrite)_?(to_?)?(the_?)?(new_?)?(text_?)?file|file_?writ", re.I
)
_VIEWS = re.compile(r"(view|read|open|load|show)_?(the_?)?(image|picture|photo)", re.I)
_PICTURE_PATHS = (*_PATHS, "image_path", "image", "picture")
_PATTERNS = ("pattern", "regex", "query", "search_pattern", "search_term", "search", "patterns", "queries")
_LISTS = (*_LISTED_PATHS, "patterns", "queries")
"""Parameters that take a list of texts."""
_FOLDERS = (*_PATHS, "directory", "dir", "dir_path", "folder", "search_path", "target_directory", "root", "cwd")
_SEARCHES = re.compile(
    r"(^|[_.])grep|rip_?grep|search_?(in_?)?(the_?)?(files?|code|text|contents?|dir)|find_?in_?files|file_?search", re.I
)
_APPLIES_PATCH = re.compile(r"apply_?(the_?)?(git_?|unified_?)?(patch|diff)|(git|patch)_?apply|patch_?files?", re.I)
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    READ_FILE: ("view", "read", "open"),
    WRITE_FILE: ("create", "write", "overwrite"),
    EDIT_FILE: ("str_replace", "replace", "edit"),
}
"""What one tool for all of it is told to do, as in `command: str_replace`."""


@dataclass(frozen=True, slots=True)
class FileTool:
    """An agent's tool for files: its name, and how it is called."""

    name: str
    arguments: Callable[[FileAction, str], dict[str, Any]]
    """(action, absolute path) -> arguments."""


def file_action(name: str, args: Mapping[str, Any]) -> FileAction | None:
    """What a scenario's call does with a file; None if it is no call of a file tool.

    >>> file_action("read_file", {"path": "notes.txt"}).path
    'notes.txt'
    """
    if name not in FILE_ROLES or set(args) != FILE_ROLES[name] or not all(isinstance(it, str) for it in args.values()):
        return None
    return FileAction(name, **args)


def find_file_tool(tools: Sequence[ToolSpec], role: str) -> FileTool | None:
    """The first advertised tool that reads, writes or edits a file, or None.

    >>> tool = ToolSpec("Edit", schema={"properties": dict.fromkeys(
    ...     ("file_path", "old_string", "new_string"), {"type": "string"})})
    >>> find_file_tool([tool], "edit_file").arguments(FileAction("edit_file", "a.txt", old="a", new="b"), "/w/a.txt")
    {'file_path': '/w/a.txt', 'old_string': 'a', 'new_string': 'b'}
    """
    return next((found for tool in tools if (found := _FINDERS[role](tool))), None)


def tool_for(tools: Sequence[ToolSpec], action: FileAction) -> FileTool | None:
    """The tool that does this: one of the agent's own, also one only for pictures; or its shell, which reads the file.

    >>> shell = ToolSpec("bash", schema={"properties": {"command": {"type": "string"}}})
    >>> tool_for([shell], FileAction("read_file", "my list.txt")).arguments(FileAction("read_file", ""), "/my list.txt")
    {'command': "cat '/my list.txt'"}
    """
    viewer = find_file_tool(tools, VIEW_PICTURE) if is_picture(action.path) and action.role == READ_FILE else None
    if found := find_file_tool(tools, action.role) or viewer:
        return found
    shell = find_shell(tools)
    if shell is None or action.role != READ_FILE:
        return None
    return FileTool(shell.name, lambda _, where: shell.arguments(f"cat {shlex.quote(where)}"))


def is_picture(path: str) -> bool:
    """Whether a file has the name of a picture."""
    return path.lower().endswith(_PICTURES)


def offered_roles(tools: Sequence[ToolSpec]) -> frozenset[str]:
    """The roles for files that one of these tools can play."""
    return frozenset(role for role in (*FILE_ROLES, VIEW_PICTURE) if find_file_tool(tools, role) is not None)


def _reader(tool: ToolSpec) -> FileTool | None:
    schema, properties = _parameters(tool)
    path, chooser = _named(properties, _PATHS), _chooser(properties, READ_FILE)
    changes = _named(properties, _CONTENTS) or _named(properties, _OLD)
    if path and (chooser or (_READS.search(tool.name) and not changes)):
        return FileTool(tool.name, lambda it, where: _given(schema, {path: where, **chooser}))
    listed = _list_of_files(schema) if _READS.search(tool.name) else None
    return None if listed is None else FileTool(tool.name, lambda it, where: listed.arguments(schema, where))


def _viewer(tool: ToolSpec) -> FileTool | None:
    schema, properties = _parameters(tool)
    picture = _named(properties, _PICTURE_PATHS) if _VIEWS.search(tool.name) else ""
    return FileTool(tool.name, lambda it, where: _given(schema, {picture: where})) if picture else None


def _writer(tool: ToolSpec) -> FileTool | None:
    schema, properties = _parameters(tool)
    path, content, chooser = (
        _named(properties, _PATHS),
        _named(properties, _CONTENTS),
        _chooser(properties, WRITE_FILE),
    )
    writes = chooser or (_WRITES.search(tool.name) and not _named(properties, _OLD))
    if path and content and writes:
        return FileTool(tool.name, lambda it, where: _given(schema, {path: where, content: it.content, **chooser}))
    return _patcher(tool)


def _editor(tool: ToolSpec) -> FileTool | None:
    schema, properties = _parameters(tool)
    path, old, new = (_named(properties, names) for names in (_PATHS, _OLD, _NEW))
    chooser, listed = _chooser(properties, EDIT_FILE), _list_of_edits(schema)
    if path and old and new:
        return FileTool(tool.name, lambda it, where: _given(schema, {path: where, old: it.old, new: it.new, **chooser}))
    if listed is not None and (path or listed.path):
        return FileTool(tool.name, lambda it, where: listed.arguments(schema, path, it, where))
    patch = _named(properties, _PATCHES)
    if path and patch and (form := edit_form(_words(tool, patch))):
        return FileTool(tool.name, lambda it, where: _given(schema, {path: where, patch: form(it), **chooser}))
    return _patcher(tool)


def _patcher(tool: ToolSpec) -> FileTool | None:
    schema, properties = _parameters(tool)
    patch = _named(properties, _PATCHES) if _APPLIES_PATCH.search(tool.name) else ""
    if not patch or _named(properties, _PATHS):
        return None
    form = patch_form(_words(tool, patch))
    return FileTool(tool.name, lambda it, where: _given(schema, {patch: form(it)}))


def _searcher(tool: ToolSpec) -> FileTool | None:
    schema, properties = _parameters(tool)
    pattern = _named(properties, _PATTERNS) if _SEARCHES.search(tool.name) else ""
    folder = _named(properties, _FOLDERS)
    if not pattern:
        return None
    return FileTool(
        tool.name, lambda it, where: _given(schema, {pattern: it.pattern} | ({folder: where} if folder else {}))
    )


_FINDERS: Final[Mapping[str, Callable[[ToolSpec], FileTool | None]]] = {
    READ_FILE: _reader,
    VIEW_PICTURE: _viewer,
    WRITE_FILE: _writer,
    EDIT_FILE: _editor,
    SEARCH_FILES: _searcher,
}


def _parameters(tool: ToolSpec) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Its schema, and the schemas of its parameters."""
    schema = tool.schema or {}
    return schema, schema.get("properties") or {}


def _words(tool: ToolSpec, parameter: str) -> str:
    """What the agent says of a tool, and of one of its parameters."""
    _, properties = _parameters(tool)
    return f"{tool.description}\n{properties[parameter].get('description', '')}"


def _given(schema: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """Arguments with these texts, each in a list where the tool takes only lists; other required ones are filled."""
    properties = schema.get("properties") or {}
    fitting = {name: text if "string" in kinds_of(properties[name]) else [text] for name, text in given.items()}
    return filled(schema, fitting)


@dataclass(frozen=True, slots=True)
class _ListOfEdits:
    """The parameter that takes a list of edits, and the names within one; `path` is empty if it stands beside."""

    name: str
    old: str
    new: str
    path: str

    def arguments(self, schema: Mapping[str, Any], path: str, action: FileAction, where: str) -> dict[str, Any]:
        one = {self.old: action.old, self.new: action.new} | ({self.path: where} if self.path else {})
        items = resolved(schema["properties"][self.name]["items"], schema)
        return filled(schema, {**({path: where} if path else {}), self.name: [filled(items, one)]})


def _named(properties: Mapping[str, Any], names: Sequence[str]) -> str:
    """The first of the tool's parameters that has one of these names, in any style, and takes a text or a list."""
    for wanted in names:
        for name, schema in properties.items():
            same = name.lower().replace("_", "") == wanted.replace("_", "")
            if same and ("string" in kinds_of(schema) or (wanted in _LISTS and _lists_texts(schema))):
                return name
    return ""


def _lists_texts(schema: Mapping[str, Any]) -> bool:
    return kinds_of(schema) == {"array"} and "string" in kinds_of(schema.get("items") or {"type": "string"})


def _chooser(properties: Mapping[str, Any], role: str) -> dict[str, str]:
    """The argument by which one tool for all file work is told what to do: `{command: view}`."""
    for name, schema in properties.items():
        choices = schema.get("enum", ()) if isinstance(schema, Mapping) else ()
        every = {it for words in _CHOICES.values() for it in words}
        if len(every.intersection(it for it in choices if isinstance(it, str))) > 1:
            word = next((it for it in _CHOICES.get(role, ()) if it in choices), "")
            return {name: word} if word else {}
    return {}


@dataclass(frozen=True, slots=True)
class _ListOfFiles:
    """The parameter that takes a list of files to read, and the name of the path within one."""

    name: str
    path: str

    def arguments(self, schema: Mapping[str, Any], where: str) -> dict[str, Any]:
        items = resolved(schema["properties"][self.name]["items"], schema)
        return filled(schema, {self.name: [filled(items, {self.path: where})]})


def _list_of_files(schema: Mapping[str, Any]) -> _ListOfFiles | None:
    for name, one in (schema.get("properties") or {}).items():
        items = one.get("items") if isinstance(one, Mapping) else None
        inside = resolved(items, schema).get("properties")
        if inside and (path := _named(inside, _PATHS)):
            return _ListOfFiles(name, path)
    return None


def _list_of_edits(schema: Mapping[str, Any]) -> _ListOfEdits | None:
    for name, one in (schema.get("properties") or {}).items():
        items = one.get("items") if isinstance(one, Mapping) else None
        inside = resolved(items, schema).get("properties")
        if inside and (old := _named(inside, _OLD)) and (new := _named(inside, _NEW)):
            return _ListOfEdits(name, old, new, _named(inside, _PATHS))
    return None
