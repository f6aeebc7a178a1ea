"""Sentences that help to understand a run and change no verdict: timers, repairs, commands that never ran."""

import re
from collections.abc import Iterator, Sequence

from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.invariants.requests.side_call_bound import side_calls
from wedgehog.harness.invariants.scope import name_of_call, over, tool_uses_of
from wedgehog.harness.invariants.subagents.subagent_kept import ended_well
from wedgehog.harness.invariants.tool_results import denied
from wedgehog.harness.record.error_words import plain
from wedgehog.harness.record.events.turn import TurnEnded
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import NOTHING_TO_JUDGE, Verdict
from wedgehog.harness.record.views import Turn
from wedgehog.harness.run.judging.timer_remarks import timer_chain, timer_remarks

REPAIRED = re.compile(r"\b(?:stripped|sanitiz|repaired|removed dangling)", re.IGNORECASE)


def remarks(history: History, agent: AgentSpec, verdicts: Sequence[Verdict]) -> Iterator[str]:
    """What helps to understand the run: remarks of checks, timers that fired, repairs that were logged."""
    yield from (it.says for it in verdicts if it.status == "pass" and it.says not in ("", NOTHING_TO_JUDGE))
    for name, limit in agent.limits.stated.items():
        yield f"its own limit of {name} is {limit.at_most:g}: {limit.why}"
    yield from (it.says for it in verdicts if it.status == "nothing" and it.says.startswith("not judged"))
    yield from timer_chain(agent.timeouts)
    for turn in history.turns:
        outcome = outcome_of(turn, history)
        if outcome.remark:
            yield f"{turn}: {outcome.remark}"
    yield from timer_remarks(agent.timeouts, history)
    yield from unrun_remarks(history)
    yield from lost_subagents(history)
    yield from _shared_output(history)
    for ended in history.of(TurnEnded):
        yield from dict.fromkeys(f"turn {ended.turn}: it logged: {line}" for line in repairs_in(ended.stderr))


def repairs_in(log: str) -> Iterator[str]:
    """The lines of a log that tell of a repaired session; a line may have megabytes.

    >>> list(repairs_in("ready\\nRemoved dangling call 3\\n"))
    ['Removed dangling call 3']
    """
    return (line.strip() for line in log.split("\n") if REPAIRED.search(line))


def unrun_remarks(history: History) -> Iterator[str]:
    """A sentence for each turn in which a command arrived whole and never ran, though a result of it was sent.

    A sandbox that cannot write our file, a dry run, or a rule of the agent that refuses the command: the invariants
    about tools have nothing to judge then, and a pass says less than it seems to.
    """
    refused = denied(history)
    for turn in (it for it in history.turns if over(it) is None):
        unrun = [name for token, name in _unrun_calls(turn) if token not in refused]
        if unrun:
            more = f" and {len(unrun) - 1} more" if len(unrun) > 1 else ""
            yield f"{turn}: {unrun[0]}{more} never ran, though a result was sent: its command left no trace"


def _unrun_calls(turn: Turn) -> Iterator[tuple[str, str]]:
    """The token and the name of each such call; one of a tool that does not exist cannot run."""
    exist = {tool for call in turn.calls for tool in call.arrived.tools}
    for use in tool_uses_of(turn):
        runs = use.offered.traced and use.offered.whole and use.offered.name in exist
        if runs and use.results and not use.started:
            yield use.token, name_of_call(use)


def lost_subagents(history: History) -> Iterator[str]:
    """A sentence for each subagent whose result was lost, because the turn ended in the error of another one.

    An agent may end a turn so, and the next message begins anew; but the subagent's work is paid a second time then.
    Only of an agent that passes a subagent's words on as they are.
    """
    main = [call for call in history.calls if call.main]
    quoted = {number for call in main for number in call.arrived.quotes}
    for turn in history.turns:
        sides = [side for side in side_calls(history) if side.calls[-1].arrived.turn == turn.number]
        failed = [side for side in sides if not side.calls[-1].ok]
        if not (quoted and failed and turn.end is not None and outcome_of(turn, history).kind == "surfaced"):
            continue
        goes_on = any(call.arrived.id > turn.end.id for call in main)
        mine = [call.arrived.id for call in main if call.arrived.turn == turn.number]
        shown = plain(f"{turn.end.stdout}\n{turn.end.answer}\n{turn.end.error}")
        for side in sides if goes_on else ():
            last = ended_well(side, turn)
            words = plain(last.ended.text_delivered) if last is not None and last.ended is not None else ""
            if last is None or last.number in quoted or max(mine, default=0) > last.arrived.id:
                continue
            if words and words not in shown:
                says = f"{turn} ended in the error of {failed[0].name}, and what {side.name} returned is lost"
                yield f"{says}: no later request carries the words of call {last.number}"


def _shared_output(history: History) -> Iterator[str]:
    """One sentence if a process printed something while turns of two sessions ran in it."""
    shared = [turn for turn in history.turns if turn.end is not None and turn.end.shared and turn.end.stderr.strip()]
    if shared:
        yield (
            f"{', '.join(map(str, shared))}: turns of two sessions ran in one process: a line on its stderr counts as "
            "said in each of them, and a stack in none"
        )
