"""Which agents can be run in virtual time, and how they are opened."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from wedgehog.harness.agents.base import Session
from wedgehog.harness.agents.context import AgentContext
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.sim.errors import LIVE


def why_not_simulated(spec: AgentSpec) -> str:
    """Why this agent cannot be run in virtual time; empty if it can."""
    reasons = {
        "a command runs as a process, and the spec has no `simulate`": spec.kind == "command" and not spec.simulate,
        "a service runs as a process, and the spec has no `simulate`": spec.kind == "http" and not spec.simulate,
        "its function runs in another Python (python)": spec.python is not None,
        "a chat agent runs as a process": spec.kind == "chat",
        "its user needs a browser (page)": spec.kind == "page",
        f"an agent that stays ({spec.kind}) runs as a process": spec.kind in ("lines", "acp", "tui"),
        "its tools run as processes (tools)": spec.tools is not None,
        "its private network has processes (hosts)": bool(spec.hosts),
        "its links lead to real servers (links)": bool(spec.links),
    }
    return next((f"{reason}: {LIVE}" for reason, applies in reasons.items() if applies), "")


@asynccontextmanager
async def open_simulated(spec: AgentSpec, context: AgentContext) -> AsyncIterator[Session]:
    """Open `spec`'s agent on the running loop. Errors: AgentError."""
    # (An HTTP client takes long to import.)
    from wedgehog.harness.agents.callables.sim_callable import SimCallableSession
    from wedgehog.harness.agents.sim_host import SimHost
    from wedgehog.harness.agents.sim_process import SimCommandSession, SimHttpSession
    from wedgehog.harness.agents.surroundings import prepare

    kinds = {"callable": SimCallableSession, "command": SimCommandSession, "http": SimHttpSession}
    around = prepare(spec, context)
    host = SimHost(spec, context, around)
    with host.entered():
        session: Session = kinds[spec.kind](spec, context, around, host)
        try:
            await session.open()
            yield session
        finally:
            await session.close()
