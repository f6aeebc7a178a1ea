"""Opens an agent: the class of its kind, its surroundings, and the end of all its processes."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from typing import cast

from wedgehog.harness.agents.base import AgentError, Session
from wedgehog.harness.agents.context import AgentContext
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.sandbox.owned import Tree

_CLASSES = {
    "command": ("command", "CommandSession", ""),
    "callable": ("callables.callable", "CallableSession", ""),
    "http": ("http", "HttpSession", ""),
    "page": ("pages.page", "PageSession", "page"),
    "chat": ("chat", "ChatSession", ""),
    "lines": ("lines", "LinesSession", ""),
    "acp": ("acp", "AcpSession", "acp"),
    "tui": ("tui", "TuiSession", "pty"),
}
"""The module and class of each kind of agent, and the extra of this package that it needs."""


def _session_class(spec: AgentSpec) -> type[Session]:
    """The class for an agent; only its module is imported, because some take long. Errors: AgentError."""
    module, name, extra = _CLASSES[spec.kind]
    try:
        found = import_module(f"wedgehog.harness.agents.{module}")
    except ModuleNotFoundError as missing:
        if not extra:
            raise
        how = f"pip install 'wedgehog[{extra}]'"
        raise AgentError(f"`{spec.kind}` needs the package {missing.name}: {how}") from None
    return cast("type[Session]", getattr(found, name))


def missing_package(spec: AgentSpec) -> str:
    """Say which package is missing that this kind of agent needs; empty without one."""
    try:
        _session_class(spec)
    except AgentError as missing:
        return str(missing)
    return ""


@asynccontextmanager
async def open_agent(spec: AgentSpec, context: AgentContext) -> AsyncIterator[Session]:
    """Open `spec`'s agent in `context`; on exit, end all its processes. Errors: AgentError."""
    if context.simulated:
        from wedgehog.harness.agents.simulated import open_simulated

        async with open_simulated(spec, context) as simulated:
            yield simulated
        return
    from wedgehog.harness.agents.surroundings import prepare

    surroundings = prepare(spec, context)
    tree, keeper = Tree(surroundings.mark), f"{context.run_id}/keeper"
    async with AsyncExitStack() as stack:
        for outer in (context.disk, context.hosts):
            if outer is not None:
                stack.push_async_callback(outer.close)
        stack.push_async_callback(tree.end)
        if context.disk is not None:
            await context.disk.open(keeper)
            tree.enter = context.disk.argv
        if context.hosts is not None:
            await context.hosts.open(keeper, tree.enter)
            tree.enter = context.hosts.argv
        session = _session_class(spec)(spec, context, surroundings, tree)
        stack.push_async_callback(session.close)
        opened_s = context.clock.now()
        await session.open()
        session.ready_s = context.clock.now() - opened_s
        yield session
