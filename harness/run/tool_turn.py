"""What the control run's turn with a tool showed."""

from collections.abc import Iterator

from wedgehog.fake_llm.script.roles import SHELL
from wedgehog.harness.record.events.call import RequestRefused
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.views import ToolUse, Turn

CONTROL_TOOL = "wedgehog_hello"
"""The tool host's only tool if the scenario names none, as in the control run."""
RESULT_MARKS = "it is known by the id of its call, or by the last line that the command prints"
MANY_CALLS = 10
"""An agent that asks so often for the same has lost the result."""
A_RESULT = 8
"""A request that is longer by fewer bytes holds no result: the command prints more."""


def working_tools(history: History) -> Iterator[str]:
    """The tools of the last turn whose output came."""
    turn = history.turns[-1]
    if turn.number == 1 or outcome_of(turn, history).kind != "answered":
        return
    for use in turn.tool_uses:
        of_host = use.offered.name.endswith(CONTROL_TOOL)
        if use.done and any(it.printed and not it.is_error for it in use.carried):
            yield CONTROL_TOOL if of_host else SHELL


def why_no_tool_turn(history: History, how: str) -> str:
    """Why scenarios with this tool cannot be judged; empty if they can. `how` is what `how_it_failed` says."""
    uses = _uses(history)
    lost = any(refused.pairing for refused in history.of(RequestRefused))  # its own failure, which every run shows
    if lost or not uses or any(use.results for use in uses):
        return ""
    if how:
        return f"in its control run its turn with a tool failed, though nothing had gone wrong: {how}"
    ran = "the tool was run" if any(use.started for use in uses) else "the tool was not run"
    return f"in its control run {ran}, and no request carried its result: {RESULT_MARKS}"


def how_it_failed(history: History) -> str:
    """How the turn with a tool went wrong by the agent's fault alone; empty if it did not, or if it is not certain.

    A request that is longer than the first one of the turn may hold the result in words that nothing here knows. An
    agent that ends its turn with words may have asked its user for something. Words of the first turn too are a log.
    """
    uses, turn = _uses(history), history.turns[-1]
    if not uses or any(use.results for use in uses) or turn.number == 1 or not turn.main_calls:
        return ""
    first, *further = turn.main_calls
    if any(call.arrived.body_bytes >= first.arrived.body_bytes + A_RESULT for call in further):
        return ""
    outcome = outcome_of(turn, history)
    if len(turn.main_calls) >= MANY_CALLS:
        return f"the model was asked {len(turn.main_calls)} times, and no request held a result"
    if outcome.kind == "silent":
        return "it did not end"
    return "it ended without a word" if outcome.kind == "hidden" and not _words(turn) - _words(history.turns[0]) else ""


def results_in_text(history: History) -> bool:
    """Whether the turn carried results as words of a message, without the id of their call."""
    carried = [it for use in _uses(history) for it in use.carried]
    return bool(carried) and all(it.in_text for it in carried)


def _words(turn: Turn) -> set[str]:
    """The lines of its answer, of its error and of its log."""
    end = turn.end
    said = (end.answer, end.error, end.stderr) if end is not None else ()
    return {line.strip() for part in said for line in part.splitlines()} - {""}


def _uses(history: History) -> list[ToolUse]:
    return [use for use in history.tool_uses if use.turn > 1]
