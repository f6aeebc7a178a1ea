"""The control run: what an agent does without any fault, before any verdict on it.

Its text message must be answered; what else it shows (a tool round, streaming, a resume) decides which scenarios
apply to it.
"""

from dataclasses import dataclass, replace

from wedgehog.fake_llm.position import MainShape
from wedgehog.fake_llm.roles import SHELL
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.event import CallUnscripted, RequestRefused, StartMissed, Trouble, TurnEnded
from wedgehog.harness.history import History
from wedgehog.harness.outcome import outcome_of
from wedgehog.harness.scenario import Scenario

TEXT = "Hello! Please answer with the words of the model."
TOOL = "Please run the command."


@dataclass(frozen=True, slots=True)
class ControlFacts:
    """What the control run showed."""

    passed: bool
    says: str = ""
    start_up_s: float = 0.0
    shape: MainShape | None = None
    tools: frozenset[str] = frozenset()
    """Names of the tools that the main call advertises; `shell` besides where one can play that role."""
    streams: bool = False
    resumes: bool = False
    background: bool = False
    """Whether it makes calls beside the conversation: titles, loop checks."""
    refusals: frozenset[str] = frozenset()
    """Messages of refusals (not for pairing) that the agent gets without any fault too."""


def control_scenario() -> Scenario:
    """A text message, then a tool round on the same session (only text where the agent has no shell)."""
    return Scenario.model_validate(
        {
            "name": "control",
            "why": "What the agent does without any fault.",
            "turns": [
                {"user": TEXT, "model": [{"text": "All is well. {nonce}"}]},
                {
                    "user": TOOL,
                    "model": [{"tool": SHELL, "args": {"command": "echo hello"}}, {"text": "It said hello. {nonce}"}],
                },
            ],
        }
    )


def read_control(
    history: History, shapes: dict[int, MainShape], shells: dict[int, bool], answered_by: int | None, wire: str = ""
) -> ControlFacts:
    """The facts in a control run's history; `answered_by` is the call whose nonce came out as the answer.

    `wire` is what the spec says that the agent speaks.
    """
    turn = history.turns[0] if history.turns else None
    if turn is None or turn.stimulus is None:
        return ControlFacts(False, _why(history))
    start_up = turn.calls[0].at_s - turn.stimulus.at_s if turn.calls else 0.0
    if answered_by is None:
        return ControlFacts(False, _why(history), start_up)
    shape = shapes[answered_by]
    call = next(call for call in history.calls if call.number == answered_by)
    if wire and call.arrived.wire != wire:
        said = f"the spec says wire {wire}, and the agent called {call.arrived.wire} ({call.arrived.path})"
        return ControlFacts(False, said, start_up)
    tools = shape.tools | ({SHELL} if shells.get(answered_by) else frozenset())
    later = [call for turn in history.turns[1:] for call in turn.main_calls]
    systems = {shapes[call.number].system for call in later if call.number in shapes}
    if systems and shape.system not in systems:
        shape = replace(shape, system="")
    resumes = any({1, 2} <= set(call.arrived.turns_seen) for call in later)
    refusals = frozenset(event.message for event in history.of(RequestRefused) if not event.scripted)
    background = any(not shape.alike(other) for other in shapes.values())
    return ControlFacts(True, "", start_up, shape, tools, call.arrived.stream, resumes, background, refusals)


def _why(history: History) -> str:
    """What is missing, in words that its user can act on."""
    trouble = history.first(Trouble)
    if trouble:
        return trouble.what
    calls = history.calls
    if history.first(StartMissed) or not calls:
        said = _words(history)
        return f"no request for the model arrived: does the agent use {{llm_url}}?{said}"
    refused = next((call.refused for call in calls if call.refused), None)
    if refused:
        return (
            f"the provider refused its request without any fault: {refused.status} {refused.message}{_words(history)}"
        )
    unscripted = history.first(CallUnscripted)
    if unscripted:
        return f"a request did not fit: {unscripted.why}"
    turn = history.turns[0]
    outcome = outcome_of(turn, history)
    return f"its answer did not hold the model's words ({outcome.kind}: {outcome.how}); is `answer:` right?"


def _words(history: History) -> str:
    ended = history.first(TurnEnded)
    text = " ".join((ended.error or ended.stderr or ended.stdout or ended.raised or "").split()) if ended else ""
    return f" It said: {text[-300:]}" if text else ""


def why_skipped(scenario: Scenario, spec: AgentSpec, control: ControlFacts) -> str:
    """Why a scenario does not apply to this agent; empty where it does."""
    missing = sorted(scenario.tools - control.tools)
    reasons = {
        f"the agent advertises no tool {', '.join(missing)}": bool(missing),
        "the agent does not stream, and the fault counts events": scenario.needs_stream and not control.streams,
        "the spec does not say how its own timer fires (wake_up)": scenario.uses_wake_up and not spec.wakes_up,
        "the agent has no front end that could give up (http)": scenario.needs_channel and spec.kind != "http",
        "the agent makes no background calls": scenario.needs_background and not control.background,
        "the agent does not continue a session": len(scenario.turns) > 1 and not control.resumes,
    }
    return next((reason for reason, applies in reasons.items() if applies), "")
