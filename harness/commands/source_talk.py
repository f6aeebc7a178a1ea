"""What the source of a Python program shows of its start, messages and answers. Nothing is executed."""

import ast
import re
from collections.abc import Iterator
from typing import Final

QUESTIONS: Final = ("message", "prompt", "text", "question", "query", "user_input", "input", "content")
"""The usual names of a message, the likeliest first."""
ANSWERS: Final = ("answer", "reply", "response", "result", "output", "completion", "text", "content", "message")
"""The usual names of an answer, the likeliest first."""
_HEALTH: Final = re.compile(r"health|ready|ping|status|live")


def lines_of(tree: ast.Module) -> dict[str, object]:
    """The keys beside `start` of a program that takes lines, at a prompt or as JSON on its stdin; else empty."""
    if prompt := prompt_of(tree):
        sign = f"^{re.escape(prompt).replace(chr(92) + ' ', ' ')}$"
        return {"ready": sign, "done": sign}
    parsed = {name for it in _calls(tree) if _called(it) == "loads" for name in _names_given(tree, it)}
    asked = _likeliest(QUESTIONS, _read(tree, parsed) | _read_at_once(tree))
    printed = {key for it in _calls(tree) if _called(it) == "dumps" for key in _written(it)}
    said = _likeliest(ANSWERS, printed)
    if not (_reads_stdin(tree) and asked and said):
        return {}
    keys: dict[str, object] = {"send": {asked: "{message}"}, "done": f'"{said}":.*}}$', "answer": f"jsonl:{said}"}
    return keys | {"done": f'"({said}|error)":.*}}$', "error": "jsonl:error"} if "error" in printed else keys


def route_of(tree: ast.Module) -> dict[str, object]:
    """The keys beside `start` of a service: where it takes messages, and its answer; empty if the source shows none."""
    return _route_of_an_app(tree) or _route_of_a_handler(tree)


def _route_of_an_app(tree: ast.Module) -> dict[str, object]:
    """Of FastAPI or Flask."""
    routes = [(path, verb, it) for it in _functions(tree) for path, verb in _routes(it)]
    for path, verb, function in routes:
        asked = _likeliest(QUESTIONS, _fields(function, tree) or _read(function, _bodies(function)))
        if verb != "POST" or not asked or "{" in path or "<" in path:
            continue
        returned = (it.value for it in ast.walk(function) if isinstance(it, ast.Return))
        said = _likeliest(ANSWERS, {key for value in returned for key in _written(value)})
        alive = next((path for path, verb, _ in routes if verb == "GET" and _HEALTH.search(path)), "")
        return {
            **({"ready": alive} if alive else {}),
            "url": path,
            "body": {asked: "{message}"},
            **({"answer": f"json:{said}"} if said else {}),
        }
    return {}


def _route_of_a_handler(tree: ast.Module) -> dict[str, object]:
    """Of the standard library's `http.server`."""
    handlers = {it.name: it for it in _functions(tree)}
    posted = handlers.get("do_POST")
    if posted is None:
        return {}
    parsed = {name for it in _calls(posted) if _called(it) in ("loads", "load") for name in _names_given(posted, it)}
    asked = _likeliest(QUESTIONS, _read(posted, parsed) | _read_at_once(posted))
    if not asked:
        return {}
    said = _likeliest(ANSWERS, {key for it in _calls(tree) if _called(it) == "dumps" for key in _written(it)})
    alive = next((path for path in _paths(handlers.get("do_GET")) if _HEALTH.search(path)), "")
    return {
        **({"ready": alive} if alive else {}),
        "url": next(_paths(posted), "/"),
        "body": {asked: "{message}"},
        **({"answer": f"json:{said}"} if said else {}),
    }


def _read_at_once(tree: ast.AST) -> set[str]:
    """The keys of `loads(…)["key"]` and `loads(…).get("key")`."""
    loads = {ast.unparse(it) for it in _calls(tree) if _called(it) in ("loads", "load")}
    return _read(tree, loads)


def _paths(handler: ast.AST | None) -> Iterator[str]:
    """The paths that a handler compares `self.path` with."""
    for node in ast.walk(handler) if handler is not None else ():
        if isinstance(node, ast.Compare) and ast.unparse(node.left) == "self.path":
            words = (it for it in ast.walk(node) if isinstance(it, ast.Constant) and isinstance(it.value, str))
            yield from (str(it.value) for it in words if str(it.value).startswith("/"))


def _likeliest(words: tuple[str, ...], found: set[str]) -> str:
    return next((word for word in words if word in found), "")


def _reads_stdin(tree: ast.Module) -> bool:
    """Whether a loop takes one line of stdin after another."""
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.AsyncFor) and "sys.stdin" in ast.unparse(node.iter):
            return True
        if isinstance(node, ast.While) and "sys.stdin.readline" in ast.unparse(node):
            return True
    return False


def _read(tree: ast.AST, names: set[str]) -> set[str]:
    """The keys of `it["key"]` and `it.get("key")`, where `it` has one of these names, or is Flask's request."""
    keys = set()
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(value=it, slice=ast.Constant(value=str(key)), ctx=ast.Load()):
                keys.add((ast.unparse(it), key))
            case ast.Call(func=ast.Attribute(value=it, attr="get"), args=[ast.Constant(value=str(key)), *_]):
                keys.add((ast.unparse(it), key))
    return {key for it, key in keys if it in names or it.startswith("request.")}


def _names_given(tree: ast.AST, value: ast.Call) -> Iterator[str]:
    """The names that a call's result is given."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and node.value is value:
            yield from (it.id for it in node.targets if isinstance(it, ast.Name))


def _bodies(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The names that may hold the body of a request: parameters, and what is read from the request."""
    read = (it for it in ast.walk(function) if isinstance(it, ast.Assign) and "request." in ast.unparse(it.value))
    named = {it.id for node in read for it in node.targets if isinstance(it, ast.Name)}
    return named | {it.arg for it in function.args.args}


def _written(value: ast.expr | None) -> Iterator[str]:
    """The keys of a dictionary; of a call, the names of its arguments and the keys of a dictionary among them."""
    if isinstance(value, ast.Dict):
        yield from (key.value for key in value.keys if isinstance(key, ast.Constant) and isinstance(key.value, str))
    if isinstance(value, ast.Call):
        yield from (word.arg for word in value.keywords if word.arg)
        yield from (key for it in value.args if isinstance(it, ast.Dict) for key in _written(it))


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _routes(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, str]]:
    """The paths of a function with the method of each, as its decorators say."""
    for it in function.decorator_list:
        match it:
            case ast.Call(func=ast.Attribute(attr="post" | "get" as verb), args=[ast.Constant(value=str(path)), *_]):
                yield path, verb.upper()
            case ast.Call(func=ast.Attribute(attr="route"), args=[ast.Constant(value=str(path)), *_], keywords=more):
                yield path, "POST" if any("POST" in ast.unparse(word.value) for word in more) else "GET"


def _fields(function: ast.FunctionDef | ast.AsyncFunctionDef, tree: ast.Module) -> set[str]:
    """The fields of the classes that a function's parameters are annotated with."""
    named = {ast.unparse(it.annotation) for it in function.args.args if it.annotation is not None}
    made = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name in named)
    lines = (line for node in made for line in node.body if isinstance(line, ast.AnnAssign))
    return {line.target.id for line in lines if isinstance(line.target, ast.Name)}


_OWN_PORT = re.compile(r"['\"]--port['\"]")
_PORT_VARIABLE = re.compile(r"\b(?:environ(?:\.get\(|\[)|getenv\()\s*['\"]PORT['\"]|\bprocess\.env\.PORT\b")
_SERVES = re.compile(
    r"\bserve_forever\(|\brun_app\(|\buvicorn\.run\(|\.run\(.*\bport=|\bstart_server\(|\bserve\(|\.listen\("
)
_ARGUMENTS = re.compile(r"\bsys\.argv\b|^\s*(?:from|import) (?:argparse|click|typer|fire)\b", re.MULTILINE)
_BLOCKS = ("serve_forever", "run_forever", "run_app", "parse_args", "mainloop")


def on_port(text: str, command: str) -> str:
    """A server's command line with its port, as an option or the variable PORT; empty if the source shows neither."""
    if not _SERVES.search(text):
        return ""
    if _OWN_PORT.search(text):
        return f"{command} --port {{port}}"
    return f"PORT={{port}} {command}" if _PORT_VARIABLE.search(text) else ""


def takes_arguments(text: str) -> bool:
    """Whether the program reads its command line."""
    return bool(_ARGUMENTS.search(text))


def prompt_of(tree: ast.Module) -> str:
    """The text with which the program asks for the next message in a loop, `input("> ")`; empty without one."""
    for loop in (node for node in ast.walk(tree) if isinstance(node, ast.While)):
        for call in (node for node in ast.walk(loop) if isinstance(node, ast.Call)):
            match call:
                case ast.Call(func=ast.Name(id="input"), args=[ast.Constant(value=str(prompt))]) if prompt.strip():
                    return prompt.rsplit("\n", 1)[-1]
    return ""


def runs_when_imported(tree: ast.Module) -> bool:
    """Whether an import of the module starts the program, because no `if __name__ …` stands before it."""
    if any(isinstance(node, ast.While) for node in tree.body):
        return True
    plain = (node for node in tree.body if isinstance(node, ast.Expr | ast.Assign))
    calls = (call for node in plain for call in ast.walk(node) if isinstance(call, ast.Call))
    return any(isinstance(call.func, ast.Attribute) and call.func.attr in _BLOCKS for call in calls)
