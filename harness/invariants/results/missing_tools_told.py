"""Where a tool server can not be reached, the user or the model hears that its tools are missing."""

from collections.abc import Iterator

from wedgehog.fake_llm.script.roles import is_named
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import ends, main_calls_of, requests
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.service import ToolAsked
from wedgehog.harness.record.history import History
from wedgehog.harness.record.tool_words import lines_of_missing_tools
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Turn

TOOL_LINKS = ("tool:mcp", "ipc:")
OUR_HOST = ("tool:mcp", "ipc:mcp")


@invariant("missing_tools_told", level="strict")
def missing_tools_told(history: History) -> Iterator[Verdict]:
    """If a fault keeps a tool server away, so that a turn has none of its tools, the user or the model is told.

    A model that does not know that tools are missing answers as if it had used them, and its user believes it. Judged
    on answered turns in which a fault struck a tool server, and whose requests offer fewer tools than those of another
    turn: of our tool host, one that was called there. The user may read it in the output, of a service in its reply;
    the model in the system text or in a message. Any words about a tool, a server or a connection that fails are
    enough.

    Fix: When a server can not be started or reached, say so with its name in the output, and add a sentence to the
    system text: its tools are not there, and the user must hear so if they are needed.
    """
    for turn in history.turns:
        fired = next((it for it in history.of(FaultFired) if it.turn == turn.number and _is_of_tools(it)), None)
        if fired is None or outcome_of(turn, history).kind != "answered":
            continue
        if not _lacks_tools(history, turn, fired):
            continue
        calls = main_calls_of(turn)
        if any(call.arrived.tool_notices is None for call in calls):
            continue
        others = [it for it in history.turns if it is not turn]
        if _notices(turn) - {found for it in others for found in _notices(it)}:
            yield passed(because=f"{turn}: its requests tell the model that tools failed")
        elif _lines(turn) - {line for it in others for line in _lines(it)}:
            yield passed(because=f"{turn}: its output tells the user that tools failed")
        else:
            says = f"{turn}: the tool server could not be used, and neither the user nor the model was told"
            yield fail(says, (fired, *requests(calls[:1]), *ends(turn)))


def _is_of_tools(fired: FaultFired) -> bool:
    return fired.link.startswith(TOOL_LINKS)


def _lacks_tools(history: History, turn: Turn, fired: FaultFired) -> bool:
    """Whether its requests offer only a part of the tools that the requests of another turn offer.

    Another server may have changed its tools: where calls of our host have shown the names of its tools, one of these
    must be missing.
    """
    offered = _tools(turn)
    more = (_tools(it) - offered for it in history.turns if offered < _tools(it))
    ours = {asked.tool for asked in history.of(ToolAsked)} if fired.link in OUR_HOST else set()
    return bool(main_calls_of(turn)) and any(not ours or _has_one(missing, ours) for missing in more)


def _has_one(offered: set[str], tools: set[str]) -> bool:
    return any(is_named(name, tool) for name in offered for tool in tools)


def _tools(turn: Turn) -> set[str]:
    return {name for call in main_calls_of(turn) for name in call.arrived.tools}


def _notices(turn: Turn) -> set[str]:
    return {found for call in main_calls_of(turn) for found in call.arrived.tool_notices or ()}


def _lines(turn: Turn) -> set[str]:
    """The lines about tools that fail, and those of another language, of what its user reads."""
    end = turn.end
    if end is None:
        return set()
    own = "" if end.log_on_stderr else f"{end.stdout}\n{end.stderr}"
    said = "\n".join(call.ended.text_delivered for call in turn.calls if call.ended is not None)
    return {line for line in lines_of_missing_tools(f"{end.answer}\n{end.error}\n{own}") if line not in said}
