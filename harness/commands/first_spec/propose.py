"""What `wedgehog init` proposes: it reads the project in the working folder, and executes nothing."""

import ast
import os
import re
import sys
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

from wedgehog.fake_llm.request import mapped
from wedgehog.harness.agents.spec_keys import AgentKind
from wedgehog.harness.commands.first_spec.source_bots import bot_of
from wedgehog.harness.commands.first_spec.source_calls import calls_in_text
from wedgehog.harness.commands.first_spec.source_names import SourceNames, Trees, module_of
from wedgehog.harness.commands.first_spec.source_node import ENDINGS, node_program, node_route_of, package, start_of
from wedgehog.harness.commands.first_spec.source_node_lines import node_lines_of
from wedgehog.harness.commands.first_spec.source_options import message_words, resume_flag, shown_words
from wedgehog.harness.commands.first_spec.source_others import CODE, NOTES, scripts
from wedgehog.harness.commands.first_spec.source_pages import page_of
from wedgehog.harness.commands.first_spec.source_reading import QUESTIONS
from wedgehog.harness.commands.first_spec.source_routes import route_of
from wedgehog.harness.commands.first_spec.source_screen import screen_of
from wedgehog.harness.commands.first_spec.source_servers import links_of
from wedgehog.harness.commands.first_spec.source_talk import (
    is_program,
    lines_of,
    on_port,
    prompt_of,
    reads_argv,
    runs_when_imported,
    takes_arguments,
)
from wedgehog.harness.commands.first_spec.source_tokens import token_env
from wedgehog.harness.commands.first_spec.source_wire import wire_of
from wedgehog.harness.commands.watch import source_files

SERVICES: Final = {
    "FastAPI": "python -m uvicorn {factory}--app-dir {folder} {module}:{app} --port {{port}}",
    "Flask": "python -m flask --app {file} run --port {{port}}",
}
"""What makes an app, and the command that serves it."""
ENTRIES: Final = ("agent", "main", "bot", "chat", "cli", "app", "server", "service", "run", "index", "repl")
"""The usual names of the file that starts an agent, the likeliest first."""
ENVIRONMENTS: Final = (".venv", "venv")
"""The usual names of the folder of a project's own environment."""
_ACP: Final = re.compile(
    r"^\s*(?:from|import) acp\b[\s\S]*\b(?:run_agent|AgentSideConnection)\("
    r"|agent-?client-?protocol[\s\S]*\bAgentSideConnection\(",
    re.MULTILINE,
)
"""What an agent has that speaks the Agent Client Protocol with its official package, of Python or of Node."""
_TEST: Final = re.compile(r"(?:^|/)(?:tests?|__tests__)/|(?:^|/)(?:test_|conftest\.)|[._](?:test|spec)\.")
_MOST_FILES, _MOST_BYTES = 300, 200_000


@dataclass(frozen=True)
class Proposal:
    """The first guess of each answer; `because` names the file that led to the command."""

    name: str = "my-agent"
    wire: str = "openai-chat"
    kind: AgentKind = "command"
    command: str | None = None
    because: str = ""
    python: str = ""
    """The Python of the project's own environment; empty without one, or if it is ours."""
    talks: Mapping[str, object] = field(default_factory=dict)
    """With `lines`, `tui` and `http`: the keys beside `start` that the source shows; empty if it shows none."""
    resume: str = ""
    """The command line of the next message; empty if the source shows no flag for it."""
    links: Mapping[str, Any] = field(default_factory=dict)
    """To its own servers, as in a spec."""
    tokens: Mapping[str, str] = field(default_factory=dict)
    """The variables with which it gets access tokens, as in a spec's `env`."""
    calls: Mapping[str, object] = field(default_factory=dict)
    """The keys of a spec for tool calls in text; empty if no prompt asks for them."""


def propose(folder: Path, asked: AgentKind | None = None) -> Proposal:
    """Read the project in a folder, for an agent of this kind or of any; a file that cannot be read is left out."""
    sources = dict(_sources(folder))
    project = mapped(_pyproject(folder).get("project"))
    trees = {path: tree for path, text in sources.items() if path.suffix == ".py" and (tree := _parsed(text))}
    others = dict(_sources(folder, CODE))
    starts = (it for it in _starts(project, sources, trees, folder, others) if asked in (None, it[0]))
    kind, command, because = next(starts, _program_that_stays(asked, sources, trees, folder))
    talks = _talks(kind, Path(because), sources, trees)
    wire = wire_of(sources.values(), others.values(), _notes(folder)) or Proposal.wire
    name, links = _name(project, folder), links_of(folder, sources.values())
    next_one = _resume(kind, command, Path(because), trees) if command else ""
    tokens, calls = token_env(sources.values()), calls_in_text(sources.values())
    return Proposal(name, wire, kind, command, because, _python(folder), talks, next_one, links, tokens, calls)


def _resume(kind: AgentKind, command: str, because: Path, trees: Trees) -> str:
    """The command line of the next message: of a script of the project, any file may read the flag."""
    read = [trees[because]] if because in trees else trees.values()
    flags = [flag for flag in map(resume_flag, read) if flag and kind in ("command", "lines", "tui")]
    return f"{command} {flags[0]}" if flags else ""


def _talks(kind: AgentKind, because: Path, sources: dict[Path, str], trees: Trees) -> dict[str, object]:
    """The keys beside `start` that the source shows."""
    if kind == "tui":
        return (screen_of(trees[because]) or {}) if because in trees else {}
    if kind == "lines":
        return lines_of(trees[because]) if because in trees else node_lines_of(sources.get(because, ""))
    if kind == "page":
        library = page_of(sources.get(because, ""))
        return dict(library.keys) if library else {}
    if kind == "chat":
        return bot_of(sources.get(because, ""))
    if kind == "http":
        return (route_of(because, trees) if because in trees else {}) or node_route_of(because, sources)
    return {}


def _program_that_stays(
    asked: AgentKind | None, sources: dict[Path, str], trees: Trees, folder: Path
) -> tuple[AgentKind, str | None, str]:
    """The one program with a usual name, for a process that stays: the user says that it is one."""
    python = (path for path in trees if _rank(path) < len(ENTRIES) and is_program(sources[path], trees[path]))
    usual = [*(("python", path) for path in python), *(("node", path) for path in _usual_in_node(sources, folder))]
    if asked in ("lines", "tui", "acp") and len(usual) == 1:
        runs, path = usual[0]
        return asked, f"{runs} {path.as_posix()}", str(path)
    return asked or Proposal.kind, None, ""


def _python(folder: Path) -> str:
    own = (name for name in ENVIRONMENTS if (folder / name).resolve() != Path(sys.prefix).resolve())
    return next((python for name in own if os.access(folder / (python := f"{name}/bin/python"), os.X_OK)), "")


def _installed(script: str, folder: Path) -> str:
    """A program of the project, by its path if it is installed in the project's own environment."""
    places = (f"{name}/bin/{script}" for name in ENVIRONMENTS)
    return next((place for place in places if os.access(folder / place, os.X_OK)), script)


def _notes(folder: Path) -> Iterator[str]:
    """The texts of settings and notes, the wire's last resort: no source shows it."""
    return (text for _, text in _sources(folder, NOTES))


def _sources(folder: Path, endings: Collection[str] = (".py", *ENDINGS)) -> Iterator[tuple[Path, str]]:
    code = source_files(folder, endings=endings)
    found = (path for path in code if not _TEST.search(path.relative_to(folder).as_posix()))
    for path in islice(sorted(found, key=lambda path: (len(path.parts), _rank(path), path)), _MOST_FILES):
        try:
            yield path.relative_to(folder), path.read_text(encoding="utf-8")[:_MOST_BYTES]
        except (OSError, UnicodeDecodeError):
            continue


def _rank(path: Path) -> int:
    return ENTRIES.index(path.stem) if path.stem in ENTRIES else len(ENTRIES)


def _name(project: dict[str, Any], folder: Path) -> str:
    named = project.get("name") or package(folder).get("name") or folder.resolve().name
    return re.sub(r"[^A-Za-z0-9._@+-]+", "-", str(named)).strip("-._@+") or Proposal.name


def _starts(
    project: dict[str, Any], sources: dict[Path, str], trees: Trees, folder: Path, others: dict[Path, str]
) -> Iterator[tuple[AgentKind, str, str]]:
    """Yield how the agent may be started, the surest first: kind, command line, and the file that says so."""
    yield from _bots(sources, trees)
    yield from _pages(sources, trees)
    yield from _by_framework(sources, trees, folder)
    yield from _by_scripts(project, trees, folder)
    yield from _by_name(sources, trees, folder)
    for path, tree in trees.items():
        if lines_of(tree).keys() & {"send", "ready"}:  # (a filter of plain lines need not be an agent)
            yield "lines", f"python {path.as_posix()}", str(path)
        elif _has_screen(sources[path], tree):
            yield "tui", f"python {path.as_posix()}", str(path)
    yield from _by_commands(sources, trees)
    for path, tree in trees.items():
        for name in () if runs_when_imported(tree) else _answering(tree):
            yield "callable", f"{path.as_posix()}:{name}", str(path)
    yield from (("command", line, file) for line, file in scripts(others, ENTRIES))


def _bots(sources: dict[Path, str], trees: Trees) -> Iterator[tuple[AgentKind, str, str]]:
    """The one program that is a bot in a chat."""
    found = [path for path, text in sources.items() if bot_of(text) and (path in trees or path.suffix != ".py")]
    usual = [path for path in found if _rank(path) < len(ENTRIES)] or found
    if len(usual) == 1:
        path = usual[0]
        port = "PORT={port} " if "webhook" in bot_of(sources[path]) else ""
        yield "chat", f"{port}{'python' if path.suffix == '.py' else 'node'} {path.as_posix()}", str(path)


def _pages(sources: dict[Path, str], trees: Trees) -> Iterator[tuple[AgentKind, str, str]]:
    """The one program that makes a page for a chat."""
    found = [(path, library) for path in trees if (library := page_of(sources[path]))]
    usual = [it for it in found if _rank(it[0]) < len(ENTRIES)] or found
    if len(usual) == 1:
        path, library = usual[0]
        yield "page", library.start.format(file=path.as_posix()), str(path)


def _by_framework(sources: dict[Path, str], trees: Trees, folder: Path) -> Iterator[tuple[AgentKind, str, str]]:
    """Files that serve the Agent Client Protocol, or make the app of a web framework."""
    for path, text in sources.items():
        if _ACP.search(text):
            yield "acp", f"{'python' if path.suffix == '.py' else 'node'} {path.as_posix()}", str(path)
    for path, text in sources.items():
        served = on_port(text, start_of(path, folder)) if path.suffix in ENDINGS else ""
        if served and node_route_of(path, sources):
            yield "http", served, str(path)
    names = SourceNames(trees)
    for path, tree in trees.items():
        for app, call in _assigned_calls(tree):
            if made_by := names.app_of(path, call, SERVICES):
                yield "http", _served(made_by, path, app), str(path)
    for path, tree in trees.items():
        for it in tree.body:
            if isinstance(it, ast.FunctionDef) and not it.args.args and (made_by := names.made_in(it, SERVICES)):
                yield "http", _served(made_by, path, it.name, factory="--factory "), str(path)


def _served(made_by: str, path: Path, app: str, factory: str = "") -> str:
    """The command that serves an app, or what a function of this name makes."""
    inside = path.parts[0] == "src"
    module, folder = module_of(path).removeprefix("src." if inside else ""), "./src" if inside else "."
    return SERVICES[made_by].format(module=module, file=path.as_posix(), app=app, folder=folder, factory=factory)


def _by_scripts(project: dict[str, Any], trees: Trees, folder: Path) -> Iterator[tuple[AgentKind, str, str]]:
    """The programs that the project installs."""
    for script, named in mapped(project.get("scripts")).items():
        start, module = _installed(script, folder), str(named).partition(":")[0]
        holder = next((path for path in trees if _holds(path, module)), None)
        if holder is not None and lines_of(trees[holder]):
            yield "lines", start, str(holder)
        elif holder is not None and _has_screen("", trees[holder]):
            yield "tui", start, str(holder)
        words = message_words(trees[holder]) if holder is not None else "{message}"
        yield "command", f"{start} {words}", "pyproject.toml"


def _by_name(sources: dict[Path, str], trees: Trees, folder: Path) -> Iterator[tuple[AgentKind, str, str]]:
    """Files with a usual name, or that package.json names as programs."""
    in_node = _usual_in_node(sources, folder)
    for path, text in sources.items():
        if _rank(path) < len(ENTRIES) and path in trees:
            yield from _program(path.as_posix(), text, trees[path])
        if path in in_node:
            yield from node_program(path.as_posix(), text)


def _program(file: str, text: str, tree: ast.Module) -> Iterator[tuple[AgentKind, str, str]]:
    """Yield how a file with a usual name is started: as a service, at a prompt, or with the message as an argument."""
    if served := on_port(text, f"python {file}"):
        yield "http", served, file
    if lines_of(tree) and not (prompt_of(tree) and takes_arguments(text)):
        yield "lines", f"python {file}", file
    if _has_screen(text, tree):
        yield "tui", f"python {file}", file
    if "__main__" in text or takes_arguments(text):
        yield "command", f"python {file} {message_words(tree)}", file


def _has_screen(text: str, tree: ast.Module) -> bool:
    """Whether the program talks on a screen, and takes no message on its command line."""
    return screen_of(tree) is not None and not shown_words(tree) and not reads_argv(text)


def _by_commands(sources: dict[Path, str], trees: Trees) -> Iterator[tuple[AgentKind, str, str]]:
    """The one program whose command line shows where its message goes."""
    programs = [path for path in trees if "__main__" in sources[path] and takes_arguments(sources[path])]
    found = [(path, words) for path in programs if (words := shown_words(trees[path]))]
    if len(found) == 1:
        path, words = found[0]
        yield "command", f"python {path.as_posix()} {words}", str(path)


def _usual_in_node(sources: Iterable[Path], folder: Path) -> list[Path]:
    """The files of Node with a usual name, or that package.json names as programs (`bin`)."""
    named = package(folder).get("bin")
    programs = {Path(it) for it in (named, *mapped(named).values()) if isinstance(it, str)}
    files = (path for path in sources if path.suffix in (".js", ".mjs", ".cjs"))
    return [path for path in files if _rank(path) < len(ENTRIES) or path in programs]


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def _assigned_calls(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    """Yield the names that a module gives to the results of calls, each with its call."""
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name), *_], value=ast.Call() as call)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.Call() as call)
            ):
                yield name, call


def _answering(tree: ast.Module) -> Iterator[str]:
    """Yield the public functions of a module whose first parameter is a message."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            first = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)][:1]
            if first and first[0] in QUESTIONS:
                yield node.name


def _holds(path: Path, module: str) -> bool:
    """Whether a file is this module, in the project's folder or in `src`."""
    return module_of(path).removeprefix("src.") == module


def _pyproject(folder: Path) -> dict[str, Any]:
    try:
        return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
