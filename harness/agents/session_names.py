"""Whether the spec of an agent tells one session from another."""

from collections.abc import Sequence
from typing import Any

from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.agents.templates import written_in

NAMES_A_SESSION = frozenset({"session", "session_dir"})


def one_session_reason(spec: AgentSpec) -> str | None:
    """Why this agent can have only one session in a run; None if it can have several."""
    if spec.kind == "chat":
        return "its chat is one session"
    if all(_names_session(part) for part in _parts(spec)) or (spec.kind != "http" and _names_session(spec.env)):
        return None
    where = {"command": "command", "http": "http: url, headers or body"}.get(spec.kind, f"{spec.kind}: resume")
    return f"nothing in its spec tells one session from another: write {{session}} or {{session_dir}} in {where}"


def _parts(spec: AgentSpec) -> Sequence[Any]:
    """What must name the session, each."""
    if spec.command is not None:
        return [line for line in (spec.command, spec.resume) if line is not None]
    if spec.http is not None:
        return [[spec.http.url, spec.http.headers, spec.http.body]]
    living = spec.lines or spec.tui
    # A process is a session of its own; what begins again on it must say which one.
    return [living.start, living.resume] if living is not None and living.resume is not None else []


def _names_session(part: Any) -> bool:
    return any(name in NAMES_A_SESSION for _, name in written_in(part))
