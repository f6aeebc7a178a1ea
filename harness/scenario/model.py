"""The scenario file (docs/scenarios.md), validated. Durations are the script's; a run divides them by `time_scale`."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    model_validator,
)

from wedgehog.fake_llm.reply import ToolCall
from wedgehog.fake_llm.script.conversations import ConversationConfig, doubled
from wedgehog.fake_llm.script.items import ConfigModel
from wedgehog.fake_llm.script.roles import SHELL, SILENT_COMMANDS
from wedgehog.harness.faults.base import Fault, Need, WireFault
from wedgehog.harness.faults.process_fault import Speak
from wedgehog.harness.faults.reply_fault import ReplyFault
from wedgehog.harness.scenario.expect import Expect, by_agent
from wedgehog.harness.scenario.fault_config import AGENT, FaultConfig, TriggerConfig
from wedgehog.harness.scenario.fault_plan import FaultPlan, PlannedFault
from wedgehog.harness.scenario.host_tools import HostStore, HostTool, check_names
from wedgehog.harness.scenario.mistake import BadValueError, BadValuesError, DocumentPath
from wedgehog.harness.scenario.trigger import CALLS, COMPACTION, HOST, PIPE, STORE
from wedgehog.harness.scenario.turn_config import Beside, TurnConfig


class PageConfig(ConfigModel):
    """A page of the page server behind `tool:web`."""

    text: str = ""
    bytes: NonNegativeInt = 0
    """The page is padded to this many bytes."""
    delay_s: NonNegativeFloat = 0
    redirect: str | None = None
    status: Annotated[int, Field(ge=200, le=599)] = 200
    stall: Literal["forever"] | None = None


def _off(value: Any) -> Any:
    """`name: off` and `name: "off: reason"` switch a stock invariant off; a bare `name:` asks for it as it is."""
    if value is None:
        return {}
    if isinstance(value, str):
        if value == "off" or value.startswith("off:"):
            return None
        raise BadValueError(f"expected parameters or `off: reason`, found {value!r}")
    return value


InvariantConfig = Annotated[dict[str, float | bool | str] | None, BeforeValidator(_off)]


def _link(text: str) -> str:
    if not re.fullmatch(r"https://[^\s/]+\.[^\s/]+/\S+", text):
        raise BadValueError(f"expected the address of a public report, https://…, found {text!r}")
    return text


LinkName = Annotated[str, AfterValidator(_link)]


class Scenario(ConfigModel):
    """One scenario file."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    why: str = Field(min_length=1)
    tags: list[str] = []
    turns: list[TurnConfig] = Field(min_length=1)
    faults: list[FaultConfig] = []
    web: dict[str, PageConfig] = {}
    tools: Annotated[dict[str, HostTool], AfterValidator(check_names)] = {}
    """The tools of our tool host."""
    store: HostStore | None = None
    """Our database."""
    conversations: list[ConversationConfig] = []
    """Scripted conversations beside the main one: subagents, planners, judges."""
    session: Beside | None = None
    """A session to start from."""
    invariants: dict[str, InvariantConfig] = {}
    time_scale: PositiveFloat = 1
    seed: str = ""
    """In virtual time the agent's random numbers follow from the seed of the run and this; if it is empty, from the
    scenario's name. A search writes it, so that what it found fails under the name of its file too."""
    report: str = ""
    """What the incident's report measured, in its own words; shown beside the measured time."""
    seen: LinkName = ""
    """A public report of the same failure."""
    expect: Annotated[dict[str, Expect], AfterValidator(by_agent)] = {}

    @model_validator(mode="after")
    def _fits_together(self) -> "Scenario":
        if found := list(self._contradictions()):
            raise BadValuesError(found)
        return self

    def _contradictions(self) -> Iterator[tuple[DocumentPath, str]]:
        """Where parts of the scenario do not fit together, and why."""
        beside = [(index, turn.during) for index, turn in enumerate(self.turns) if turn.during is not None]
        for place, during in beside:
            if during.turn > place:
                yield ("turns", place, "during", "turn"), "`during` names an earlier turn"
                continue
            for said, key in self._unscripted(during):
                yield ("turns", place, "during", key), said
        yield from self._mixed_sessions()
        if (second := doubled(self.conversations)) is not None:
            yield ("conversations", second, "name"), "a second conversation of this name"
        for index, words in enumerate(self.faults):
            for said, *keys in self._mistakes(words, {place + 1 for place, _ in beside}):
                yield ("faults", index, *keys), said

    def _mixed_sessions(self) -> Iterator[tuple[DocumentPath, str]]:
        """What several sessions cannot have."""
        given: set[tuple[int, str]] = set()
        for place, turn in enumerate(self.turns):
            if turn.append is not None and turn.session != self.sessions[0]:
                yield ("turns", place, "append"), f"only the first session, {self.sessions[0]}, is appended to"
            if turn.during is None or turn.during.turn > place:
                continue
            around = self.turns[turn.during.turn - 1]
            if around.session == turn.session:
                continue
            if around.during is not None:
                yield ("turns", place, "during", "turn"), "name the turn that surrounds both"
            if (turn.during.turn, turn.session) in given:
                yield ("turns", place, "during"), f"session {turn.session} has a message during turn {turn.during.turn}"
            given.add((turn.during.turn, turn.session))

    def _mistakes(self, words: FaultConfig, beside: set[int]) -> Iterator[tuple[str, ...]]:
        """What is wrong with a fault in this scenario, and the keys of it."""
        turn, turns = words.at.turn, len(self.turns)
        if turn > turns:
            yield "there is only 1 turn" if turns == 1 else f"there are only {turns} turns", "at", "turn"
            return
        for said, key in self._unscripted(words.at):
            yield said, "at", key
        if words.sticks_to == "conversation" and words.at.on in ("main", "background", COMPACTION):
            yield "a fault sticks only to a conversation beside the main one: write `at: {on: subagent}`", "sticks_to"
        if words.link in (HOST, PIPE) and not self.tools:
            yield "our tool host has no tools: write `tools: {…: {answer: …}}`", "link"
        if words.link == STORE and self.store is None:
            yield "there is no database: write `store: {latency_s: 0.05}`", "link"
        if turn in beside and {"abort", "front_end"} & set(words.fault.needs):
            yield "a stop cannot tell two turns apart that run at the same time", "at", "turn"
        # Toxiproxy's link either resets or closes: it cannot do both in one run.
        closes, first = _closes(words.fault), next(filter(None, (_closes(it.fault) for it in self.faults)), None)
        if closes not in (None, first):
            yield "one scenario cuts with fin or with rst, not with both", "do"

    def _unscripted(self, at: TriggerConfig) -> Iterator[tuple[str, str]]:
        """Why the script never comes to this call, and the key that names it; an endless loop comes to every step."""
        same_turn = (it.fault for it in self.faults if it.at.turn == at.turn)
        endless = any(isinstance(fault, ReplyFault) and fault.repeats_on_later_steps for fault in same_turn)
        if at.on != "main":
            yield from self._beside(at)
            return
        if endless:
            return
        replies = self.turns[at.turn - 1].replies
        if at.step > max(1, len(replies)):
            yield f"the script has only {_counted(len(replies), 'step')} in turn {at.turn}", "step"
            return
        calls = [item for reply in replies[at.step - 1 : at.step] for item in reply.items if isinstance(item, ToolCall)]
        if at.tool is not None and at.tool > len(calls):
            many = f"only {_counted(len(calls), 'tool')}" if calls else "no tool"
            yield f"the script's reply in turn {at.turn}, step {at.step} calls {many}", "tool"

    def _beside(self, at: TriggerConfig) -> Iterator[tuple[str, str]]:
        """Why no call beside the main conversation is ever at this place, and the key that names it."""
        scripts = {it.name: len(it.model) for it in self.conversations}
        if at.on not in CALLS and at.on not in scripts:
            known = (*CALLS, *scripts)
            yield f"expected {', '.join(known[:-1])} or {known[-1]}, found {at.on!r}", "on"
        elif at.on in scripts and at.step > scripts[at.on]:
            yield f"the script has only {_counted(scripts[at.on], 'step')} in the conversation {at.on}", "step"

    def plan(self, time_scale: float) -> FaultPlan:
        """The fault plan, in real seconds."""
        return FaultPlan(tuple(words.planned().paused() for words in self.faults)).scaled(time_scale)

    @property
    def tools_called(self) -> frozenset[str]:
        """Names of the tools that the script calls; `shell` is a role."""
        replies = [reply for turn in self.turns for reply in turn.replies]
        replies += [reply for it in self.conversations for reply in it.replies()]
        return frozenset(item.name for reply in replies for item in reply.items if isinstance(item, ToolCall))

    @property
    def commands(self) -> tuple[str, ...]:
        """The shell commands of the main conversation."""
        replies = [reply for turn in self.turns for reply in turn.replies]
        calls = (it for reply in replies for it in reply.items if isinstance(it, ToolCall) and it.name == SHELL)
        return tuple(str(call.args["command"]) for call in calls if "command" in call.args)

    @property
    def silent(self) -> bool:
        """Whether a command of the script prints nothing: then only the id of its call identifies the result."""
        return any(command.strip() in SILENT_COMMANDS for command in self.commands)

    @property
    def planted(self) -> Mapping[tuple[str | int, ...], str]:
        """The files beside it that go into the agent's session, by the place where each is named."""
        named: dict[tuple[str | int, ...], str | None] = {("session",): self.session}
        named |= {("turns", index, "append"): turn.append for index, turn in enumerate(self.turns)}
        return {place: name for place, name in named.items() if name is not None}

    @property
    def needs(self) -> frozenset[Need]:
        """What its faults and turns need of the agent: its own timer, or a second message while one is under way."""
        of_turns: dict[Need, bool] = {
            "wake_up": any(turn.wake_up is not None for turn in self.turns),
            "permission": any(turn.permission != "allow" for turn in self.turns),
            "second_message": any(turn.during is not None and self._same(turn) for turn in self.turns),
            "sessions": len(self.sessions) > 1,
            "models": any(turn.chosen_model is not None for turn in self.turns),
        }
        needs = {need for words in self.faults for need in words.needs}
        return frozenset(needs | {need for need, applies in of_turns.items() if applies})

    @property
    def sessions(self) -> tuple[str, ...]:
        """The names of its sessions, in the order of their first turns."""
        return tuple(dict.fromkeys(turn.session for turn in self.turns))

    @property
    def sessions_at_once(self) -> bool:
        """Whether turns of two sessions overlap."""
        return any(turn.during is not None and not self._same(turn) for turn in self.turns)

    def session_of(self, number: int) -> str:
        """The session of a turn; the first one for any other number."""
        return self.turns[number - 1].session if 0 < number <= len(self.turns) else self.sessions[0]

    def opens(self, number: int) -> bool:
        """Whether this turn is the first one of its session, and that does not exist before the run."""
        session = self.session_of(number)
        earlier = any(turn.session == session for turn in self.turns[: number - 1])
        return not earlier and (self.session is None or session != self.sessions[0])

    def _same(self, turn: TurnConfig) -> bool:
        """Whether the turn during which this one is given belongs to the same session."""
        return turn.during is not None and self.session_of(turn.during.turn) == turn.session

    def messages(self, time_scale: float) -> tuple[PlannedFault, ...]:
        """The messages that are given while an earlier turn is under way, with their triggers in real seconds."""
        found = ((Speak(number), turn.during) for number, turn in enumerate(self.turns, 1) if turn.during)
        return tuple(PlannedFault(AGENT, at.trigger(AGENT, it), it).scaled(time_scale) for it, at in found)

    @property
    def breaks_arguments(self) -> bool:
        """Whether a tool call's arguments are no JSON object, by a fault or as the script writes them."""
        replies = [reply for turn in self.turns for reply in turn.replies if reply.stop != "max_tokens"]
        calls = (item for reply in replies for item in reply.items if isinstance(item, ToolCall))
        broken = any(call.raw_args is not None and not _is_object(call.raw_args) for call in calls)
        return broken or any(isinstance(it.fault, ReplyFault) and it.fault.breaks_arguments for it in self.faults)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count != 1 else ''}"


def _closes(fault: Fault) -> str | None:
    """How it closes its connection, if it does."""
    return fault.ends if isinstance(fault, WireFault) and fault.proof == "count" and fault.ends != "stall" else None


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
