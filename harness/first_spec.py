"""`wedgehog init`: the first agent spec, from a few answers.

What is asked is what nobody can guess: the command line, the wire format, and how the agent is told where its model is.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

import yaml

WIRES: Mapping[str, tuple[dict[str, str], str]] = {
    "openai-chat": ({"OPENAI_BASE_URL": "{llm_url}/v1", "OPENAI_API_KEY": "{key}"}, "POST /v1/chat/completions"),
    "openai-responses": ({"OPENAI_BASE_URL": "{llm_url}/v1", "OPENAI_API_KEY": "{key}"}, "POST /v1/responses"),
    "anthropic": ({"ANTHROPIC_BASE_URL": "{llm_url}", "ANTHROPIC_API_KEY": "{key}"}, "POST /v1/messages"),
    "gemini": (
        {"GOOGLE_GEMINI_BASE_URL": "{llm_url}", "GEMINI_API_KEY": "{key}"},
        "POST /v1beta/models/MODEL:generateContent",
    ),
    "ollama": ({"OLLAMA_HOST": "{llm_url}"}, "POST /api/chat"),
}
"""What each provider's own SDK reads from the environment, and what it then calls."""

HEAD = """\
# How Wedgehog talks to this agent. Every key: docs/agents.md, or `wedgehog schema agent`.
# Try it: wedgehog agents check {file}
"""
HINTS = """\
# What it promises; each tightens the stock bound of the same name:
# limits: {turn_s: 60, calls_per_turn: 12, tool_rounds: 20}
# Where it keeps its sessions, so that a report can show them:
# session_files: ["{home}/.my-agent/*.json"]
"""


@dataclass(frozen=True, slots=True)
class Answers:
    """What was asked; `resume` is empty where the same command line continues the session."""

    name: str
    wire: str
    command: str
    resume: str = ""


def wrong_name(name: str) -> str:
    """What is wrong with a name; empty where nothing is."""
    return "" if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._@+-]*", name) else f"{name!r}: use letters, digits, . _ - only"


def wrong_command(command: str) -> str:
    """What is wrong with a command line; empty where nothing is."""
    try:
        words = shlex.split(command)
    except ValueError as bad:
        return f"not a command line: {bad}"
    if not words:
        return "a command line is needed"
    return "" if "{message}" in command else "write {message} where the user's message goes"


def wrong_resume(command: str) -> str:
    """The same of the command line for a next message, which may be empty."""
    return wrong_command(command) if command.strip() else ""


def spec_text(answers: Answers, file: str) -> str:
    """The spec file's content."""
    spec: dict[str, object] = {
        "name": answers.name,
        "wire": answers.wire,
        "command": _relative(shlex.split(answers.command)),
    }
    if answers.resume:
        spec["resume"] = _relative(shlex.split(answers.resume))
    spec["env"] = WIRES[answers.wire][0]
    body = yaml.safe_dump(spec, sort_keys=False, default_flow_style=None, width=110, allow_unicode=True)
    return HEAD.replace("{file}", file) + body + HINTS


def _relative(argv: list[str]) -> list[str]:
    """A file named from here is beside the spec: the agent's own working folder is another one."""
    python = ["{python}"] if argv[:1] in (["python"], ["python3"]) else argv[:1]
    source = re.compile(r"(\./)?[\w./-]+\.(py|js|mjs|ts|sh)")
    rest = [f"{{here}}/{word}" if source.fullmatch(word) else word for word in argv[1:]]
    first = f"{{here}}/{python[0][2:]}" if python[0].startswith("./") else python[0]
    return [first, *(word.replace("{here}/./", "{here}/") for word in rest)]
