"""Several sessions of one agent in one run: they share HOME, the working folder and the model's address.

Each session has something of its own: a name that the agent gets (`{session}`); a folder (`{session_dir}`), where the
spec has no place for a name; a process; the protocol's own id; or a chat.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

from wedgehog.harness.agents.base import Session
from wedgehog.harness.agents.context import FIRST_FOLDER, AgentContext
from wedgehog.harness.agents.opening import open_agent
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.agents.spec_checks import template_names
from wedgehog.harness.agents.surroundings import prepare_session
from wedgehog.harness.agents.templates import written_in

NAMES_A_SESSION = frozenset({"session", "session_dir"})
"""Templates that tell one session from another."""


def contexts(spec: AgentSpec, context: AgentContext, names: Sequence[str]) -> dict[str, AgentContext]:
    """The context of each session; the first one has `context` itself."""
    first, *others = names
    return {first: context} | {name: _another(spec, context, name, number) for number, name in enumerate(others, 1)}


def _another(spec: AgentSpec, context: AgentContext, name: str, number: int) -> AgentContext:
    folder = _folder(spec, name)
    return replace(context, session=f"{context.session}{name}", session_folder=folder, chat_place=number)


def _folder(spec: AgentSpec, name: str) -> str:
    """The folder of a further session: one of its own, unless the agent gets its name."""
    return FIRST_FOLDER if "session" in template_names(spec) else f"{FIRST_FOLDER}-{name}"


def session_folders(spec: AgentSpec, names: Sequence[str]) -> list[str]:
    """The folders of these sessions, in the run's folder."""
    return list(dict.fromkeys((FIRST_FOLDER, *(_folder(spec, name) for name in names[1:]))))


@asynccontextmanager
async def open_sessions(
    spec: AgentSpec, of: dict[str, AgentContext], *, at_once: bool = True, struck: bool = False
) -> AsyncIterator[list[Session]]:
    """Open the agent with all its sessions, in this order; on exit, end all its processes. Errors: AgentError.

    `at_once`: turns of two sessions may overlap. `struck`: a fault strikes the process of one session.
    """
    (first, context), *others = of.items()
    async with open_agent(spec, context) as session, AsyncExitStack() as opened:
        session.name = first
        found = [session]
        for name, other in others:
            around = prepare_session(spec, other, session.surroundings)
            found.append(await session.apart(name, other, around, at_once=at_once, struck=struck))
            found[-1].starts = session.starts
            opened.push_async_callback(found[-1].close)
        yield found


def one_session_reason(spec: AgentSpec) -> str | None:
    """Why this agent can have only one session in a run; None if it can have several."""
    if spec.chat is not None:
        return (
            None
            if spec.chat.users > 1
            else "it promises to answer one user (if several may write to it at once, write chat: users: 2)"
        )
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
    if spec.page is not None:
        return []  # each user has a window of their own
    living = spec.lines or spec.tui
    # A process is a session of its own; what begins again on it must say which one.
    return [living.start, living.resume] if living is not None and living.resume is not None else []


def _names_session(part: Any) -> bool:
    return any(name in NAMES_A_SESSION for _, name in written_in(part))
