"""Where the source of a Python service takes messages: its routes, also those of routers in other files."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from wedgehog.harness.commands.first_spec.source_names import Made, SourceNames, Trees
from wedgehog.harness.commands.first_spec.source_reading import (
    ANSWERS,
    HEALTH,
    QUESTIONS,
    SESSION,
    Function,
    called_name,
    calls,
    functions,
    keys_read,
    keys_read_at_once,
    keys_written,
    likeliest,
    names_given,
    of_service,
    with_session,
)

ROUTERS: Final = {"APIRouter": "prefix", "Blueprint": "url_prefix"}
"""What makes a router, with the argument that says its prefix."""
SERVED: Final = ("FastAPI", "Flask")
"""What makes an app."""
MOUNTS: Final = {"include_router": "prefix", "register_blueprint": "url_prefix"}
"""What adds a router to an app or to another router."""
_MOST_MOUNTS: Final = 8
_PARAMETER, _SPECIAL = re.compile(r"(?:\{|<(?:string:)?)(\w+)[}>]"), re.compile(r"[{<]")


class Route(NamedTuple):
    """One path of a service."""

    path: str
    verb: str
    function: Function
    response: ast.expr | None = None
    """FastAPI's `response_model`."""


def route_of(file: Path, trees: Trees) -> dict[str, object]:
    """The keys beside `start` of a service: where it takes messages, and its answer; empty if the source shows none."""
    return _route_of_an_app(file, SourceNames(trees)) or _route_of_a_handler(trees[file])


def _route_of_an_app(file: Path, names: SourceNames) -> dict[str, object]:
    """Of FastAPI, Flask or aiohttp: in the app's file, and in the routers of the project."""
    found = [*_Routers(names).routes(file)]
    asked = [keys for it in found if it.verb == "POST" and (keys := _asked(it, names))]
    return of_service(asked, (it.path for it in found if it.verb == "GET"))


def _asked(route: Route, names: SourceNames) -> dict[str, object]:
    """The keys of a route that takes a message; empty for others."""
    fields = {name: must for it in route.function.args.args for name, must in names.fields(it.annotation).items()}
    read = set() if fields else keys_read(route.function, _bodies(route.function))
    asked = likeliest(QUESTIONS, {*fields} or read)
    url = with_session(route.path, _PARAMETER, _SPECIAL)
    if not (asked and url) or _has_numbers(route):
        return {}
    needed = {name: "{session}" for name, must in fields.items() if must and SESSION.search(name)} | _sessions(read)
    written = _keys_of_answers(route, names)
    said, wrong = likeliest(ANSWERS, written), _error_of(written, names)
    return {
        "url": url,
        "body": {asked: "{message}"} | needed,
        **({"answer": f"json:{said}"} if said else {}),
        **({"error": f"json:{wrong}"} if wrong else {}),
    }


def _sessions(read: set[str]) -> dict[str, str]:
    """The keys among those that a service reads whose names are those of a session."""
    return {key: "{session}" for key in sorted(read) if SESSION.search(key)}


def _error_of(written: set[str], names: SourceNames) -> str:
    """The key of an error: one that the route writes, or that of FastAPI's `HTTPException`; empty if there is none."""
    if wrong := next((key for key in ("error", "detail") if key in written), ""):
        return wrong
    called = {called_name(it) for tree in names.trees.values() for it in calls(tree)}
    return "detail" if {"FastAPI", "HTTPException"} <= called else ""


def _has_numbers(route: Route) -> bool:
    """Whether a parameter of the path is no text."""
    given = (it.annotation for it in route.function.args.args if f"{{{it.arg}}}" in route.path)
    return any(it is not None and not re.search(r"\bstr\b", ast.unparse(it)) for it in given)


def _keys_of_answers(route: Route, names: SourceNames) -> set[str]:
    """The paths of the keys of what a route returns, or of the class that it says it returns."""
    returned = (it.value for it in ast.walk(route.function) if isinstance(it, ast.Return))
    values = [it.elts[0] if isinstance(it, ast.Tuple) and it.elts else it for it in returned]
    named = {it.id for it in values if isinstance(it, ast.Name)}
    for node in ast.walk(route.function):
        if isinstance(node, ast.Assign) and any(isinstance(it, ast.Name) and it.id in named for it in node.targets):
            values.append(node.value)
    paths = {path for value in values for path in keys_written(value)}
    return paths | {*names.fields(route.response), *names.fields(route.function.returns)}


class _Routers:
    """The routes of a project's app and routers."""

    def __init__(self, names: SourceNames) -> None:
        self._names = names
        self._mounts: dict[tuple[Path, str], tuple[Path, ast.Call]] = {}
        """By a router's file and name: where it is added."""
        for file, tree in names.trees.items():
            for call in calls(tree):
                if called_name(call) in MOUNTS and call.args and (made := names.made(file, call.args[0])):
                    self._mounts[made.file, made.name] = file, call

    def routes(self, app: Path) -> Iterator[Route]:
        """Those of the app's file, of a file that makes an app, and of each router in another file."""
        others = (file for file in self._names.trees if file != app)
        for file in (app, *others):
            makes = any(called_name(it) in SERVED for it in calls(self._names.trees[file]))
            yield from self._of_file(file, own=makes or file == app)

    def _of_file(self, file: Path, *, own: bool) -> Iterator[Route]:
        for function in functions(self._names.trees[file]):
            for owner, path, verb, response in _decorated(function):
                made = self._names.made(file, owner)
                router = made if made and called_name(made.call) in ROUTERS else None
                if router or own:
                    yield Route((self._prefix(router) if router else "") + path or "/", verb, function, response)
        for path, verb, handler in _added(self._names.trees[file]):
            if found := self._names.function(file, handler):
                yield Route(path, verb, found)

    def _prefix(self, router: Made, most: int = _MOST_MOUNTS) -> str:
        word = ROUTERS[called_name(router.call)]
        own = self._names.text(_given(router.call, word))
        if (router.file, router.name) not in self._mounts or not most:
            return own
        file, call = self._mounts[router.file, router.name]
        mounted = self._names.text(_given(call, MOUNTS[called_name(call)]))
        if word == "url_prefix":
            return mounted or own
        above = self._names.made(file, call.func.value) if isinstance(call.func, ast.Attribute) else None
        before = self._prefix(above, most - 1) if above and called_name(above.call) in ROUTERS else ""
        return before + mounted + own


def _given(call: ast.Call, word: str) -> ast.expr | None:
    return next((it.value for it in call.keywords if it.arg == word), None)


def _decorated(function: Function) -> Iterator[tuple[ast.expr, str, str, ast.expr | None]]:
    """The routes of a function, as its decorators say: what it is a route of, its path and method."""
    for it in function.decorator_list:
        match it:
            case ast.Call(func=ast.Attribute(value=owner, attr="post" | "get" as verb), args=[path, *_]):
                if isinstance(path, ast.Constant) and isinstance(path.value, str):
                    yield owner, path.value, verb.upper(), _given(it, "response_model")
            case ast.Call(func=ast.Attribute(value=owner, attr="route"), args=[ast.Constant(value=str(path)), *_]):
                posts = any("POST" in ast.unparse(word.value) for word in it.keywords)
                yield owner, path, "POST" if posts else "GET", None


def _added(tree: ast.Module) -> Iterator[tuple[str, str, ast.expr]]:
    """aiohttp's `web.post("/chat", chat)` and `app.router.add_post("/chat", chat)`: path, method and function."""
    for call in calls(tree):
        match call:
            case ast.Call(func=ast.Attribute(attr=verb), args=[ast.Constant(value=str(path)), handler, *_]) if (
                it := re.fullmatch(r"(?:add_)?(post|get)", verb)
            ) and path.startswith("/"):
                yield path, it[1].upper(), handler


def _route_of_a_handler(tree: ast.Module) -> dict[str, object]:
    """Of the standard library's `http.server`."""
    handlers = {it.name: it for it in functions(tree)}
    posted = handlers.get("do_POST")
    if posted is None:
        return {}
    parsed = {name for it in calls(posted) if called_name(it) in ("loads", "load") for name in names_given(posted, it)}
    read = keys_read(posted, parsed) | keys_read_at_once(posted)
    asked = likeliest(QUESTIONS, read)
    if not asked:
        return {}
    said = likeliest(ANSWERS, {key for it in calls(tree) if called_name(it) == "dumps" for key in keys_written(it)})
    alive = next((path for path in _paths(handlers.get("do_GET")) if HEALTH.search(path)), "")
    return {
        **({"ready": alive} if alive else {}),
        "url": next(_paths(posted), "/"),
        "body": {asked: "{message}"} | _sessions(read),
        **({"answer": f"json:{said}"} if said else {}),
    }


def _paths(handler: ast.AST | None) -> Iterator[str]:
    """The paths that a handler compares `self.path` with."""
    for node in ast.walk(handler) if handler is not None else ():
        if isinstance(node, ast.Compare) and ast.unparse(node.left) == "self.path":
            words = (it for it in ast.walk(node) if isinstance(it, ast.Constant) and isinstance(it.value, str))
            yield from (str(it.value) for it in words if str(it.value).startswith("/"))


def _bodies(function: Function) -> set[str]:
    """The names that may hold the body of a request: parameters, and what is read from the request."""
    read = (it for it in ast.walk(function) if isinstance(it, ast.Assign) and "request." in ast.unparse(it.value))
    named = {it.id for node in read for it in node.targets if isinstance(it, ast.Name)}
    return named | {it.arg for it in function.args.args}
