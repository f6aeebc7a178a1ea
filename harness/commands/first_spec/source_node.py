"""How Node programs start, and where services take messages: routes of Express, Fastify, Hono and `node:http`.

Nothing is run. The source is searched by patterns, not parsed: what they miss is asked of the user, or guessed and
said to be a guess.
"""

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from wedgehog.fake_llm.request import mapped
from wedgehog.harness.commands.first_spec.source_argv import words_of_node
from wedgehog.harness.commands.first_spec.source_node_events import places_in_events
from wedgehog.harness.commands.first_spec.source_reading import (
    ANSWERS,
    HEALTH,
    QUESTIONS,
    SESSION,
    likeliest,
    of_service,
    with_session,
)
from wedgehog.harness.commands.first_spec.source_talk import on_port

ENDINGS: Final = (".js", ".mjs", ".cjs", ".ts")
"""Endings of the files that Node runs."""
_READS_LINES: Final = re.compile(r"readline\b[\s\S]*createInterface\(|process\.stdin\.on\(")
"""What a Node program has that takes its messages from stdin."""
_TAKES_ARGUMENTS: Final = re.compile(r"\bprocess\.argv\b(?!\.(?:includes|indexOf|some)\()")
"""What a Node program has that reads its command line, and does not only look for an option in it."""
_HAS_A_PROMPT: Final = re.compile(r"readline\b[\s\S]*\.(?:question|prompt|setPrompt)\(")
"""What a Node program has that asks its user for line after line."""
_QUESTION: Final = rf"\b(?:{'|'.join(QUESTIONS)})\w*"
_MESSAGE_ARGUMENT: Final = re.compile(
    r"\bargv\s*\.slice\(\s*2\s*\)\s*\.join\("  # process.argv.slice(2).join(" ")
    rf"|{_QUESTION}(?:\s*:\s*\w+)?\s*=[^=;\n]*\bargv\b"  # message = process.argv[2]
    rf"|\[[^\]\n]*{_QUESTION}[^\]\n]*\]\s*=\s*process\.argv\b"  # [, , prompt] = process.argv
    r"|\b(?:answer|ask|chat|respond|run|turn)\w*\(\s*process\.argv\b",  # ask(process.argv[2])
    re.IGNORECASE,
)
"""What a Node program has that takes a message from its command line, and not only a file or an option."""
_SERVES: Final = re.compile(r"\.listen\(|\bserve\(")
_RUNS: Final = re.compile(rf"\bprocess\.(?:argv|stdin)\b|\breadline\b|{_SERVES.pattern}")
"""What a Node program has, and a library has not."""
_COMMENT: Final = re.compile(r"^\s*//.*$|/\*[\s\S]*?\*/", re.MULTILINE)
_ROUTE: Final = re.compile(r"\b(\w+)\s*\.(get|post)(?:<[^()'\"`]*>)?\(\s*(['\"`])(/[^'\"`]*)\3\s*,\s*(?:(\w+)\s*\))?")
_COMPARED: Final = re.compile(r"\.(?:url|pathname)\s*={2,3}\s*(['\"`])(/[^'\"`]*)\1")
_MOUNT: Final = re.compile(r"\.(?:use|route)\(\s*(['\"`])(/[^'\"`]*)\1\s*,\s*(\w+)\s*\)")
_REGISTERED: Final = re.compile(r"\.register\(\s*(\w+)\s*,\s*\{\s*prefix:\s*(['\"`])(/[^'\"`]*)\2")
_IMPORTED: Final = re.compile(
    r"\b(?:import\s+\{?\s*(\w+)[^;'\"]*\bfrom\s*|(\w+)\s*\}?\s*=\s*require\(\s*)(['\"])(\.[^'\"]*)\3"
)
_DEFINED: Final = r"\b(?:function\s+{name}\s*\(|(?:const|let|var)\s+{name}\s*=)"
_BODY: Final = r"(?:\b(?:req|request)\.(?:body\b|json\(\))|\bJSON\.parse\(\w+\))"
_TAKEN: Final = re.compile(rf"\{{([^{{}}]*)\}}\s*=\s*(?:await\s+)?[^;\n]*?{_BODY}")
_NAMED: Final = re.compile(rf"\b(\w+)\s*=\s*(?:await\s+)?[^;\n{{]*?{_BODY}(?!\s*[.?\[])")
_BRACES: Final = re.compile(r"\{[^{}]*\}")
_WRITTEN: Final = re.compile(
    rf"(?:\.json|\.send|\bJSON\.stringify|\breturn)\s*\(?\s*\{{((?:[^{{}}]|{_BRACES.pattern})*)\}}"
)
_PARAMETER, _SPECIAL = re.compile(r":(\w+)"), re.compile(r"[:{*(?]")
_START: Final = re.compile(r"(?:node|tsx|ts-node|bun)(?: [\w./@=-]+)+")
_HANDLER_BYTES, _MOST_ROUTES = 3_000, 50


class _Route(NamedTuple):
    path: str
    verb: str
    handler: str
    """The source from the route on, or of the function that it names."""


def node_program(file: Path, text: str, folder: Path) -> Iterator[tuple[Literal["http", "lines", "command"], str, str]]:
    """Yield how a Node program is started: as a service, with lines on stdin, or with the message as an argument."""
    start = start_of(file, folder) if file in _started(folder) else f"node {file.as_posix()}"
    if served := on_port(text, start):
        yield "http", served, str(file)
    elif _READS_LINES.search(text) and not _takes_a_message(text):
        yield "lines", start, str(file)
    elif not _SERVES.search(text):
        yield "command", f"{start} {words_of_node(text)}", str(file)


def node_programs(sources: Mapping[Path, str], folder: Path) -> list[Path]:
    """The files that package.json starts or installs, or names as `main`; without them, the only file that runs."""
    named = package(folder)
    installed = {Path(it) for it in (named.get("bin"), *mapped(named.get("bin")).values()) if isinstance(it, str)}
    sure = installed | _started(folder)
    files = [path for path in sources if path in sure or path.suffix in ENDINGS[:3]]
    running = [path for path in files if path in sure or _RUNS.search(sources[path])]
    found = [path for path in running if path in sure or path == Path(str(named.get("main")))]
    return found or (running if len(running) == 1 else [])


def _started(folder: Path) -> set[Path]:
    """The files in package.json's `start` script, if Wedgehog can run it."""
    script = mapped(package(folder).get("scripts")).get("start")
    return set(map(Path, script.split())) if isinstance(script, str) and _START.fullmatch(script) else set()


def _takes_a_message(text: str) -> bool:
    """Whether the program takes its message as an argument; with a prompt, other arguments may be files or options."""
    reads = _MESSAGE_ARGUMENT if _HAS_A_PROMPT.search(text) else _TAKES_ARGUMENTS
    return reads.search(text) is not None


def start_of(file: Path, folder: Path) -> str:
    """The command line of a Node service: that of package.json's `start` script, or `node FILE`."""
    script = mapped(package(folder).get("scripts")).get("start")
    if not isinstance(script, str) or not _START.fullmatch(script):
        return f"node {file.as_posix()}"
    program, _, rest = script.partition(" ")
    own = f"node_modules/.bin/{program}"
    return f"{own if (folder / own).exists() else program} {rest}"


def package(folder: Path) -> dict[str, Any]:
    """The project's package.json; empty if there is none that can be read."""
    try:
        return mapped(json.loads((folder / "package.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError):
        return {}


def node_route_of(file: Path, sources: Mapping[Path, str]) -> dict[str, object]:
    """The keys beside `start` of a service: where it takes messages, and its answer; empty if the source shows none."""
    found = list(_routes(file, sources))[:_MOST_ROUTES]
    if not found:
        parts = _imported(file, sources).values()
        found = [it for part in dict.fromkeys(parts) for it in _routes(part, sources)][:_MOST_ROUTES]
    asked = [keys for it in found if it.verb == "post" and (keys := _asked(it))]
    return of_service(asked, (it.path for it in found if it.verb == "get"))


def _routes(file: Path, sources: Mapping[Path, str], prefix: str = "", depth: int = 3) -> Iterator[_Route]:
    """The routes of a file, and those of the files whose routers it mounts."""
    text = _COMMENT.sub("", sources.get(file, ""))
    mounts = {name: path for _, path, name in _MOUNT.findall(text)}
    mounts |= {name: path for name, _, path in _REGISTERED.findall(text)}
    for found in _ROUTE.finditer(text):
        app, verb, _, path, handler = found.groups()
        yield _Route(_joined(prefix, mounts.get(app, ""), path), verb, _handler(text, found.end(), handler))
    for found in _COMPARED.finditer(text):
        verb = "get" if HEALTH.search(found[2]) else "post"
        yield _Route(_joined(prefix, found[2]), verb, text[found.end() : found.end() + _HANDLER_BYTES])
    imported = _imported(file, sources)
    for name in (mounts.keys() & imported.keys()) if depth else ():
        yield from _routes(imported[name], sources, _joined(prefix, mounts[name]), depth - 1)


def _joined(*parts: str) -> str:
    path = "".join(part.rstrip("/") for part in parts)
    return path or "/"


def _handler(text: str, start: int, name: str | None) -> str:
    """The source of a route's function, which may stand elsewhere in the file."""
    if name and (defined := re.search(_DEFINED.replace("{name}", name), text)):
        start = defined.end()
    after = _ROUTE.search(text, start)
    return text[start : min(after.start() if after else len(text), start + _HANDLER_BYTES)]


def _imported(file: Path, sources: Mapping[Path, str]) -> dict[str, Path]:
    """The files of the project from which a file imports, by the first name that it imports."""
    found: dict[str, Path] = {}
    for name, required, _, place in _IMPORTED.findall(sources.get(file, "")):
        path = Path(posixpath.normpath((file.parent / place).as_posix()))
        names = [path, *(path.with_suffix(end) for end in ENDINGS), *(path / f"index{end}" for end in ENDINGS)]
        if (source := next((it for it in names if it in sources), None)) is not None:
            found[name or required] = source
    return found


def _asked(route: _Route) -> dict[str, object]:
    """The keys of a route that takes a message; empty for others."""
    read = _keys_read(route.handler)
    asked = likeliest(QUESTIONS, read)
    url = with_session(route.path, _PARAMETER, _SPECIAL)
    if not (asked and url):
        return {}
    body = {asked: "{message}"} | {key: "{session}" for key in sorted(read) if SESSION.search(key)}
    written = {key for keys in _WRITTEN.findall(route.handler) for key in _keys(_BRACES.sub("", keys))}
    said = likeliest(ANSWERS, written)
    places = {"answer": f"json:{said}"} if said else {}
    places |= {"error": "json:error"} if "error" in written else {}
    return {"url": url, "body": body, **(places_in_events(route.handler) or places)}


def _keys_read(handler: str) -> set[str]:
    """The keys that are read from the body of a request."""
    taken = {key for keys in _TAKEN.findall(handler) for key in _keys(keys)}
    names = "|".join([r"\.body", *(rf"\b{re.escape(name)}" for name in _NAMED.findall(handler))])
    return taken | set(re.findall(rf"(?:{names})\??\.(\w+)", handler))


def _keys(words: str) -> Iterator[str]:
    """The keys of an object's or a pattern's source: `message, id: number = 1` has `message` and `id`."""
    for part in words.split(","):
        if key := re.match(r"\s*['\"]?(\w+)", part):
            yield key[1]
