"""The scenario file (docs/scenarios.md), validated. Durations are the script's; a run divides them by `time_scale`."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from wedgehog.fake_llm.reply import Reply, ToolCall
from wedgehog.fake_llm.script.conversations import ConversationConfig, doubled
from wedgehog.fake_llm.script.items import ConfigModel, ReplyConfig
from wedgehog.harness.faults.base import Fault, Need, WireFault, parse_fault
from wedgehog.harness.faults.process_fault import ActorFault, Speak
from wedgehog.harness.faults.reply_fault import ReplyFault
from wedgehog.harness.record.verdict import Status
from wedgehog.harness.scenario import trigger as triggers
from wedgehog.harness.scenario.document import BadFileError, BadValueError, load
from wedgehog.harness.scenario.host_tools import HostStore, HostTool, check_names
from wedgehog.harness.scenario.trigger import (
    ALWAYS,
    CALLS,
    CHAT,
    COMPACTION,
    HOST,
    PIPE,
    STORE,
    FaultPlan,
    Moment,
    Phase,
    PlannedFault,
    StickTo,
    Trigger,
)

AGENT = "agent"
"""The link whose faults hit the agent's processes."""
LINKS = ("llm", "channel", "tool:web", HOST, PIPE, STORE, CHAT, AGENT)

ANY_PIPE = r"ipc:[A-Za-z0-9._-]+"
"""A `wedgehog-pipe --name NAME` of the agent's own."""


class WakeUp(ConfigModel):
    """The agent's own timer fires."""

    fires: PositiveInt = 1


def _beside(name: str) -> str:
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        here = f"planted/{PurePosixPath(name).name}"
        raise BadValueError(f"expected a file beside the scenario, such as {here}, found {name!r}")
    return name


Beside = Annotated[str, AfterValidator(_beside)]
"""A file named by its path from the scenario's folder."""


class TurnConfig(ConfigModel):
    """One stimulus, and what the model answers: entry 1 for step 1, and so on."""

    user: str | None = None
    wake_up: WakeUp | None = None
    resume: str | None = None
    append: Beside | None = None
    """Lines that somebody appends to the session file before this turn."""
    during: "TriggerConfig | None" = None
    """Said while an earlier turn is under way, when that trigger of it is met."""
    model: list[ReplyConfig] = []

    @model_validator(mode="after")
    def _one_stimulus(self) -> "TurnConfig":
        if sum(given is not None for given in (self.user, self.wake_up, self.resume)) != 1:
            raise BadValueError("a turn has exactly one of user, wake_up and resume")
        if self.during is None:
            return self
        if self.append is not None:
            raise BadValueError("a session can't be appended to in the middle of a turn", "append")
        if self.during.phase in ("connect", "request"):
            raise BadValueError("a message is given at headers, body, middle, terminal or linger", "during", "phase")
        self.during.trigger(AGENT, Speak(1), "during")
        return self

    @property
    def text(self) -> str:
        """What the agent is told."""
        return self.user or self.resume or "Look after your scheduled work."

    @property
    def stimulus(self) -> Literal["user", "wake_up", "resume"]:
        """What kind of stimulus it is."""
        return "user" if self.user is not None else "resume" if self.resume is not None else "wake_up"

    @property
    def replies(self) -> tuple[Reply, ...]:
        """The scripted replies."""
        return tuple(words.reply() for words in self.model)


class TriggerConfig(ConfigModel):
    """When a fault strikes."""

    turn: PositiveInt = 1
    step: PositiveInt = 1
    attempt: PositiveInt = 1
    event: NonNegativeInt | None = None
    byte: NonNegativeInt | None = None
    phase: Phase | None = None
    tool: PositiveInt | None = None
    query: PositiveInt | None = None
    chat: Literal["poll", "send"] | None = None
    when: Moment = "started"
    session: Literal["written"] | None = None
    model_name: str | None = None
    after_s: NonNegativeFloat | None = None
    on: str = "main"
    """`main`, `background`, `compaction`, `subagent`, or the name of one of the `conversations`."""

    @model_validator(mode="after")
    def _one_place(self) -> "TriggerConfig":
        places = [f"phase: {self.phase}"] if self.phase not in (None, "request") else []
        places += [key for key in ("event", "byte") if getattr(self, key) is not None]
        if len(places) > 1:
            raise BadValueError(f"`{places[0]}` and `{places[1]}` are two places: write one of them", places[1])
        return self

    def trigger(self, link: str, fault: Fault, place: str = "at") -> Trigger:
        """The same as a value of the plan. Errors: BadValueError for a key that this kind of trigger does not have."""
        kind = self._kind(link, fault)
        names = {field.name for field in fields(kind)}
        for key, info in type(self).model_fields.items():
            if key not in names and getattr(self, key) != info.default:
                raise BadValueError(kind.refuses.format(key=key), place, key)
        return kind(**{key: getattr(self, key) for key in names})

    def _kind(self, link: str, fault: Fault) -> type[Trigger]:
        if link.startswith("ipc:"):
            return triggers.AtPipe
        for key, kind in _KINDS.items():
            if getattr(self, key) is not None:
                return kind
        if self.phase in ("connect", "request"):
            return triggers.BeforeRequest
        alone = self == TriggerConfig(turn=self.turn, after_s=self.after_s) and self.after_s is not None
        return triggers.AfterStart if alone and fault.timed else triggers.AtReply


_KINDS: dict[str, type[Trigger]] = {
    "session": triggers.SessionWritten,
    "query": triggers.AtQuery,
    "chat": triggers.AtChat,
    "tool": triggers.AtTool,
}
"""The key that makes a trigger what it is."""


class HealConfig(ConfigModel):
    """When the harm is taken away."""

    after_s: NonNegativeFloat


TurnConfig.model_rebuild()


class FaultConfig(ConfigModel):
    """One line of the fault plan."""

    link: str = "llm"
    at: TriggerConfig = TriggerConfig()
    do: Any
    times: PositiveInt | Literal["always"] = 1
    sticks_to: StickTo = "call"
    heal: HealConfig | None = None

    @model_validator(mode="after")
    def _known(self) -> "FaultConfig":
        if self.link not in LINKS and not re.fullmatch(ANY_PIPE, self.link):
            raise BadValueError(f"unknown link {self.link!r}, expected one of {', '.join(LINKS)} or ipc:NAME", "link")
        try:
            fault = self.fault
        except ValueError as wrong:
            raise BadValueError(str(wrong), "do") from None
        _fits(fault, self)
        if misfit := self.at.trigger(self.link, fault).misfit(fault, self.link):
            raise BadValueError(misfit[0], *misfit[1])
        return self

    @property
    def fault(self) -> Fault:
        """What `do` says."""
        return parse_fault(self.do)

    @property
    def needs(self) -> tuple[Need, ...]:
        """What it needs of the agent: its fault's needs, and those of its place (only a streamed reply has events)."""
        counts = self.at.event is not None or (self.at.phase == "linger" and isinstance(self.fault, WireFault))
        place: dict[Need, bool] = {
            "stream": counts,
            "chat": self.link == CHAT,
            "background": self.at.on == "background",
        }
        return (*self.fault.needs, *(need for need, applies in place.items() if applies))

    def planned(self) -> PlannedFault:
        """The same as a value of the plan."""
        return PlannedFault(
            self.link,
            self.at.trigger(self.link, self.fault),
            self.fault,
            ALWAYS if self.times == "always" else self.times,
            self.sticks_to,
            self.heal.after_s if self.heal else None,
        )


def _fits(fault: Fault, words: FaultConfig) -> None:
    aim = fault.aim
    if aim.links is not None and words.link not in aim.links:
        raise BadValueError(f"{fault.name} {aim.says}: write `link: {aim.links[0]}`{aim.hint}", "link")
    if aim.phases is not None and words.at.phase not in aim.phases:
        raise BadValueError(f"{fault.name} {aim.phases_say}", "at", "phase")
    if isinstance(fault, WireFault) and words.link == AGENT:
        raise BadValueError(f"{fault.name} is nothing that is done to processes: it has another link", "link")
    if not isinstance(fault, ActorFault):
        key = "session" if words.at.session is not None else "phase"
        if key == "session" or (words.at.phase == "linger" and not isinstance(fault, WireFault)):
            raise BadValueError(f"{fault.name} fires on bytes or words: `{key}` is for faults on processes", "at", key)


class PageConfig(ConfigModel):
    """A page of the page server behind `tool:web`."""

    text: str = ""
    bytes: NonNegativeInt = 0
    """The page is padded to this many bytes."""
    delay_s: NonNegativeFloat = 0
    redirect: str | None = None
    status: Annotated[int, Field(ge=200, le=599)] = 200
    stall: Literal["forever"] | None = None


class FailConfig(ConfigModel):
    """`{fail: [names]}`: red, with exactly these invariants violated."""

    fail: list[str] = Field(min_length=1)


Expect = Literal["pass", "inconclusive", "error"] | FailConfig


def _agents(key: str) -> list[str]:
    """The agents of one key in `expect`."""
    return [name.strip() for name in key.split(",")]


def _by_agent(expect: dict[str, Expect]) -> dict[str, Expect]:
    """`buggy, fixed: pass` holds for both."""
    each: dict[str, Expect] = {}
    for key, outcome in expect.items():
        for name in _agents(key):
            if not name:
                raise BadValueError(f"expected names of agents, separated by commas, found {key!r}", key)
            if name in each:
                raise BadValueError(f"{name!r} stands here a second time", key)
            each[name] = outcome
    return each


def _off(value: Any) -> Any:
    """`name: off` and `name: "off: reason"` switch a stock invariant off; a bare `name:` asks for it as it is."""
    if value is None:
        return {}
    if isinstance(value, str):
        if value == "off" or value.startswith("off:"):
            return None
        raise BadValueError(f"expected parameters or `off: reason`, found {value!r}")
    return value


InvariantWords = Annotated[dict[str, float | bool | str] | None, BeforeValidator(_off)]


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
    invariants: dict[str, InvariantWords] = {}
    time_scale: PositiveFloat = 1
    report: str = ""
    """What the incident's report measured, in its own words; shown beside the measured time."""
    seen: LinkName = ""
    """A public report of somebody to whom it happened."""
    expect: Annotated[dict[str, Expect], AfterValidator(_by_agent)] = {}

    @model_validator(mode="after")
    def _fits_together(self) -> "Scenario":
        beside = [(index, turn.during) for index, turn in enumerate(self.turns) if turn.during is not None]
        for place, during in beside:
            if during.turn > place:
                raise BadValueError("`during` names an earlier turn", "turns", place, "during", "turn")
            for said, key in self._unscripted(during):
                raise BadValueError(said, "turns", place, "during", key)
        if (second := doubled(self.conversations)) is not None:
            raise BadValueError("a second conversation of this name", "conversations", second, "name")
        for index, words in enumerate(self.faults):
            for said, *keys in self._mistakes(words, {place + 1 for place, _ in beside}):
                raise BadValueError(said, "faults", index, *keys)
        return self

    def _mistakes(self, words: FaultConfig, beside: set[int]) -> Iterator[tuple[str, ...]]:
        """What is wrong with a fault in this scenario, and the keys of it."""
        turn, turns = words.at.turn, len(self.turns)
        if turn > turns:
            yield "there is only 1 turn" if turns == 1 else f"there are only {turns} turns", "at", "turn"
            return
        for said, key in self._unscripted(words.at):
            yield said, "at", key
        if words.sticks_to == "conversation" and words.at.on in ("main", "background", COMPACTION):
            yield "only a conversation beside the main one is stuck to: write `at: {on: subagent}`", "sticks_to"
        if words.link in (HOST, PIPE) and not self.tools:
            yield "our tool host has no tools: write `tools: {…: {answer: …}}`", "link"
        if words.link == STORE and self.store is None:
            yield "there is no database: write `store: {latency_s: 0.05}`", "link"
        if turn in beside and {"abort", "front_end"} & set(words.fault.needs):
            yield "stopping one of two turns at once is not told apart", "at", "turn"
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
            "second_message": any(turn.during is not None for turn in self.turns),
        }
        needs = {need for words in self.faults for need in words.needs}
        return frozenset(needs | {need for need, applies in of_turns.items() if applies})

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


@dataclass(frozen=True, slots=True)
class ScenarioFile:
    """A scenario and where it was read."""

    path: Path
    scenario: Scenario

    @property
    def family(self) -> str:
        """The folder's name: the incident's, or `catalogue`."""
        return self.path.parent.parent.name if self.path.parent.name == "scenarios" else self.path.parent.name

    @property
    def agents_folder(self) -> Path | None:
        """The agents of the incident folder that the scenario lies in."""
        folders = (folder / "agents" for folder in self.path.parents[:2])
        return next((folder for folder in folders if folder.is_dir()), None)

    @property
    def core(self) -> bool:
        """Played by `nox -s chaos` without `--all`."""
        return "core" in self.scenario.tags


def load_scenario(path: Path, wrong: Callable[[str, Mapping[str, Any] | None], str] | None = None) -> ScenarioFile:
    """Read a scenario; `wrong(invariant, parameters)` says what is wrong with an invariant. Errors: BadFileError."""
    document = load(path)
    if isinstance(document.data, dict) and "wire" in document.data and "turns" not in document.data:
        raise BadFileError(path, None, f"this is an agent spec: use it with --agent {path}")
    scenario = document.into(Scenario)
    for place, name in scenario.planted.items():
        if not (path.parent / name).is_file():
            raise document.error(place, f"no such file beside the scenario: {name}")
    asked = [(("invariants", name), name, given) for name, given in scenario.invariants.items()]
    for key in document.data.get("expect", ()):
        expected = scenario.expect[_agents(key)[0]]
        failed = expected.fail if isinstance(expected, FailConfig) else ()
        asked += [(("expect", key), name, None) for name in failed]
    for where, name, given in asked if wrong else ():
        if wrong and (said := wrong(name, given)):
            raise document.error(where, said)
    return ScenarioFile(path, scenario)


def find_scenarios(place: Path) -> Iterator[Path]:
    """Scenario files at `place`: the file itself, or those below it, without agents. Errors: BadFileError."""
    if place.is_file():
        yield place
        return
    if not place.is_dir():
        raise BadFileError(place, None, "no such scenario file or folder")
    skipped = {"agents", "planted"}
    found = sorted(path for path in place.rglob("*.yaml") if not skipped & set(path.relative_to(place).parts[:-1]))
    if not found:
        raise BadFileError(place, None, "no scenario file (*.yaml) in this folder")
    yield from found


def expected_words(expect: Expect | None) -> str:
    """`pass`, or `fail: a;b`, or empty."""
    if expect is None:
        return ""
    return expect if isinstance(expect, str) else f"fail: {';'.join(sorted(expect.fail))}"


def meets(expect: Expect, verdict: Status, violated: tuple[str, ...]) -> bool:
    """Whether the verdict and the exact set of violated invariants are the expected ones."""
    if isinstance(expect, FailConfig):
        return verdict == "fail" and set(violated) == set(expect.fail)
    return verdict == expect and not violated


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
