"""What became of a tool call, and what the model reads of it: views that several checks share."""

from collections.abc import Iterator, Sequence

from wedgehog.harness.invariants.scope import blocked, called_beside, main_calls_of, tool_uses_of
from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.call import RequestArrived, ToolResult
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.turn import AgentKilled, Frozen, PermissionAsked
from wedgehog.harness.record.history import History
from wedgehog.harness.record.views import ToolUse, Turn

QUICK_S = 2.0
"""A command that ends so soon, divided by the run's time scale, meets no time limit of an agent."""
LARGEST_OWN_CODE = 125
"""Above it the shell says that the command could not run, or was killed by a signal."""
ANOTHER_FORM_CHARS = 200
"""A longer text may hold what the command printed in another form."""


def denied(history: History) -> set[str]:
    """The tokens of the tool calls that the user did not allow when last asked."""
    chosen = {token: asked.chosen for asked in history.of(PermissionAsked) for token in asked.tokens}
    return {token for token, option in chosen.items() if not option.startswith("allow")}


def disturbed(history: History, turn: Turn) -> bool:
    """Whether a fault struck a tool or a process in this turn, or another turn was open beside it."""
    of_tools = any(it.turn == turn.number and it.link != "llm" for it in history.of(FaultFired))
    struck = {it.turn for it in history.of(Frozen)} | {it.turn for it in history.of(AgentKilled)}
    return of_tools or turn.number in struck or bool(history.beside(turn))


def reply_is_sound(history: History, turn: Turn, use: ToolUse) -> bool:
    """Whether the reply with this tool call came whole, and no fault struck it."""
    call = next(call for call in turn.main_calls if call.ended is use.reply)
    struck = any(it.call == call.number for it in history.of(FaultFired))
    return call.ok and not call.damaged and use.offered.whole and not struck


def ended_well(history: History, use: ToolUse) -> bool:
    """Whether a command ran once, and ended with 0 within 2 s."""
    if len(use.started) != 1 or len(use.done) != 1 or use.started[0].background:
        return False
    quick_s = QUICK_S / history.run.time_scale
    return use.done[0].exit_code == 0 and use.done[0].at_s - use.started[0].at_s <= quick_s


def next_request(turn: Turn, uses: Sequence[ToolUse]) -> RequestArrived | None:
    """The first main request after these tools have ended."""
    ended = max(use.done[0].id for use in uses)
    return next((call.arrived for call in main_calls_of(turn) if call.arrived.id > ended), None)


def may_be_summarized(history: History, reply: Event, following: RequestArrived) -> bool:
    """Whether a call beside the conversation came between, or the request has a result without a known call."""
    return called_beside(history, reply.id, following.id) or any(not result.token for result in following.results)


def outputs_told(history: History) -> Iterator[tuple[ToolUse, RequestArrived, list[ToolResult]]]:
    """Each command that ended well in a turn without a fault on tools, the request after it, and its results."""
    for turn in history.turns:
        for use in () if disturbed(history, turn) else tool_uses_of(turn):
            if not (reply_is_sound(history, turn, use) and ended_well(history, use)):
                continue
            following = next_request(turn, [use])
            if following is None or blocked(history, use, following):
                continue
            if not may_be_summarized(history, use.reply, following):
                yield use, following, use.carried
