"""Specimen of the incident *silent-stall*: an assistant whose model calls and page fetches share one timer.

One message per process, the conversation in the session folder:

    python specimen.py --fixes none --time-scale 30 --session DIR --url http://127.0.0.1:8000 --key K "Hello"

With ``--chat URL`` instead of a message it polls a chat service for its messages until it is stopped, as the original
does.

The answer goes to stdout. On failure stderr says ``Error: …`` and the exit code is 1; Ctrl-C is the user's abort (130).
Each fix changes one timer, or one place where an exception is caught. Durations are divided by ``--time-scale``.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from chat import Chat
from claude import Claude
from web import Http, Pace, web_fetch

FIXES = (
    "retry-network-errors",
    "honour-timeout",
    "total-deadline",
    "push-results-on-throw",
    "sanitize-each-call",
    "pair-aware-trimming",
    "model-timeout",
)
SHELL_S = 30.0

Json = dict[str, Any]


def read_note(notes: Path, name: str) -> Json:
    """The tool that throws: it has no result for a missing note."""
    return {"content": (notes / name).read_text()}


def shell_exec(command: str) -> Json:
    """Run a shell command; its deadline is in real seconds."""
    try:
        done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, timeout=SHELL_S, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"Command timed out after {SHELL_S * 1000:.0f}ms"}
    return {"stdout": done.stdout, "stderr": done.stderr, "exit_code": done.returncode}


def tools(web: Http) -> dict[str, Callable[..., Json]]:
    """The tools, by the name that the model uses."""
    return {
        "web_fetch": lambda url: web_fetch(web, url),
        "read_note": lambda name: read_note(Path("notes"), name),
        "shell_exec": shell_exec,
    }


def schema(name: str, description: str, parameter: str) -> Json:
    """The schema of a tool with one string parameter."""
    properties = {parameter: {"type": "string"}}
    shape = {"type": "object", "properties": properties, "required": [parameter]}
    return {"name": name, "description": description, "input_schema": shape}


SCHEMAS = (
    schema("web_fetch", "Fetch a web page and return its text.", "url"),
    schema("read_note", "Read one of the user's notes.", "name"),
    schema("shell_exec", "Run a shell command.", "command"),
)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="specimen of the incident silent-stall")
    parser.add_argument("--fixes", default="none", help=f"joined by commas: {', '.join(FIXES)}")
    parser.add_argument("--time-scale", type=float, default=1.0)
    parser.add_argument("--session", type=Path, required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--key", required=True)
    speaks = parser.add_mutually_exclusive_group(required=True)
    speaks.add_argument("--chat", metavar="URL")
    speaks.add_argument("message", nargs="?")
    options = parser.parse_args(argv)
    options.fixes = frozenset(options.fixes.split(",")) - {"none"}
    if unknown := options.fixes.difference(FIXES):
        parser.error(f"no such fix: {', '.join(sorted(unknown))}")
    return options


def main(argv: Sequence[str]) -> int:
    """Play one turn, or those of the chat. The conversation is saved after each turn, except after a kill."""
    options = parse(argv)
    log = options.session / "conversation.json"
    messages = json.loads(log.read_text()) if log.exists() else []
    web = Http(options.fixes, Pace(options.time_scale))
    claude = Claude(
        web,
        options.fixes,
        url=options.url,
        key=options.key,
        messages=messages,
        tools=tools(web),
        schemas=SCHEMAS,
    )

    def talk(text: str) -> str:
        try:
            return claude.chat(text)
        finally:
            options.session.mkdir(parents=True, exist_ok=True)
            new = log.with_suffix(".new")
            new.write_text(json.dumps(messages))
            new.replace(log)  # a full disk or a crash leaves the old one whole

    try:
        if options.chat:
            Chat(web, options.fixes, url=options.chat, key=options.key).serve(talk)
        print(talk(options.message))
    except KeyboardInterrupt:
        print("Aborted", file=sys.stderr)
        return 130
    except Exception as error:
        # The only handler of the original: every exception becomes a chat message.
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
