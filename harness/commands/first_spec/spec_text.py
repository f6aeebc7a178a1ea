"""The text of a first agent spec, made from a few answers, and what is wrong with an answer."""

import json
import os
import re
import shlex
from collections.abc import Mapping
from itertools import takewhile
from math import inf
from pathlib import Path
from typing import Any

import yaml

from wedgehog.harness.agents.missing import SOURCE
from wedgehog.harness.agents.spec_keys import AgentKind
from wedgehog.harness.commands.first_spec.propose import Proposal
from wedgehog.harness.record.expectation import did_you_mean

WIRES: Mapping[str, tuple[dict[str, str], str]] = {
    "openai-chat": ({"OPENAI_BASE_URL": "{llm_url}/v1", "OPENAI_API_KEY": "{key}"}, "POST /v1/chat/completions"),
    "openai-responses": ({"OPENAI_BASE_URL": "{llm_url}/v1", "OPENAI_API_KEY": "{key}"}, "POST /v1/responses"),
    "openai-realtime": ({"OPENAI_BASE_URL": "{llm_url}/v1", "OPENAI_API_KEY": "{key}"}, "a WebSocket at /v1/realtime"),
    "anthropic": ({"ANTHROPIC_BASE_URL": "{llm_url}", "ANTHROPIC_API_KEY": "{key}"}, "POST /v1/messages"),
    "gemini": (
        {"GOOGLE_GEMINI_BASE_URL": "{llm_url}", "GEMINI_API_KEY": "{key}"},
        "POST /v1beta/models/MODEL:generateContent",
    ),
    "ollama": ({"OLLAMA_HOST": "{llm_url}"}, "POST /api/chat"),
}
"""The environment that each provider's SDK reads, and the endpoint that it calls."""

ASKS: Mapping[AgentKind, str] = {
    "command": "Its command line, with {message} where the message goes:",
    "callable": "Its function, as file.py:function:",
    "http": "The command that starts the service, with {port}:",
    "page": "The command that starts the service of the page, with {port}:",
}
"""What to ask for its start; a process that stays has a command line."""
GUESSES: Mapping[str, dict[str, object]] = {
    "lines": {
        "send": {"type": "user", "text": "{message}"},
        "done": {"type": "result"},
        "answer": "jsonl:result",
        "error": "jsonl:error",
    },
    "acp": {},
    "chat": {"quiet_s": 1},
    "page": {"answer": ".assistant", "busy": ".spinner", "stop": "button.stop"},
    "tui": {"ready": "^> *$"},
    "http": {
        "ready": "/health",
        "url": "/message",
        "body": {"text": "{message}"},
        "answer": "json:answer",
        "error": "json:error",
    },
}
"""The keys beside `start`, as a first guess."""
CHAT_HOSTS: Mapping[str, tuple[str, ...]] = {
    "telegram": ("api.telegram.org",),
    "discord": ("discord.com", "gateway.discord.gg"),
    "slack": ("slack.com", "wss-primary.slack.com"),
}
"""The fixed hosts of each chat that has no webhook."""
PAGES: Mapping[str, str] = {"http": "docs/agents.md", "chat": "docs/chats.md", "page": "docs/pages.md"}
"""Where its keys are explained, if that is not the page about agents that stay."""
TO_CHAT = """\
# It must send its messages to {chat_url}, by a variable that it reads{hosts}.
"""
GUESSED = """\
# A guess: change {keys} to what the agent really has. {page}
"""
OWN_PYTHON = """\
# It runs in the project's own environment, into which Wedgehog need not be installed.
"""
CALLED = """\
# It is called as `(message, *, session_dir, llm_url, key)` and returns the answer. It may leave out any keyword.
"""
HEAD = """\
# How Wedgehog runs this agent. All keys: docs/agents.md, or `wedgehog schema agent`.
# Try it: wedgehog agents check {file}
"""
HINTS = """\
# Its own limits; each one tightens the stock bound of the same name:
# limits: {turn_s: 60, calls_per_turn: 12, tool_rounds: 20}
# Its session files, so that a report can show them:
# session_files: ["{home}/.my-agent/*.json"]
"""

LINKS = """\
# Its own servers: take the # away to play faults between them and the agent (docs/links.md); they must be running:
# links: {links}
"""


CALLS = """\
# Its model seems to write its tool calls or its answer in a form: take the # away, and replace the word `shell` in the
# text by the name of its own tool (docs/agents.md, how the model ends a turn, tool calls in text):
"""


def chosen(kind: AgentKind | None, command: str, found: Proposal) -> tuple[AgentKind, str | None]:
    """Return the kind of agent and the proposal for its start: the project's, unless an option gives the start."""
    return (kind or "command", None) if command else (found.kind, found.command)


def wrong_name(name: str) -> str:
    """Return the error of a name; empty if it is valid."""
    return "" if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._@+-]*", name) else f"{name!r}: use letters, digits, . _ - only"


def wrong_wire(wire: str) -> str:
    """Return the error of a wire format; empty if it is known."""
    return "" if wire in WIRES else f"{wire!r} is none of {', '.join(WIRES)}{did_you_mean(wire, WIRES)}"


def wrong_answer_to(kind: AgentKind, start: str) -> str:
    """Return the error of what starts an agent of this kind; empty if it is valid."""
    return {"command": wrong_command, "callable": wrong_function, "http": wrong_service}.get(kind, wrong_start)(start)


def wrong_function(place: str) -> str:
    """Return the error of a function's place; empty if it is valid."""
    return "" if re.fullmatch(r"[\w./-]+:\w+", place.strip()) else f"{place!r}: write file.py:function"


def wrong_service(command: str) -> str:
    """Return the error of the command line of a service; empty if it is valid."""
    return wrong_start(command) or ("" if "{port}" in command else "write {port} where its port goes")


def wrong_start(command: str) -> str:
    """Return the error of a command line; empty if it is valid."""
    try:
        return "" if _split(command)[1] else "a command line is needed"
    except ValueError as bad:
        return f"not a command line: {bad}"


def wrong_command(command: str) -> str:
    """Return the error of a command line; empty if it is valid."""
    if wrong := wrong_start(command):
        return wrong
    has_message = any("{message}" in word for word in _split(command)[1])
    return "" if has_message else "write {message} where the user's message goes"


def wrong_resume(kind: AgentKind, command: str) -> str:
    """Return the error of the resume command line, which may be empty."""
    return wrong_answer_to(kind, command) if command.strip() else ""


def spec_text(
    file: str,
    name: str,
    wire: str,
    start: str,
    resume: str = "",
    kind: AgentKind = "command",
    python: str = "",
    talks: Mapping[str, object] | None = None,
    links: Mapping[str, Any] | None = None,
    tokens: Mapping[str, str] | None = None,
    calls: Mapping[str, object] | None = None,
) -> str:
    """Return the content of the spec `file`; relative paths of the command line become relative to that file.

    `python` is that of the project's own environment; empty for ours. The source of the agent shows the others:
    `talks`, the keys beside `start`; `links`, to its own servers; `tokens`, the variables with which it gets access
    tokens; `calls`, how its model writes tool calls in a text.
    """
    spec: dict[str, object] = {"name": name, "wire": wire}
    own = _there(python, Path(file).resolve().parent) if python else ""
    if kind == "callable":
        named = {"python": own} if own else {}
        spec |= {"callable": _function(file, start.strip()), **named, "env": dict(tokens or {}) | WIRES[wire][0]}
    else:
        spec |= _started(file, start, resume, kind, talks, own or "{python}")
        spec["env"] = dict(tokens or {}) | _env(start, resume) | WIRES[wire][0]
        if kind == "chat" and "webhook" not in (talks or {}):
            hosts = CHAT_HOSTS[str((talks or {}).get("api", "telegram"))]
            spec["hosts"] = dict.fromkeys(hosts, "chat")
    body = yaml.safe_dump(spec, sort_keys=False, default_flow_style=None, width=110, allow_unicode=True)
    note = OWN_PYTHON if own and own in body else ""
    return (
        HEAD.replace("{file}", file)
        + _guessed(kind, talks)
        + note
        + body
        + _to_chat(kind, spec)
        + HINTS
        + _servers(links or {}, spec)
        + _in_text(calls or {})
    )


def _started(
    file: str, start: str, resume: str, kind: AgentKind, talks: Mapping[str, object] | None, python: str
) -> dict[str, object]:
    lines = {"start" if kind != "command" else "command": start, "resume": resume}
    given = {key: _seen_from(file, words, python) for key, line in lines.items() if (words := _split(line)[1])}
    return dict(given) if kind == "command" else {kind: {**given, **(talks or GUESSES.get(kind, {}))}}


def _to_chat(kind: AgentKind, spec: Mapping[str, Any]) -> str:
    """How an agent in a chat finds the chat service, as a comment."""
    instead = ", or by its fixed host (`hosts`, Linux only)" if "hosts" in spec else ""
    return TO_CHAT.replace("{hosts}", instead) if kind == "chat" else ""


def _servers(links: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    """The links as a comment; a variable that has its value in the spec's `env` keeps it."""
    own = {name: next((it for it in link["env"] if it in spec["env"]), link["env"]) for name, link in links.items()}
    told = {name: {**link, "env": own[name]} for name, link in links.items()}
    line = yaml.safe_dump(told, sort_keys=False, default_flow_style=True, width=inf).strip()
    return LINKS.replace("{links}", line) if told else ""


def _in_text(calls: Mapping[str, object]) -> str:
    """The keys for tool calls in text, as a comment: the name of its own tool is not known."""
    lines = (f"# {key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in calls.items())
    return CALLS + "".join(lines) if calls else ""


def _function(file: str, place: str) -> str:
    """Return the place of a function as the spec writes it; a module is found where Python looks for it."""
    source, _, name = place.rpartition(":")
    return f"{_there(source, Path(file).resolve().parent)}:{name}" if source.endswith(".py") else place


def _env(start: str, resume: str) -> dict[str, str]:
    return _split(start)[0] | _split(resume)[0]


def _guessed(kind: AgentKind, talks: Mapping[str, object] | None) -> str:
    if kind == "callable":
        return CALLED
    keys, page = (
        ", ".join(talks or GUESSES.get(kind, {})),
        PAGES.get(kind, "docs/agents-that-stay.md"),
    )
    return GUESSED.replace("{keys}", keys).replace("{page}", page) if keys else ""


def _split(line: str) -> tuple[dict[str, str], list[str]]:
    """Split a command line like a shell: the leading `NAME=VALUE` words, and the command."""
    words = shlex.split(line)
    given = list(takewhile(re.compile(r"[A-Za-z_]\w*=").match, words))
    return dict(word.split("=", 1) for word in given), words[len(given) :]


def _seen_from(file: str, argv: list[str], python: str) -> list[str]:
    """Rewrite relative paths from the spec's folder: the agent has its own working folder. `python` is the program."""
    folder = Path(file).resolve().parent
    first = python if argv[0] in ("python", "python3") else argv[0]
    named = [first if "/" not in first else _there(first, folder)]
    return [*named, *(":".join(_there(it, folder) for it in _files_in(word)) or word for word in argv[1:])]


def _files_in(word: str) -> list[str]:
    """The files that a word of a command line names, several as in a class path; empty if it names none.

    A folder counts only in a path with a slash, or beside files: `chat` may be a subcommand.
    """
    if word in (".", "./src") or SOURCE.fullmatch(word):
        return [word]
    parts = word.split(":")
    named = any("/" in part or Path(part).suffix for part in parts)
    known = all(part and part[0] != "-" and "{" not in part and Path(part).expanduser().exists() for part in parts)
    return parts if named and known else []


def _there(name: str, folder: Path) -> str:
    """Return the file name as a spec in `folder` writes it."""
    path = Path(name).expanduser() if name.startswith("~/") else Path(name)
    if name.startswith("{") or path.is_absolute():
        return str(path)
    seen = Path(os.path.relpath(path, folder)).as_posix()
    return "{here}" if seen == "." else f"{{here}}/{seen}"
