"""A story with a fault and what must hold: the scenario file, validated.

Durations are the story's; a run divides them by `time_scale`. See docs/scenarios.md for the whole format.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PositiveFloat, PositiveInt, model_validator

from wedgehog.fake_llm.items import ReplyWords
from wedgehog.fake_llm.reply import Reply, ToolCall
from wedgehog.harness.document import BadFile, BadValue, load
from wedgehog.harness.faults.base import Fault, parse_fault
from wedgehog.harness.faults.wire.cut import Cut
from wedgehog.harness.plan import ALWAYS, FaultPlan, Phase, PlannedFault, Trigger
from wedgehog.harness.verdict import Status

NON_NEGATIVE = Field(ge=0)
LINKS = ("llm", "channel", "tool:web")


class Words(BaseModel):
    """A mapping in a file: unknown keys are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class WakeUp(Words):
    """The agent's own timer fires."""

    fires: PositiveInt = 1


class TurnWords(Words):
    """One stimulus, and what the model answers: entry 1 for step 1, and so on."""

    user: str | None = None
    wake_up: WakeUp | None = None
    resume: str | None = None
    model: list[ReplyWords] = []

    @model_validator(mode="after")
    def _one_stimulus(self) -> "TurnWords":
        if sum(given is not None for given in (self.user, self.wake_up, self.resume)) != 1:
            raise BadValue("a turn has exactly one of user, wake_up and resume")
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


class AtWords(Words):
    """When a fault strikes."""

    turn: PositiveInt = 1
    step: PositiveInt = 1
    attempt: PositiveInt = 1
    event: Annotated[int, NON_NEGATIVE] | None = None
    byte: Annotated[int, NON_NEGATIVE] | None = None
    phase: Phase | None = None
    tool: PositiveInt | None = None
    when: Literal["started", "done"] = "started"
    model_name: str | None = None
    after_s: Annotated[float, NON_NEGATIVE] | None = None
    on: Literal["main", "background"] = "main"

    @model_validator(mode="after")
    def _one_spot(self) -> "AtWords":
        if self.event is not None and self.byte is not None:
            raise BadValue("a trigger has either event or byte", "byte")
        return self

    def trigger(self) -> Trigger:
        """The same as a value of the plan."""
        return Trigger(**self.model_dump())


class HealWords(Words):
    """When the harm is taken away."""

    after_s: Annotated[float, NON_NEGATIVE]


class FaultWords(Words):
    """One line of the fault plan."""

    link: str = "llm"
    at: AtWords = AtWords()
    do: Any
    times: PositiveInt | Literal["always"] = 1
    sticks_to: Literal["call", "connection", "link"] = "call"
    heal: HealWords | None = None

    @model_validator(mode="after")
    def _known(self) -> "FaultWords":
        if self.link not in LINKS:
            raise BadValue(f"unknown link {self.link!r}, expected one of {', '.join(LINKS)}", "link")
        try:
            fault = parse_fault(self.do)
        except ValueError as wrong:
            raise BadValue(str(wrong), "do") from None
        _fits(fault, self)
        return self

    def planned(self) -> PlannedFault:
        """The same as a value of the plan."""
        return PlannedFault(
            self.link,
            self.at.trigger(),
            parse_fault(self.do),
            ALWAYS if self.times == "always" else self.times,
            self.sticks_to,
            self.heal.after_s if self.heal else None,
        )


def _fits(fault: Fault, words: FaultWords) -> None:
    if fault.name == "give_up" and words.link != "channel":
        raise BadValue("give_up is something the front end does: write `link: channel`", "link")
    if fault.family == "reply" and words.link != "llm":
        raise BadValue(f"{fault.name} is something the model says: write `link: llm`", "link")
    if fault.name in ("refuse", "down") and words.at.phase not in (None, "connect"):
        raise BadValue(f"{fault.name} strikes connections: write `phase: connect`", "at", "phase")


class PageWords(Words):
    """A page of the page server behind `tool:web`."""

    text: str = ""
    bytes: Annotated[int, NON_NEGATIVE] = 0
    """The page is padded to this many bytes."""
    delay_s: Annotated[float, NON_NEGATIVE] = 0
    redirect: str | None = None
    status: Annotated[int, Field(ge=200, le=599)] = 200
    stall: Literal["forever"] | None = None


class FailWords(Words):
    """`{fail: [names]}`: red, with exactly these invariants violated."""

    fail: list[str] = Field(min_length=1)


Expect = Literal["pass", "inconclusive", "error"] | FailWords


def _off(value: Any) -> Any:
    """`name: off` and `name: "off: reason"` switch a stock invariant off; a bare `name:` asks for it as it is."""
    if value is None:
        return {}
    if isinstance(value, str):
        if value == "off" or value.startswith("off:"):
            return None
        raise BadValue(f"expected parameters or `off: reason`, found {value!r}")
    return value


InvariantWords = Annotated[dict[str, float | bool | str] | None, BeforeValidator(_off)]


class Scenario(Words):
    """One scenario file."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    why: str = Field(min_length=1)
    tags: list[str] = []
    turns: list[TurnWords] = Field(min_length=1)
    faults: list[FaultWords] = []
    web: dict[str, PageWords] = {}
    invariants: dict[str, InvariantWords] = {}
    time_scale: PositiveFloat = 1
    report: str = ""
    """What the incident's report measured, in its own words; shown beside the measured time."""
    expect: dict[str, Expect] = {}

    @model_validator(mode="after")
    def _turns_exist(self) -> "Scenario":
        for index, words in enumerate(self.faults):
            if words.at.turn > len(self.turns):
                raise BadValue(f"there are only {len(self.turns)} turns", "faults", index, "at", "turn")
        return self

    @model_validator(mode="after")
    def _one_way_to_close(self) -> "Scenario":
        """Toxiproxy's link either resets or closes: it cannot do both in one run."""
        cuts = [(i, fault) for i, words in enumerate(self.faults) if isinstance(fault := parse_fault(words.do), Cut)]
        for index, fault in cuts:
            if fault.then != cuts[0][1].then:
                raise BadValue("one scenario cuts with fin or with rst, not with both", "faults", index, "do")
        return self

    def plan(self, time_scale: float) -> FaultPlan:
        """The fault plan, in real seconds."""
        return FaultPlan(tuple(words.planned() for words in self.faults)).scaled(time_scale)

    @property
    def tools(self) -> frozenset[str]:
        """Names of the tools that the script calls; `shell` is a role."""
        replies = (reply for turn in self.turns for reply in turn.replies)
        return frozenset(item.name for reply in replies for item in reply.items if isinstance(item, ToolCall))

    @property
    def uses_wake_up(self) -> bool:
        """Whether the agent's own timer must fire."""
        return any(turn.wake_up is not None for turn in self.turns)

    @property
    def needs_channel(self) -> bool:
        """Whether a front end that can give up is needed (an HTTP service)."""
        return any(parse_fault(words.do).name == "give_up" for words in self.faults)

    @property
    def needs_background(self) -> bool:
        """Whether a fault strikes calls beside the conversation."""
        return any(words.at.on == "background" for words in self.faults)

    @property
    def needs_stream(self) -> bool:
        """Whether a fault counts events, which only a streamed reply has."""
        edits = ("error_event", "early_end", "pings_only")
        return any(words.at.event is not None or parse_fault(words.do).name in edits for words in self.faults)


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
        for folder in (self.path.parent, self.path.parent.parent):
            if (folder / "agents").is_dir():
                return folder / "agents"
        return None

    @property
    def core(self) -> bool:
        """Played by `nox -s chaos` without `--all`."""
        return "core" in self.scenario.tags


def load_scenario(path: Path, wrong: Callable[[str, Mapping[str, Any] | None], str] | None = None) -> ScenarioFile:
    """Read one scenario file; `wrong(invariant, parameters)` says what is wrong with an invariant, or nothing.

    Raises:
        BadFile: one line with file, line and what was expected.
    """
    document = load(path)
    scenario = document.into(Scenario)
    if wrong is not None:
        for name, given in scenario.invariants.items():
            if said := wrong(name, given):
                raise document.error(("invariants", name), said)
        for agent, expected in scenario.expect.items():
            for name in expected.fail if isinstance(expected, FailWords) else ():
                if said := wrong(name, None):
                    raise document.error(("expect", agent), said)
    return ScenarioFile(path, scenario)


def find_scenarios(place: Path) -> Iterator[Path]:
    """Scenario files at `place`: the file itself, or those in the folders named `scenarios` or directly in it.

    Raises:
        BadFile: nothing there.
    """
    if place.is_file():
        yield place
        return
    if not place.is_dir():
        raise BadFile(place, None, "no such scenario file or folder")
    skipped = {"agents", "planted"}
    found = sorted(path for path in place.rglob("*.yaml") if not skipped & set(path.relative_to(place).parts[:-1]))
    if not found:
        raise BadFile(place, None, "no scenario file (*.yaml) in this folder")
    yield from found


def expected_words(expect: Expect | None) -> str:
    """`pass`, or `fail: a;b`, or empty."""
    if expect is None:
        return ""
    return expect if isinstance(expect, str) else f"fail: {';'.join(sorted(expect.fail))}"


def meets(expect: Expect, verdict: Status, violated: tuple[str, ...]) -> bool:
    """Whether the verdict and the exact set of violated invariants are the expected ones."""
    if isinstance(expect, FailWords):
        return verdict == "fail" and set(violated) == set(expect.fail)
    return verdict == expect and not violated
