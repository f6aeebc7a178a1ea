"""How a Python program is read that is not executed: the calls, functions and keys in its source."""

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Final

QUESTIONS: Final = ("message", "prompt", "text", "question", "query", "user_input", "input", "content")
"""The usual names of a message, the likeliest first."""
ANSWERS: Final = ("answer", "reply", "response", "result", "output", "completion", "text", "content", "message")
"""The usual names of an answer, the likeliest first."""
HEALTH: Final = re.compile(r"health|ready|ping|status|live")
"""What the path of a health check has."""
CHAT: Final = re.compile(r"chat|message|ask|prompt|quer|complet|agent|answer|repl(?:y|ies)|respond|run|invoke|say")
"""What the path has at which a service takes messages, and the name of a function that answers them."""
SESSION: Final = re.compile(r"session|conversation|thread|chat_?id|user_?id", re.IGNORECASE)
"""What the name of a session has."""
VARIABLE_OF: Final = r"(?:\benviron(?:\.get\(|\[)\s*['\"]|\bgetenv\(\s*['\"]|\bprocess\.env(?:\.|\[['\"]))"
"""What stands before the name of a variable of the environment where Python or Node reads it."""
KINDS: Final = ("type", "event", "kind", "role", "op", "cmd", "method", "action")
"""The usual names of the key that says what a line is."""
ERRORS: Final = ("error", "failure", "err", "exception")
"""The usual names of an error, the likeliest first."""
BESIDE: Final = frozenset(
    {*KINDS, *ERRORS, "id", "ok", "status", "done", "model", "usage", "stream", "seq", "time", "ts", "elapsed"}
)
"""Keys that stand beside a message or an answer."""
_WRAPPERS: Final = ("JSONResponse", "ORJSONResponse", "json_response")
"""Calls whose `content` or `data` is the whole answer."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


def of_service(asked: list[dict[str, object]], paths: Iterable[str]) -> dict[str, object]:
    """The keys of the likeliest route that takes messages, and of a health check among the paths of other routes."""
    if not asked:
        return {}
    alive = next((path for path in paths if HEALTH.search(path)), "")
    likely = min(asked, key=lambda keys: ("answer" not in keys, not CHAT.search(str(keys["url"]))))
    return {**({"ready": alive} if alive else {}), **likely}


def keys_read_at_once(tree: ast.AST) -> set[str]:
    """The keys of `loads(…)["key"]` and `loads(…).get("key")`."""
    loads = {ast.unparse(it) for it in calls(tree) if called_name(it) in ("loads", "load")}
    return keys_read(tree, loads)


def likeliest(words: tuple[str, ...], found: set[str]) -> str:
    """The first word that is found, as a key or as the end of a path of keys."""
    ends = {path.rpartition(".")[2]: path for path in sorted(found, key=lambda path: -path.count("."))}
    return next((ends[word] for word in words if word in ends), "")


def likeliest_or_only(words: tuple[str, ...], found: set[str]) -> str:
    """The likeliest, or the only one that is no usual companion of a message or an answer."""
    left = [key for key in found if key not in BESIDE and not SESSION.search(key)]
    return likeliest(words, found) or (left[0] if len(left) == 1 else "")


def with_session(path: str, parameter: re.Pattern[str], special: re.Pattern[str]) -> str:
    """A route's path with `{session}` for parameters that name a session (`/sessions/{id}`); empty if it has others."""

    def names_one(it: re.Match[str]) -> bool:
        before = it.string[: it.start()].rstrip("/").rpartition("/")[2]
        return bool(SESSION.search(it[1]) or (it[1] in ("id", "name") and SESSION.search(before)))

    written = parameter.sub(lambda it: "{session}" if names_one(it) else it[0], path)
    return "" if special.search(written.replace("{session}", "")) else written


def keys_read(tree: ast.AST, names: set[str]) -> set[str]:
    """The keys of `it["key"]` and `it.get("key")`, where `it` has one of these names, or is Flask's request."""
    keys = set()
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(value=it, slice=ast.Constant(value=str(key)), ctx=ast.Load()):
                keys.add((ast.unparse(it), key))
            case ast.Call(func=ast.Attribute(value=it, attr="get"), args=[ast.Constant(value=str(key)), *_]):
                keys.add((ast.unparse(it), key))
    return {key for it, key in keys if it in names or it.startswith(("request.", "await request."))}


def names_given(tree: ast.AST, value: ast.Call) -> Iterator[str]:
    """The names that a call's result is given."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and node.value is value:
            yield from (it.id for it in node.targets if isinstance(it, ast.Name))


def keys_written(value: ast.expr | None) -> Iterator[str]:
    """The keys of a dictionary, by their paths; of a call, its arguments and the keys of a dictionary in them."""
    pairs: list[tuple[str, ast.expr]] = []
    if isinstance(value, ast.Dict):
        named = ((getattr(key, "value", None), it) for key, it in zip(value.keys, value.values, strict=True))
        pairs = [(key, it) for key, it in named if isinstance(key, str)]
    if isinstance(value, ast.Call):
        wraps = called_name(value) in _WRAPPERS
        pairs = [(word.arg, word.value) for word in value.keywords if word.arg and not wraps]
        whole = [*value.args, *(word.value for word in value.keywords if wraps and word.arg in ("content", "data"))]
        yield from (key for it in whole if isinstance(it, ast.Dict) for key in keys_written(it))
    for key, it in pairs:
        yield key
        yield from (f"{key}.{below}" for below in keys_written(it if isinstance(it, ast.Dict) else None))


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    """All calls below a node."""
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def called_name(call: ast.Call) -> str:
    """The last name of what is called."""
    return last_name(call.func)


def last_name(value: ast.expr | None) -> str:
    """`c` of `a.b.c` or of `c`; empty for other expressions."""
    return value.attr if isinstance(value, ast.Attribute) else getattr(value, "id", "")


def functions(tree: ast.Module) -> Iterator[Function]:
    """All functions of a module, also those in classes and functions."""
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
