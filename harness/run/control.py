"""The control run, before any verdict: its text message must be answered; the rest decides which scenarios apply."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from wedgehog.fake_llm.script.main_call import MainShape
from wedgehog.fake_llm.script.results_in_text import ResultFrame
from wedgehog.fake_llm.script.roles import SHELL
from wedgehog.harness.record.error_words import causes
from wedgehog.harness.record.events.call import RequestRefused
from wedgehog.harness.record.events.run import AskerSeen
from wedgehog.harness.record.events.service import TokenAsked
from wedgehog.harness.record.events.turn import PermissionAsked, TurnEnded
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.views import Call, Turn
from wedgehog.harness.run.control_failure import why_failed
from wedgehog.harness.run.tool_turn import CONTROL_TOOL, how_it_failed, results_in_text, why_no_tool_turn, working_tools
from wedgehog.harness.scenario.host_tools import HostTool
from wedgehog.harness.scenario.model import Scenario

TEXT = "Hello! Please answer with the words of the model."
TOOL = "Please run the command."
HELLO = "hello"
"""What the command of the tool turn prints, before its last line."""
CONTROL_TOOLS = {CONTROL_TOOL: HostTool(says="Says hello.", answer="hello")}
MUCH_S, MUCH_SHARE = 0.3, 0.2
"""A first request that waited for so long, and for this share of its time, may have come before a server was ready."""


@dataclass(frozen=True, slots=True)
class ControlFacts:
    """What the control run showed."""

    passed: bool
    says: str = ""
    start_up_s: float = 0.0
    """The longest time from a message to its first request: an agent may read a long history first."""
    shape: MainShape | None = None
    tools: frozenset[str] = frozenset()
    """Names of the tools that the main call advertises."""
    at_times: frozenset[str] = frozenset()
    """Names of the tools that it offers for a later message, and not for the first one."""
    shell: bool = False
    """Whether one of them takes a shell command."""
    delegates: bool = False
    """Whether one of them gives a prompt to a subagent."""
    delegates_in_background: bool = False
    """Whether such a subagent can work beside the conversation."""
    fetches: bool = False
    """Whether one of them reads a page of the web."""
    file_tools: frozenset[str] = frozenset()
    """Which of read_file, write_file, edit_file and search_files they offer."""
    questions: bool = False
    """Whether one of them asks the user something."""
    writes: bool = False
    """Whether one of them writes to the user, beside the replies."""
    streams: bool = False
    websocket: bool = False
    """Whether its model calls come over a WebSocket."""
    resumes: bool = False
    tokens: bool = False
    """Whether it asks the token endpoint for an access token."""
    background: bool = False
    """Whether it makes calls beside the conversation: titles, loop checks."""
    background_after: int = 0
    """How many main calls came before the first of these calls; a summary of a long conversation comes late."""
    background_first: bool = True
    """Whether its first turn made one, which is one message and one answer."""
    background_later: bool = True
    """Whether one of these came in a turn after the first one; a title comes with the first message only."""
    plans: bool = False
    """Whether one of these asks for JSON by a schema: a plan, a route, a check."""
    refusals: frozenset[str] = frozenset()
    """Messages of refusals (not for pairing) that the agent gets without any fault too."""
    usual: frozenset[str] = frozenset()
    """Lines that sound like an error, which it prints without any fault too."""
    no_tool_turn: str = ""
    """Why its tool turn shows no result of a tool; empty if it does, or if there was none."""
    tool_turn_fails: str = ""
    """How its tool turn went wrong, though nothing had failed and no request may hold a result; else empty."""
    later_hidden: bool = False
    """Whether a later message ended with other words than the model's answer, though nothing had failed."""
    exit_s: float = 0.0
    """The longest time from the last reply to the end of a turn; from the output of the answer, if that is known."""
    results_in_text: bool = False
    """Whether its tool turn carried results as words of a message, without the id of their call."""
    working_tools: tuple[str, ...] = ()
    """The tools whose output reached the model in its tool turn, if that was answered: `shell`, CONTROL_TOOL."""
    worker: bool = False
    """Whether a process below the agent's own one asks the model."""
    waited: str = ""
    """How long its first request waited for a processor, if that was much: a server may not have been ready for it."""
    asks: frozenset[str] = frozenset()
    """The kinds of option that its requests for permission offer; empty if it makes none."""
    frame: ResultFrame | None = None
    """What it writes around a tool's result in text (`calls_in_text`)."""
    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """JSON Schemas of the arguments of the tools, by name."""


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
                    "model": [
                        {"tool": SHELL, "args": {"command": f"echo {HELLO}"}},
                        {"text": "It said hello. {nonce}"},
                    ],
                },
            ],
        }
    )


def _start_up_s(history: History) -> float:
    waits = (turn.calls[0].at_s - turn.stimulus.at_s for turn in history.turns if turn.calls and turn.stimulus)
    return max(waits, default=0.0)


def read_control(
    history: History, shapes: dict[int, MainShape], shell: bool, answered_by: int | None, wire: str = ""
) -> ControlFacts:
    """The facts of a control run; `answered_by` is the call whose nonce came out as the answer, `wire` the spec's."""
    turn = history.turns[0] if history.turns else None
    structured = any(shape.structured for shape in shapes.values())
    if turn is None or turn.stimulus is None:
        return ControlFacts(False, why_failed(history))
    start_up = _start_up_s(history)
    if answered_by is None:
        return ControlFacts(False, why_failed(history, structured=structured), start_up)
    shape = shapes[answered_by]
    call = next(call for call in history.calls if call.number == answered_by)
    if wire and call.arrived.wire != wire:
        said = f"the spec says wire {wire}, and the agent called {call.arrived.wire} ({call.arrived.path})"
        return ControlFacts(False, said, start_up)
    later = [call for turn in history.turns[1:] for call in turn.main_calls]
    systems = {shapes[call.number].system for call in later if call.number in shapes}
    if systems and shape.system not in systems:
        shape = replace(shape, system="")
    offered = shape.tools
    needed = set() if offered else _answering_later(history)
    brings = [call.number for call in later if call.arrived.results or call.number in needed]
    brought = [shapes[number] for number in brings if number in shapes]
    for other in brought:
        shape = shape.with_tools_of(other)
    resumes = any({1, 2} <= set(call.arrived.turns_seen) for call in later)
    said = "\n".join(f"{ended.answer}\n{ended.error}" for ended in history.of(TurnEnded))
    failed = how_it_failed(history)
    return ControlFacts(
        passed=True,
        start_up_s=start_up,
        shape=shape,
        tools=offered,
        at_times=frozenset(name for other in brought for name in other.tools) - offered,
        shell=shell,
        streams=call.arrived.stream,
        websocket=call.arrived.websocket,
        resumes=resumes,
        tokens=history.first(TokenAsked) is not None,
        background=any(not shape.alike(other) for other in shapes.values()),
        background_after=_main_calls_before(shape, shapes),
        background_first=not all(shape.alike(shapes.get(call.number, shape)) for call in turn.calls),
        background_later=_beside_later(history, shape, shapes),
        plans=any(other.structured and not shape.alike(other) for other in shapes.values()),
        refusals=frozenset(event.message for event in history.of(RequestRefused) if not event.scripted),
        usual=causes(said, history.run.error_patterns),
        no_tool_turn=why_no_tool_turn(history, failed),
        tool_turn_fails=failed,
        later_hidden=any(_hides_its_answer(turn, history) for turn in history.turns[1:]),
        results_in_text=results_in_text(history),
        exit_s=max(turn.exit_s for turn in history.turns),
        working_tools=tuple(working_tools(history)),
        worker=_has_worker(history),
        waited=_waited(history, call),
        asks=frozenset(kind for event in history.of(PermissionAsked) for kind in event.offered),
    )


def _hides_its_answer(turn: Turn, history: History) -> bool:
    """Whether the model gave its last words, and the user read something else or nothing."""
    return outcome_of(turn, history).kind == "hidden" and not turn.goes_on


def _waited(history: History, call: Call) -> str:
    """Tell of the waits for a processor before this call of the first turn; empty if they were short."""
    given = history.turns[0].stimulus
    since_s = given.at_s if given is not None else 0.0
    took_s, waited_s = call.at_s - since_s, history.cpu_wait(since_s, call.at_s).of_all_s
    if waited_s < max(MUCH_S, MUCH_SHARE * took_s):
        return ""
    return f"on a busy machine: of the {took_s:.1f} s until its request, {waited_s:.1f} s were waits for a processor"


def _answering_later(history: History) -> set[int]:
    """The calls that end the answered turns after the first one."""
    answered = (turn for turn in history.turns[1:] if outcome_of(turn, history).kind == "answered")
    return {turn.main_calls[-1].number for turn in answered if turn.main_calls}


def _has_worker(history: History) -> bool:
    """Whether one process below the agent's own asked the model more than once: a program such as curl asks once."""
    seen = Counter(pid for event in history.of(AskerSeen) for pid in event.pids)
    return any(count > 1 for count in seen.values())


def _main_calls_before(shape: MainShape, shapes: Mapping[int, MainShape]) -> int:
    """How many calls like the main one came before the first other one."""
    return len([*takewhile(shape.alike, (shapes[number] for number in sorted(shapes)))])


def _beside_later(history: History, shape: MainShape, shapes: Mapping[int, MainShape]) -> bool:
    """Whether a turn after the first one made a call unlike the main one, or if no such turn shows it."""
    later = [shapes.get(call.number, shape) for turn in history.turns[1:] for call in turn.calls]
    return not later or not all(map(shape.alike, later))


def shape_in(scenario: Scenario, control: ControlFacts) -> MainShape | None:
    """The shape of the agent's main calls in this scenario, whose tool host may have other tools than the control's."""
    mine = next((tool for tool in control.tools if tool.endswith(CONTROL_TOOL)), None)
    if control.shape is None or mine is None:
        return control.shape
    named = {mine.removesuffix(CONTROL_TOOL) + tool for tool in scenario.tools or CONTROL_TOOLS}
    return replace(control.shape, tools=control.shape.tools - {mine} | named, optional=tuple(sorted(named)))
