"""One bound of time for all agents that are compared, in place of what each spec promises.

A spec's `turn_s` is stricter for one agent than for another: the same program would pass under one spec and fail under
the other. So where agents with different limits play one scenario, the scenario's bound holds, or that of `--turn-s`.
A tighter limit of a spec is judged apart, and changes no verdict.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.campaign.selection import Entry
from wedgehog.harness.invariants import check
from wedgehog.harness.invariants.registry import find
from wedgehog.harness.record.history import History
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.scenario.model import Scenario

DEADLINE = "turn_deadline"


@dataclass(frozen=True)
class CommonBound:
    """The common bound. `turn_s`: in real seconds, from `--turn-s`; None: the scenario's, or the stock one."""

    turn_s: float | None = None

    def scenario(self, scenario: Scenario, time_scale: float) -> Scenario:
        """The scenario with this bound; one that bounds no turn stays as it is."""
        given = scenario.invariants.get(DEADLINE, {})
        if self.turn_s is None or given is None:
            return scenario
        bound = {**given, "turn_s": self.turn_s * time_scale}
        return scenario.model_copy(update={"invariants": {**scenario.invariants, DEADLINE: bound}})

    def says(self, scenario: Scenario, time_scale: float) -> str:
        """The bound in real seconds, and where it comes from; empty if the scenario bounds no turn."""
        given = scenario.invariants.get(DEADLINE, {})
        if given is None:
            return ""
        if self.turn_s is not None:
            return f"{self.turn_s:g} s, by --turn-s"
        if "turn_s" in given:
            return f"{float(given['turn_s']) / time_scale:g} s, by the scenario"
        return f"{find(DEADLINE).parameters['turn_s'].default:g} s, the stock bound"

    def beside(self, judgement: Judgement, history: History, scenario: Scenario, agent: AgentSpec) -> Judgement:
        """The judgement with the bound that was used, and with how the agent exceeds only its own limit."""
        bound = self.says(scenario, history.run.time_scale)
        own = "" if DEADLINE in judgement.violated else own_limit(history, agent)
        return replace(judgement, own_limit=own, bound=bound)

    def agent(self, agent: AgentSpec) -> AgentSpec:
        """The agent without its own bound."""
        return agent.model_copy(update={"limits": agent.limits.model_copy(update={"turn_s": None})})


def common_bound_of(entry: Entry, entries: Iterable[Entry], turn_s: float | None) -> CommonBound | None:
    """The common bound of an entry among those of its scenario; None: none has another limit, so the spec's holds.

    An incident's own agents are not compared: the scenario expects a result of each.
    """
    if turn_s is not None:
        return CommonBound(turn_s)
    limits = {it.agent.limits.turn_s for it in entries if not _specimen(it)}
    return CommonBound() if not _specimen(entry) and len(limits) > 1 else None


def _specimen(entry: Entry) -> bool:
    return entry.matrix_only or entry.agent.name in entry.scenario.expect


def own_limit(history: History, agent: AgentSpec) -> str:
    """The sentence about a turn that exceeds the limit of its spec; empty if it is kept, or if there is none."""
    if agent.limits.turn_s is None:
        return ""
    found = check(DEADLINE, history, turn_s=agent.limits.turn_s)
    return found.says if found.status == "fail" else ""
