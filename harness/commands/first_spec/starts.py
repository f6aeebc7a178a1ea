"""How the agent of a project may be started: the programs, apps and functions that its files show."""

import ast
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from wedgehog.fake_llm.request import mapped
from wedgehog.harness.agents.spec_keys import AgentKind
from wedgehog.harness.commands.first_spec.source_bots import bot_of
from wedgehog.harness.commands.first_spec.source_names import SourceNames, Trees, module_of
from wedgehog.harness.commands.first_spec.source_node import (
    ENDINGS,
    node_program,
    node_programs,
    node_route_of,
    start_of,
)
from wedgehog.harness.commands.first_spec.source_options import message_words, shown_words
from wedgehog.harness.commands.first_spec.source_others import scripts
from wedgehog.harness.commands.first_spec.source_pages import page_of
from wedgehog.harness.commands.first_spec.source_reading import CHAT, QUESTIONS
from wedgehog.harness.commands.first_spec.source_screen import screen_of
from wedgehog.harness.commands.first_spec.source_talk import (
    lines_of,
    on_port,
    prompt_of,
    reads_argv,
    runs_when_imported,
    takes_arguments,
)

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
_OF_ANY_FUNCTION: Final = ("text", "input", "content")
"""Parameters that many functions have which answer nothing."""


def starts(
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
    usual = [path for path in found if has_usual_name(path)] or found
    if len(usual) == 1:
        path = usual[0]
        port = "PORT={port} " if "webhook" in bot_of(sources[path]) else ""
        yield "chat", f"{port}{'python' if path.suffix == '.py' else 'node'} {path.as_posix()}", str(path)


def _pages(sources: dict[Path, str], trees: Trees) -> Iterator[tuple[AgentKind, str, str]]:
    """The one program that makes a page for a chat."""
    found = [(path, library) for path in trees if (library := page_of(sources[path]))]
    usual = [it for it in found if has_usual_name(it[0])] or found
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
    in_node = usual_in_node(sources, folder)
    for path, text in sources.items():
        if has_usual_name(path) and path in trees:
            yield from _program(path.as_posix(), text, trees[path])
        if path in in_node:
            yield from node_program(path, text, folder)


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


def usual_in_node(sources: Mapping[Path, str], folder: Path) -> list[Path]:
    """The files of Node with a usual name, or that package.json or their own source shows as programs."""
    programs = node_programs(sources, folder)
    return [path for path in sources if path in programs or (path.suffix in ENDINGS[:3] and has_usual_name(path))]


def has_usual_name(path: Path) -> bool:
    """Whether a file has a usual name of one that starts an agent."""
    return path.stem in ENTRIES


def rank(path: Path) -> int:
    """The place of a file among those with a usual name, the likeliest first; the same number for all others."""
    return ENTRIES.index(path.stem) if path.stem in ENTRIES else len(ENTRIES)


def _installed(script: str, folder: Path) -> str:
    """A program of the project, by its path if it is installed in the project's own environment."""
    places = (f"{name}/bin/{script}" for name in ENVIRONMENTS)
    return next((place for place in places if os.access(folder / place, os.X_OK)), script)


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
    """Yield the public functions of a module whose first parameter is a message, those with a fitting name first."""
    found = list[str]()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            first = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)][:1]
            if first and first[0] in QUESTIONS and (CHAT.search(node.name) or first[0] not in _OF_ANY_FUNCTION):
                found.append(node.name)
    yield from sorted(found, key=lambda name: not CHAT.search(name))


def _holds(path: Path, module: str) -> bool:
    """Whether a file is this module, in the project's folder or in `src`."""
    return module_of(path).removeprefix("src.") == module
