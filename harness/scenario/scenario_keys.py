"""The keys of a scenario file."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, NonNegativeFloat, NonNegativeInt, PositiveFloat

from wedgehog.fake_llm.script.conversations import ConversationConfig
from wedgehog.fake_llm.script.items import ConfigModel
from wedgehog.harness.scenario.expect import Expect, by_agent
from wedgehog.harness.scenario.fault_config import FaultConfig
from wedgehog.harness.scenario.host_tools import HostStore, HostTool, check_names
from wedgehog.harness.scenario.mistake import BadValueError
from wedgehog.harness.scenario.project_file import ProjectFiles, ProjectRules
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
    drip_s: PositiveFloat | None = None
    """After the head and the text one more byte comes every so many seconds, for ever."""


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


class ScenarioKeys(ConfigModel):
    """All keys of a scenario file, each checked alone."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,99}$")
    why: str = Field(min_length=1)
    tags: list[str] = []
    turns: list[TurnConfig] = Field(min_length=1)
    faults: list[FaultConfig] = []
    web: dict[str, PageConfig] = {}
    tools: Annotated[dict[str, HostTool], AfterValidator(check_names)] = {}
    """The tools of our tool host."""
    store: HostStore | None = None
    """Our database."""
    files: ProjectFiles = {}
    """The files of the project in which the agent works, before the first turn."""
    rules: ProjectRules = ""
    """A sentence of the project's rules for agents, which stands in the files that agents read by themselves."""
    conversations: list[ConversationConfig] = []
    """Scripted conversations beside the main one: subagents, planners, judges."""
    session: Beside | None = None
    """A session to start from."""
    browser_clock_s: float = 0
    """How far the clock of the user's browser is ahead of the service's; negative: behind it."""
    one_user: bool = False
    """The sessions are conversations of one user, who goes from one to another in one window of the agent's page."""
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

    @property
    def planted(self) -> Mapping[tuple[str | int, ...], str]:
        """The files beside it that go into the agent's session, by the place where each is named."""
        named: dict[tuple[str | int, ...], str | None] = {("session",): self.session}
        named |= {("turns", index, "append"): turn.append for index, turn in enumerate(self.turns)}
        return {place: name for place, name in named.items() if name is not None}

    @property
    def sessions(self) -> tuple[str, ...]:
        """The names of its sessions, in the order of their first turns."""
        return tuple(dict.fromkeys(turn.session for turn in self.turns))
