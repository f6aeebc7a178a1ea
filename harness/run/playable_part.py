"""How far an agent can play a scenario: with a tool of its own, its first turn alone, or faults at other events."""

from wedgehog.fake_llm.reply import Reply, Text
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.record.events.call import CALLS_AT_ONCE
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.run.own_tool_calls import with_own_tool
from wedgehog.harness.scenario.fault_config import TriggerConfig
from wedgehog.harness.scenario.model import Scenario

FIRST_TURN_ONLY = "only its first turn was played: the agent does not continue a session"


def _only_a_session(scenario: Scenario) -> bool:
    """Whether the scenario is about a session alone: nothing fails in it."""
    return "session" in scenario.tags and not scenario.faults


def goes_on(scenario: Scenario, spec: AgentSpec, control: ControlFacts) -> bool:
    """Whether several turns can be played: the control run continued its session, or nothing fails and it must."""
    return control.resumes or (spec.says_it_resumes and _only_a_session(scenario))


def as_far_as(scenario: Scenario, spec: AgentSpec, control: ControlFacts) -> Scenario:
    """The scenario as far as an agent can play it: its faults in the events that a reply has, its turns as below."""
    wholly = spec.wire in CALLS_AT_ONCE and spec.finish is not None and bool(spec.finish.tool and spec.finish.arg)
    scenario = with_own_tool(scenario, spec, control)
    fitting = _in_one_event(scenario) if wholly else scenario
    return _turns_of(fitting, spec, control)


def _in_one_event(scenario: Scenario) -> Scenario:
    """Where last words are a tool call, which is one event of a stream: a fault of a later event fires after it."""
    places = [(it, it.at.event or 0, _last_words(scenario, it.at)) for it in scenario.faults]
    faults = [
        it.model_copy(update={"at": it.at.model_copy(update={"event": 1})}) if event > 1 and words else it
        for it, event, words in places
    ]
    return scenario.model_copy(update={"faults": type(scenario.faults)(faults)})


def _last_words(scenario: Scenario, at: TriggerConfig) -> bool:
    """Whether the scripted reply there is words alone, which end a turn."""
    replies = scenario.turns[at.turn - 1].replies if 0 < at.turn <= len(scenario.turns) else ()
    return at.on == "main" and 0 < at.step <= len(replies) and _words(replies[at.step - 1])


def _words(reply: Reply) -> bool:
    return all(isinstance(item, Text) for item in reply.items)


def _turns_of(scenario: Scenario, spec: AgentSpec, control: ControlFacts) -> Scenario:
    """For an agent without a session, the first turn alone, if all faults are there.

    All turns, if another one is part of what is judged: it is given during the first one, the scenario names
    invariants, or the scenario is about a session in which nothing fails.
    """
    alone = len(scenario.turns) < 2 or goes_on(scenario, spec, control) or not control.passed
    elsewhere = any(it.at.turn != 1 for it in scenario.faults) or any(it.during is not None for it in scenario.turns)
    elsewhere = elsewhere or "sessions" in scenario.needs or _only_a_session(scenario)
    if alone or elsewhere or scenario.session is not None or scenario.expect or any(scenario.invariants.values()):
        return scenario
    return scenario.model_copy(update={"turns": scenario.turns[:1]})
