"""What a program reads from its command line itself: the message, alone or beside a folder or name of its session."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
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
_OF_NODE: Final = re.compile(r"\[([\w\s,]+)\]\s*=\s*process\.argv\b(\.slice\(\s*2\s*\))?(?!\.)")
"""`[folder, message] = process.argv.slice(2)`, or `[, , folder, message] = process.argv`."""
_ONE_OF_NODE: Final = re.compile(r"\b(\w+)\s*=\s*process\.argv\[(\d+)\]")
_ONE_OF_PYTHON: Final = re.compile(r"(?:\w+\()*sys\.argv\[(\d+)\]\)*")


def words_of_argv(tree: ast.Module) -> str:
    """The words behind the program's name, such as `{session_dir} {message}`; empty if the source does not show them.

    An option parser reads them in its own way.
    """
    if any(called_name(it) in ("ArgumentParser", "add_argument", "getopt") for it in calls(tree)):
        return ""
    if words := next(filter(None, map(_words, _names(tree))), ""):
        return words
    plain = any(ast.unparse(it) == "sys.argv[1]" for it in ast.walk(tree) if isinstance(it, ast.Subscript))
    return "{message}" if plain else ""


def words_of_node(text: str) -> str:
    """The same words of a Node program; the message alone if the source does not name each argument."""
    named = [re.split(r"\s*,\s*", names.strip())[0 if cut else 2 :] for names, cut in _OF_NODE.findall(text)]
    one_by_one = _in_order({int(place) - 1: name for name, place in _ONE_OF_NODE.findall(text)})
    return next(filter(None, map(_words, [*named, one_by_one])), "{message}")


def _words(names: Sequence[str]) -> str:
    """What stands for these arguments; empty if one of them is not known, or none is the message."""
    words = [_MEANS.get(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower(), "") for name in names]
    return " ".join(words) if all(words) and words.count("{message}") == 1 else ""


def _in_order(names: Mapping[int, str]) -> list[str]:
    """The names of the arguments 1, 2, …; none if one is missing."""
    return [names[place] for place in sorted(names)] if sorted(names) == [*range(1, len(names) + 1)] else []


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
    yield _in_order(dict(_one_by_one(tree)))


def _one_by_one(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The place and the name of each argument that is assigned by its number: `path = Path(sys.argv[1])`."""
    for node in ast.walk(tree):
        for target, value in _assigned(node):
            if found := _ONE_OF_PYTHON.fullmatch(ast.unparse(value)):
                yield int(found[1]), last_name(target)


def _assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What an assignment gives to each name: `a, b = x, y` has two."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            yield from zip(names, values, strict=False)
        case ast.Assign(targets=[name], value=value):
            yield name, value
