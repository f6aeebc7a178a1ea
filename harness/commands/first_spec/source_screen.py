"""Whether a Python program talks on a screen, and with which prompt. Nothing is executed."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from wedgehog.harness.commands.first_spec.source_reading import called_name, calls, last_name

_ASKS: Final = ("prompt", "prompt_async")


def screen_of(tree: ast.Module) -> dict[str, object] | None:
    """The keys beside `start`, empty if the source shows no prompt; None if the program has no screen."""
    names = set(_imported(tree, "prompt_toolkit"))
    asks = [it for it in calls(tree) if names and _asks(it, names)]
    if not asks:
        return _of_textual(tree) if _is_textual(tree) else _of_curses(tree)
    made = [it for it in calls(tree) if called_name(it) == "PromptSession"]
    prompt = next((text for it in (*asks, *made) if (text := _prompt(it)).strip()), "")
    return {"ready": _alone(prompt)} if prompt else {}


def _asks(call: ast.Call, names: set[str]) -> bool:
    """Whether it is prompt_toolkit's `prompt(…)`, or `prompt(…)` of a session."""
    match call.func:
        case ast.Name(id=name):
            return name in _ASKS and name in names
        case ast.Attribute(value=ast.Name(id="prompt_toolkit"), attr=name):
            return name in _ASKS
        case ast.Attribute(attr=name):
            return name in _ASKS and bool({"PromptSession", "prompt_toolkit"} & names)
    return False


def _prompt(call: ast.Call) -> str:
    """The last line of the text with which a call asks; empty if it is no literal."""
    given = [*call.args[:1], *(it.value for it in call.keywords if it.arg == "message")]
    texts = (it.value for it in given if isinstance(it, ast.Constant) and isinstance(it.value, str))
    return next(texts, "").rsplit("\n", 1)[-1]


def _is_textual(tree: ast.Module) -> bool:
    """Whether it makes an app of Textual, and runs one."""
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    has_app = any(last_name(base) == "App" for it in classes for base in it.bases)
    runs = any(called_name(it) in ("run", "run_async") for it in calls(tree))
    return has_app and runs and any(_imported(tree, "textual"))


def _of_textual(tree: ast.Module) -> dict[str, object]:
    """The words that its input shows while it is empty; it may show them while the agent works, too."""
    words = (word for call in calls(tree) if called_name(call) == "Input" for word in call.keywords)
    given = (word.value for word in words if word.arg == "placeholder")
    text = next((it.value for it in given if isinstance(it, ast.Constant) and isinstance(it.value, str)), "")
    return {"ready": re.escape(text).replace(chr(92) + " ", " ")} if text.strip() else {}


def _of_curses(tree: ast.Module) -> dict[str, object] | None:
    """The last text that it shows before it reads a line; None if it does not use curses."""
    if not any(_imported(tree, "curses")) or not {"wrapper", "initscr"} & {called_name(it) for it in calls(tree)}:
        return None
    shown = ""
    for call in sorted(calls(tree), key=lambda it: (it.lineno, it.col_offset)):
        if called_name(call) in ("addstr", "addnstr", "insstr"):
            texts = [it.value for it in call.args if isinstance(it, ast.Constant) and isinstance(it.value, str)]
            shown = texts[-1] if texts else ""
        if called_name(call) == "getstr" and shown.strip():
            return {"ready": _alone(shown)}
    return {}


def _alone(prompt: str) -> str:
    """The pattern of a prompt behind which nothing is typed; it stays on the screen before a message."""
    text = prompt.rsplit("\n", 1)[-1].rstrip()
    return f"^{re.escape(text).replace(chr(92) + ' ', ' ')} *$"


def _imported(tree: ast.Module, package: str) -> Iterator[str]:
    """The names that a module has from a package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == package:
            yield from (it.name for it in node.names)
        if isinstance(node, ast.Import):
            yield from (package for it in node.names if it.name.partition(".")[0] == package)
