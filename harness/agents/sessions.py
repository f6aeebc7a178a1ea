"""Several sessions of one agent in one run: they share HOME, the working folder and the model's address.

What tells a session from another one is the name that the agent gets (`{session}`), or its folder (`{session_dir}`)
where the spec has no place for a name, or its process, or the protocol's own id.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from wedgehog.harness.agents.base import FIRST_FOLDER, AgentContext, Session
from wedgehog.harness.agents.opening import open_agent
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.agents.spec_checks import template_names
from wedgehog.harness.agents.surroundings import prepare_session


def contexts(spec: AgentSpec, place: AgentContext, names: Sequence[str]) -> dict[str, AgentContext]:
    """The context of each session; the first one has `place` itself."""
    first, *others = names
    return {first: place} | {name: _another(spec, place, name) for name in others}


def _another(spec: AgentSpec, place: AgentContext, name: str) -> AgentContext:
    return replace(place, session=f"{place.session}{name}", session_folder=_folder(spec, name))


def _folder(spec: AgentSpec, name: str) -> str:
    """The folder of a further session: one of its own, unless the agent gets its name."""
    return FIRST_FOLDER if "session" in template_names(spec) else f"{FIRST_FOLDER}-{name}"


def session_folders(spec: AgentSpec, names: Sequence[str]) -> list[str]:
    """The folders of these sessions, in the run's folder."""
    return list(dict.fromkeys((FIRST_FOLDER, *(_folder(spec, name) for name in names[1:]))))


@asynccontextmanager
async def open_sessions(
    spec: AgentSpec, places: dict[str, AgentContext], *, at_once: bool = True, struck: bool = False
) -> AsyncIterator[list[Session]]:
    """Open the agent with all its sessions, in this order; on exit, end all its processes. Errors: AgentError.

    `at_once`: turns of two sessions may overlap. `struck`: a fault strikes the process of one session.
    """
    (first, place), *others = places.items()
    async with open_agent(spec, place) as session, AsyncExitStack() as opened:
        session.name = first
        found = [session]
        for name, other in others:
            around = prepare_session(spec, other, session.surroundings)
            found.append(await session.apart(name, other, around, at_once=at_once, struck=struck))
            found[-1].starts = session.starts
            opened.push_async_callback(found[-1].close)
        yield found
