"""What `wedgehog init` proposes: it reads the project in the working folder, and executes nothing."""

import ast
import os
import re
import sys
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

from wedgehog.fake_llm.request import mapped
from wedgehog.harness.agents.spec_keys import AgentKind
from wedgehog.harness.commands.first_spec.source_bots import bot_of
from wedgehog.harness.commands.first_spec.source_calls import calls_in_text
from wedgehog.harness.commands.first_spec.source_names import Trees
from wedgehog.harness.commands.first_spec.source_node import ENDINGS, node_route_of, package
from wedgehog.harness.commands.first_spec.source_node_lines import node_lines_of
from wedgehog.harness.commands.first_spec.source_options import resume_flag
from wedgehog.harness.commands.first_spec.source_others import CODE, NOTES
from wedgehog.harness.commands.first_spec.source_pages import page_of
from wedgehog.harness.commands.first_spec.source_routes import route_of
from wedgehog.harness.commands.first_spec.source_screen import screen_of
from wedgehog.harness.commands.first_spec.source_servers import links_of
from wedgehog.harness.commands.first_spec.source_talk import (
    is_program,
    lines_of,
)
from wedgehog.harness.commands.first_spec.source_tokens import token_env
from wedgehog.harness.commands.first_spec.source_wire import wire_of
from wedgehog.harness.commands.first_spec.starts import ENVIRONMENTS, has_usual_name, rank, starts, usual_in_node
from wedgehog.harness.commands.watch import source_files

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
    found = (it for it in starts(project, sources, trees, folder, others) if asked in (None, it[0]))
    kind, command, because = next(found, _program_that_stays(asked, sources, trees, folder))
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
    python = (path for path in trees if has_usual_name(path) and is_program(sources[path], trees[path]))
    usual = [*(("python", path) for path in python), *(("node", path) for path in usual_in_node(sources, folder))]
    if asked in ("lines", "tui", "acp") and len(usual) == 1:
        runs, path = usual[0]
        return asked, f"{runs} {path.as_posix()}", str(path)
    return asked or Proposal.kind, None, ""


def _python(folder: Path) -> str:
    own = (name for name in ENVIRONMENTS if (folder / name).resolve() != Path(sys.prefix).resolve())
    return next((python for name in own if os.access(folder / (python := f"{name}/bin/python"), os.X_OK)), "")


def _notes(folder: Path) -> Iterator[str]:
    """The texts of settings and notes, the wire's last resort: no source shows it."""
    return (text for _, text in _sources(folder, NOTES))


def _sources(folder: Path, endings: Collection[str] = (".py", *ENDINGS)) -> Iterator[tuple[Path, str]]:
    code = source_files(folder, endings=endings)
    found = (path for path in code if not _TEST.search(path.relative_to(folder).as_posix()))
    for path in islice(sorted(found, key=lambda path: (len(path.parts), rank(path), path)), _MOST_FILES):
        try:
            yield path.relative_to(folder), path.read_text(encoding="utf-8")[:_MOST_BYTES]
        except (OSError, UnicodeDecodeError):
            continue


def _name(project: dict[str, Any], folder: Path) -> str:
    named = project.get("name") or package(folder).get("name") or folder.resolve().name
    return re.sub(r"[^A-Za-z0-9._@+-]+", "-", str(named)).strip("-._@+") or Proposal.name


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def _pyproject(folder: Path) -> dict[str, Any]:
    try:
        return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
