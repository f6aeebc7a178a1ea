"""Why a scenario does not apply to an agent, if only its run shows that."""

from wedgehog.fake_llm.script.main_call import COMPACTING
from wedgehog.fake_llm.script.roles import (
    FETCH,
    SUBAGENT_MESSAGE,
    SUBAGENT_STOP,
    SUBAGENT_TOOL,
    names_message,
    names_stop,
)
from wedgehog.harness.faults.process_fault import ProcessFault
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.run import AgentStarted
from wedgehog.harness.record.events.service import BeaconSeen, PageAsked
from wedgehog.harness.record.history import History
from wedgehog.harness.scenario.fault_plan import PlannedFault
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.scenario.trigger import COMPACTION, AtTool, SessionWritten

STILL_RUNS_S = 0.5
"""A command that runs for so long after its fault was due was there to be struck."""


def why_never_met(history: History, scenario: Scenario) -> str:
    """Why what the scenario is about never came; empty if it did, or if the run does not show why."""
    if not history.whole:
        return ""
    return (
        _not_compacted(history, scenario)
        or _not_sent(history, scenario)
        or _not_fetched(history, scenario)
        or _not_found(history, scenario)
        or _not_delegated_on(history, scenario)
        or _not_reached(history, scenario)
        or _not_written(history, scenario)
    )


def _not_compacted(history: History, scenario: Scenario) -> str:
    """Why a scenario about compaction does not apply, if the run shows that; empty if it does."""
    harmed = any(words.at.on == COMPACTION for words in scenario.faults)
    compacted = any(call.arrived.background in COMPACTING for call in history.calls)
    if not harmed or compacted:
        return ""
    return "in this run the agent did not ask the model to compact the conversation"


def _not_sent(history: History, scenario: Scenario) -> str:
    """Why a fault on what only some agents send does not apply, if the run shows that; empty if it does."""
    fired = {it.fault for it in history.of(FaultFired)}
    unmet = (it.unmet for number, it in enumerate(scenario.faults) if number not in fired)
    return next(filter(None, unmet), "")


def _not_fetched(history: History, scenario: Scenario) -> str:
    """Why a scenario about pages does not apply, if the run shows that; empty if it does."""
    if FETCH not in scenario.tools_called or history.first(PageAsked) or not _fetched_freely(history, scenario):
        return ""
    return "in this run the agent's tool asked our server for no page; it may refuse addresses on this machine"


def _fetched_freely(history: History, scenario: Scenario) -> bool:
    """Whether a page was to be read while its server was there: one that refuses all is asked for nothing."""
    harmed = {it.turn for it in history.of(FaultFired)}
    turns = range(1, len(scenario.turns) + 1)
    return not harmed or any(use.results and use.turn in turns and use.turn not in harmed for use in history.tool_uses)


def _not_delegated_on(history: History, scenario: Scenario) -> str:
    """Why a scenario whose subagents start others of another kind does not apply; empty if one could."""
    leaders = {it.name for it in scenario.conversations if SUBAGENT_TOOL in it.tools_called}
    started = {it.name for it in scenario.conversations} - leaders
    ended = [call.ended for call in history.calls if call.arrived.background in leaders]
    if not ended or not started or any(it is None or it.tool_calls for it in ended):
        return ""
    if any(call.arrived.background in started for call in history.calls):
        return ""
    return "in this run its subagents had no tool to start others"


_REACHES = {SUBAGENT_STOP: (names_stop, "stop"), SUBAGENT_MESSAGE: (names_message, "write to")}
"""What the model does with a subagent that it has begun."""


def _not_reached(history: History, scenario: Scenario) -> str:
    """Why a scenario in which the model stops a subagent, or writes to one, does not apply; empty if it did."""
    for role, (names, does) in _REACHES.items():
        if role not in scenario.tools_called or any(names(it.offered.name) for it in history.tool_uses):
            continue
        if any(use.results for use in history.tool_uses):
            return f"in this run the model was not told the name by which it can {does} its subagent"
    return ""


def _not_written(history: History, scenario: Scenario) -> str:
    """Why a fault on a session file does not strike an agent that stays: it may keep its sessions in memory."""
    fired = {it.fault for it in history.of(FaultFired)}
    plan = scenario.plan(history.run.time_scale)
    waits = [it.trigger for number, it in enumerate(plan.faults) if number not in fired]
    turns = {at.turn for at in waits if isinstance(at, SessionWritten)}
    asked = any(turn.number in turns and any(call.ok for call in turn.main_calls) for turn in history.turns)
    if not asked or not any(it.ready_s for it in history.of(AgentStarted)):
        return ""
    return "the agent stays, and wrote no session file in its turn; if it has some, name them (session_files)"


def _not_found(history: History, scenario: Scenario) -> str:
    """Why a fault on a running command could not strike it, if that ran; empty if it did not run, or was struck."""
    fired = {it.fault for it in history.of(FaultFired)}
    plan = scenario.plan(history.run.time_scale)
    faults = [it for number, it in enumerate(plan.faults) if number not in fired]
    if not any(_ran_on(history, planned) for planned in faults):
        return ""
    return (
        "the running command cannot be struck alone: no process is known that has it in its command line, "
        "as where one shell reads all commands from its stdin"
    )


def _ran_on(history: History, planned: PlannedFault) -> bool:
    """Whether a fault on a command was due while the command ran, and in its turn."""
    at = planned.trigger
    if not (isinstance(planned.fault, ProcessFault) and planned.fault.hits == "tool" and isinstance(at, AtTool)):
        return False
    seen = [it for it in history.of(BeaconSeen) if it.token == f"{at.turn}.{at.step}.{at.tool}"]
    started = next((it for it in seen if it.phase == "started"), None)
    if started is None or at.when != "started":
        return False
    until_s = started.at_s + (at.after_s or 0.0) + STILL_RUNS_S
    ends = [turn.end.at_s for turn in history.turns if turn.number == at.turn and turn.end is not None]
    return min([*ends, *(it.at_s for it in seen if it.phase == "done")], default=0.0) >= until_s
