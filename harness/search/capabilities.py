"""What scenarios for an agent may contain: its tools, its sessions, its timers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wedgehog.fake_llm.conversation import ToolSpec
from wedgehog.fake_llm.script.file_tools import EDIT_FILE, READ_FILE, WRITE_FILE
from wedgehog.fake_llm.script.roles import find_shell
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.faults.base import fault_named
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.run.tool_turn import CONTROL_TOOL
from wedgehog.harness.scenario.fault_config import AGENT
from wedgehog.harness.scenario.trigger import CHANNEL, CHAT, HOST
from wedgehog.harness.search.cells import BESIDE_THE_MAIN, OF_A_SUBAGENT, SECOND_MESSAGE, SearchCell
from wedgehog.harness.search.scripts import ScriptKind, fitting

FASTER = 20.0
"""The time scale for an agent whose timers can be run faster."""
LEAST_TIMER_S = 3.0
"""A time scale leaves each named timer at least this many seconds."""
TURN_S = 120.0
"""The stock bound of a turn, which a time scale then divides too."""
SLOW_S, SLOWEST_S = 5.0, 100.0
"""A slow tool takes longer than the timers that the spec names, and leaves some of the turn's time."""
COMPACTED_BY = 3
"""The turn in which an agent compacts at the latest, after the model reported a full context in turn 2."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What scenarios for an agent are drawn from; it follows from the agent's spec and control run."""

    shell: bool = False
    tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """JSON Schemas of the arguments of the agent's own tools, by name."""
    host: bool = False
    """Whether the agent uses the tools of our tool host."""
    turns: int = 2
    """How many turns a session may have."""
    links: tuple[str, ...] = ("llm",)
    second_message: bool = False
    """Whether it can be given a message while it works."""
    wakes_up: bool = False
    """Whether its own timer can be made to fire."""
    time_scale: float = 1.0
    turn_s: float = TURN_S
    """The bound of a turn, for a time scale."""
    slow_s: float = SLOW_S
    """How long a slow tool takes where no fault slows the turn, before the time scale."""
    also: tuple[str, ...] = ()
    """Faults to draw that only gateways show."""
    delegates: bool = False
    """Whether one of its tools gives work to a subagent."""
    compacts: bool = False
    """Whether it asks for a summary when the model reports a context near its window."""
    one_call: bool = False
    """Whether a reply of its model can have one tool call only."""
    files: bool = False
    """Whether it has tools of its own that read, write and edit files."""

    @classmethod
    def of(cls, spec: AgentSpec, control: ControlFacts) -> "Capabilities":
        """What this agent can take part in."""
        host = any(name.endswith(CONTROL_TOOL) for name in control.tools)
        shell = find_shell([ToolSpec(name, schema=schema) for name, schema in control.schemas.items()])
        known = (CONTROL_TOOL, *((shell.name,) if shell else ()))
        own = {name: schema for name, schema in control.schemas.items() if not name.endswith(known)}
        front = {"http": (CHANNEL,), "page": (CHANNEL,), "chat": (CHAT,)}.get(spec.kind, ())
        links = ("llm", AGENT, *front, *((HOST,) if host else ()))
        scale = _scale(spec) if spec.scales_time else 1.0
        return cls(
            control.shell,
            own,
            host,
            3 if control.resumes else 1,
            links,
            second_message=control.resumes and spec.kind not in ("callable", "page"),
            wakes_up=control.resumes and spec.wakes_up,
            time_scale=scale,
            turn_s=max(TURN_S, spec.limits.turn_s or 0.0),
            slow_s=_slow_s(spec, SLOWEST_S if scale > 1 else SLOW_S),
            delegates=control.delegates,
            one_call=bool(spec.calls_in_text),
            files=control.file_tools >= {READ_FILE, WRITE_FILE, EDIT_FILE},
        )

    @classmethod
    def common(cls, several: "Sequence[Capabilities]") -> "Capabilities":
        """What all of them can take part in."""
        first, *others = several
        tools = {name: it for name, it in first.tools.items() if all(name in other.tools for other in others)}
        return cls(
            all(one.shell for one in several),
            tools,
            all(one.host for one in several),
            min(one.turns for one in several),
            tuple(link for link in first.links if all(link in other.links for other in others)),
            all(one.second_message for one in several),
            all(one.wakes_up for one in several),
            min(one.time_scale for one in several),
            max(one.turn_s for one in several),
            max(one.slow_s for one in several),
            delegates=all(one.delegates for one in several),
            compacts=all(one.compacts for one in several),
            one_call=any(one.one_call for one in several),
            files=all(one.files for one in several),
        )

    @property
    def calls_tools(self) -> bool:
        """Whether a scenario can call a tool."""
        return self.shell or self.host or bool(self.tools)

    @property
    def scripts(self) -> Sequence[ScriptKind]:
        """The kinds of scripts that it can follow."""
        return fitting(self.shell, self.calls_tools, one_call=self.one_call, files=self.files)

    def fits(self, cell: SearchCell) -> bool:
        """Whether the agent can take part in it."""
        if (
            (cell.needs_call and not self.calls_tools)
            or ("tool" in cell.place and (cell.script == "file edit" or not (self.shell or self.host)))
            or (cell.script or "plain") not in self.scripts
        ):
            return False
        if cell.step in BESIDE_THE_MAIN and (cell.needs_call or not self._calls_aside(cell)):
            return False
        if cell.fault == SECOND_MESSAGE and not self.second_message:
            return False
        known = fault_named(cell.fault)
        if known is not None and known.unofficial and cell.fault not in self.also:
            return False
        return (self.calls_tools or cell.step != "call after a tool") and (
            self.turns > 1 or cell.step != "call of a later turn"
        )

    def _calls_aside(self, cell: SearchCell) -> bool:
        return self.delegates if cell.step == OF_A_SUBAGENT else self.compacts and self.turns >= COMPACTED_BY


def _scale(spec: AgentSpec) -> float:
    """So fast that each timer that the spec names still has time for the work that it limits, on a busy machine too."""
    return max(1.0, min([FASTER, *(timer.s / LEAST_TIMER_S for timer in spec.timeouts)]))


def _slow_s(spec: AgentSpec, usual_s: float) -> float:
    """Longer than each timer that the spec names, if a turn may last as long."""
    named = [timer.s for timer in spec.timeouts if timer.s < SLOWEST_S]
    return min(SLOWEST_S, 1.15 * max(named) + 2) if named else usual_s
