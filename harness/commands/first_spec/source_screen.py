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
        return {} if _is_textual(tree) else None
    made = [it for it in calls(tree) if called_name(it) == "PromptSession"]
    prompt = next((text for it in (*asks, *made) if (text := _prompt(it)).strip()), "")
    # The prompt stays on the screen before the message that was typed: the sign is the prompt alone.
    return {"ready": f"^{re.escape(prompt.rstrip()).replace(chr(92) + ' ', ' ')} *$"} if prompt else {}


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


def _imported(tree: ast.Module, package: str) -> Iterator[str]:
    """The names that a module has from a package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == package:
            yield from (it.name for it in node.names)
        if isinstance(node, ast.Import):
            yield from (package for it in node.names if it.name.partition(".")[0] == package)
