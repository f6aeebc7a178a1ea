"""How many rounds and calls a turn may have before it is stopped: its verdict is certain, or its cost endless."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

from wedgehog.fake_llm.script.main_call import COMPACTING
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.invariants import find
from wedgehog.harness.invariants.requests.tool_round_bound import TOOL_ROUNDS
from wedgehog.harness.record.events.call import ReplyStarted, RequestArrived
from wedgehog.harness.record.history import History
from wedgehog.harness.run.judging.judge import bounds
from wedgehog.harness.scenario.model import Scenario

ENDLESS = 5
"""A turn with this many times the allowed rounds is stopped in every run."""
BESIDE = 150
"""This many background requests in a row, or requests for a summary in a turn, are an endless loop in every run."""
PAID_IN_A_STEP = 2_000
"""So many paid calls of one step are endless in every run: the worst public report of a storm has 1,384 calls."""
CERTAIN = 2
"""This many times the allowed number is too many, also without the calls that a busy machine explains."""


@dataclass(frozen=True)
class CountBounds:
    """What a turn may have before it is stopped; None: any number."""

    rounds: int = ENDLESS * TOOL_ROUNDS
    """Rounds of tool calls. Each call carries all results before it, so an endless turn costs more and more time."""
    paid_calls: int | None = None
    """Calls of one step that the provider accepted."""
    calls: int | None = None
    """All calls of the turn."""

    def exceeded(self, history: History, turn: int, rounds: int) -> str:
        """What the turn has too many of, such as `27 paid calls of one step`; empty without any."""
        if rounds > self.rounds:
            return f"{rounds:,} rounds of tool calls"
        if (below := _rounds_of_a_subagent(history, turn)) > max(self.rounds, CERTAIN * TOOL_ROUNDS):
            return f"{below:,} rounds of tool calls of a subagent"
        if self.paid_calls is not None and (paid := _paid_in_one_step(history, turn)) > self.paid_calls:
            return f"{paid:,} paid calls of one step"
        if self.calls is not None and (calls := sum(1 for _ in requests_of(history, turn))) > self.calls:
            return f"{calls:,} calls"
        beside = _last_beside(history, turn)
        if beside > BESIDE:
            return f"{beside:,} requests beside the conversation in a row"
        summaries = _summaries(history, turn)
        return f"{summaries:,} requests for a summary" if summaries > BESIDE else ""


def requests_of(history: History, turn: int) -> Iterator[RequestArrived]:
    """The requests of a turn so far."""
    return (event for event in history.of(RequestArrived) if event.turn == turn)


def _rounds_of_a_subagent(history: History, turn: int) -> int:
    """The most rounds of one conversation beside the main one: each of them sends the results of the one before."""
    later = {(event.side, event.step) for event in requests_of(history, turn) if event.side and event.step > 1}
    return max(Counter(side for side, _ in later).values(), default=0)


def _summaries(history: History, turn: int) -> int:
    """How often a summary of the conversation was asked for, whatever came between."""
    return sum(1 for event in requests_of(history, turn) if event.background in COMPACTING and not event.side)


def _last_beside(history: History, turn: int) -> int:
    """How many requests for a title, a summary or a check came last, with none of a conversation between them."""
    last = reversed([*requests_of(history, turn)])
    return sum(1 for _ in takewhile(lambda it: bool(it.background) and not it.side, last))


def _paid_in_one_step(history: History, turn: int) -> int:
    paid = {event.call for event in history.of(ReplyStarted)}
    main = (event for event in requests_of(history, turn) if not event.background)
    return max(Counter(event.step for event in main if event.call in paid).values(), default=0)


def count_bounds(scenario: Scenario, agent: AgentSpec, *, until_certain: bool) -> CountBounds:
    """The counts at which a turn is stopped: what is endless; with `until_certain` also what surely breaks a bound."""
    most = CountBounds(ENDLESS * _greatest_rounds(scenario, agent), PAID_IN_A_STEP)
    if not until_certain:
        return most
    again = _allowed("paid_call_bound", "per_step", scenario, agent)
    calls = _allowed("paid_call_bound", "calls_per_turn", scenario, agent)
    rounds = _allowed("tool_round_bound", "tool_rounds", scenario, agent)
    return CountBounds(
        most.rounds if rounds is None else min(most.rounds, CERTAIN * rounds),
        PAID_IN_A_STEP if again is None else min(PAID_IN_A_STEP, CERTAIN * (1 + again)),
        None if calls is None else CERTAIN * calls,
    )


def _greatest_rounds(scenario: Scenario, agent: AgentSpec) -> int:
    """The stock bound, or a greater one of the scenario or the agent."""
    asked = (scenario.invariants.get("tool_round_bound") or {}).get("tool_rounds", 0)
    stated = agent.limits.stated.get("tool_rounds")
    return max(TOOL_ROUNDS, int(asked), int(stated.at_most) if stated is not None else 0)


def _allowed(invariant: str, parameter: str, scenario: Scenario, agent: AgentSpec) -> int | None:
    """The number that the judge allows; None if the run is not judged by it."""
    given = scenario.invariants.get(invariant, {})
    if given is None:
        return None
    number = bounds(invariant, given, agent, 1.0).get(parameter, find(invariant).parameters[parameter].default)
    return None if number is None else int(number)
