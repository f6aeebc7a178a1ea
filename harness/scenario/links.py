"""The links to our own tools, and which trigger has a meaning on them."""

from wedgehog.harness.faults.base import Fault, WireFault, registered
from wedgehog.harness.faults.result_fault import ResultFault
from wedgehog.harness.scenario.plan import Trigger

HOST = "tool:mcp"
PIPE = "ipc:mcp"
STORE = "store:db"
CHAT = "chat"

Misfit = tuple[str, tuple[str, ...]]
"""What is wrong, and at which key of the fault."""


def misfit(fault: Fault, link: str, at: Trigger) -> Misfit | None:
    """Why this fault can never strike there; None where it can."""
    if isinstance(fault, ResultFault):
        return _of_result(fault, link, at)
    return _of_trigger(fault, link, at) or _of_link(fault, link, at)


def _of_trigger(fault: Fault, link: str, at: Trigger) -> Misfit | None:
    if at.query is not None and link != STORE:
        return f"`query` counts what our database is asked: write `link: {STORE}`", ("at", "query")
    if (at.chat is not None) != (link == CHAT and at.phase != "connect"):
        return f"`chat: poll` or `chat: send` goes with `link: {CHAT}`, and `phase: connect` without it", ("at",)
    if at.byte and link in (HOST, STORE, CHAT) and isinstance(fault, WireFault) and fault.reach == "link":
        return f"{fault.name} strikes all of {link}, and begins with its next byte: leave `byte` out", ("at", "byte")
    return None


def _of_link(fault: Fault, link: str, at: Trigger) -> Misfit | None:
    if link == CHAT:
        return _of_chat(fault, at)
    if link in (HOST, STORE) and isinstance(fault, WireFault):
        return _of_wire(fault, link, at)
    return _of_pipe(fault, link, at) if link.startswith("ipc:") else None


def _of_pipe(fault: Fault, link: str, at: Trigger) -> Misfit | None:
    if not isinstance(fault, WireFault) or fault.closes_port:
        fit = (name for name, cls in registered("wire").items() if issubclass(cls, WireFault) and not cls.closes_port)
        return f"{fault.name} is nothing that happens to a pipe: on {link} there are {', '.join(fit)}", ("do",)
    if at.event is not None or at.phase not in (None, "request"):
        key = "event" if at.event is not None else "phase"
        has = "`byte: n` of its stdout, with `phase: request` of its stdin"
        return f"a pipe has only bytes, {has}, and no `{key}`", ("at", key)
    if at.tool is None and at.step > 1:
        return "a pipe knows no steps: count its bytes, or name a tool", ("at", "step")
    return None


def _of_chat(fault: Fault, at: Trigger) -> Misfit | None:
    if not isinstance(fault, WireFault):
        return f"{fault.name} is nothing that happens to bytes: it has another link", ("do",)
    if at.event is not None or at.phase not in (None, "connect", "headers", "request"):
        key = "event" if at.event is not None else "phase"
        return f"`{key}` is a place in a model's reply: count bytes, or write `phase: request`", ("at", key)
    if at.step > 1 or at.tool is not None or at.query is not None:
        return "a chat service knows no steps, tools and queries: write `chat: send`, and which `attempt`", ("at",)
    if at.chat == "poll" and at.phase == "request":
        return "a poll is under way before its message is: only what is sent has `phase: request`", ("at", "phase")
    if at.chat is not None and fault.closes_port:
        return f"{fault.name} strikes connections: write `phase: connect` instead of `chat`", ("at", "chat")
    return None


def _of_result(fault: Fault, link: str, at: Trigger) -> Misfit | None:
    if link != HOST:
        return f"{fault.name} is something our tool host does: write `link: {HOST}`", ("link",)
    if at.tool is None:
        return f"{fault.name} strikes a tool call: write `at: {{tool: 1}}` with its turn and step", ("at",)
    if at.when != "started":
        return f"{fault.name} strikes before the result is there: leave `when` out", ("at", "when")
    return None


def _of_wire(fault: WireFault, link: str, at: Trigger) -> Misfit | None:
    if at.event is not None or at.phase not in (None, "connect"):
        key = "event" if at.event is not None else "phase"
        return f"`{key}` is a place in a model's reply, and {link} carries none", ("at", key)
    if link == HOST and at.tool is not None and at.when == "done" and fault.reach == "connection":
        return f"a {fault.name} strikes a result before its first byte, or at `byte`: leave `when` out", ("at", "when")
    named = at.query if link == STORE else at.tool
    on_link = fault.reach == "link" and (at.after_s is not None or at.tool is not None)
    if named is not None or at.phase == "connect" or on_link:
        return None
    spot = "`query: 1`" if link == STORE else "`tool: 1`"
    return f"on {link} a {fault.name} strikes at {spot} or `phase: connect`", ("at",)
