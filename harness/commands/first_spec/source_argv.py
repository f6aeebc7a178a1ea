"""What a Python program reads from `sys.argv` itself: the message, alone or beside a folder or name of its session."""

import ast
from collections.abc import Iterator
from typing import Final

from wedgehog.harness.commands.first_spec.source_reading import QUESTIONS, called_name, calls, functions, last_name

FOLDERS: Final = (
    "folder",
    "dir",
    "directory",
    "session_dir",
    "session_folder",
    "sessions_dir",
    "state_dir",
    "data_dir",
)
FILES: Final = ("file", "path", "session_file", "session_path", "history_file", "history_path", "state_file", "store")
SESSIONS: Final = ("session", "session_id", "session_name", "thread", "thread_id", "conversation", "conversation_id")
_MEANS: Final = {
    **dict.fromkeys(QUESTIONS, "{message}"),
    **dict.fromkeys(FOLDERS, "{session_dir}"),
    **dict.fromkeys(FILES, "{session_dir}/session"),
    **dict.fromkeys(SESSIONS, "{session}"),
}
"""What stands for an argument of each usual name."""


def words_of_argv(tree: ast.Module) -> str:
    """The words behind the program's name, such as `{session_dir} {message}`; empty if the source does not show them.

    An option parser reads them in its own way.
    """
    if any(called_name(it) in ("ArgumentParser", "add_argument", "getopt") for it in calls(tree)):
        return ""
    for names in _names(tree):
        words = [_MEANS.get(name.lower(), "") for name in names]
        if all(words) and words.count("{message}") == 1:
            return " ".join(words)
    plain = any(ast.unparse(it) == "sys.argv[1]" for it in ast.walk(tree) if isinstance(it, ast.Subscript))
    return "{message}" if plain else ""


def _names(tree: ast.Module) -> Iterator[list[str]]:
    """The names of all arguments, wherever the source gives each of them one."""
    made = {it.name: it for it in functions(tree)}
    for call in calls(tree):
        function = made.get(last_name(call.func))
        if function is not None and [ast.unparse(it) for it in call.args] == ["*sys.argv[1:]"]:
            yield [it.arg for it in function.args.args]
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Assign)
            and len(node.targets) == 1
            and isinstance(node.targets[0], ast.Tuple | ast.List)
        ):
            names = [last_name(it) for it in node.targets[0].elts]
            value = ast.unparse(node.value)
            if value == "sys.argv":
                yield names[1:]
            elif value in ("sys.argv[1:]", f"sys.argv[1:{len(names) + 1}]"):
                yield names
