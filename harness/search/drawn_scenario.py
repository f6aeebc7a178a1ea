"""Draws scenarios: a conversation with tools that the agent has, and faults in it. Each is a legal scenario file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from wedgehog.fake_llm.conversation import ToolSpec
from wedgehog.fake_llm.script.roles import find_shell
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.faults.base import fault_named, parse_fault
from wedgehog.harness.faults.reply_fault import ReplyFault
from wedgehog.harness.run.control import CONTROL_TOOL, ControlFacts
from wedgehog.harness.scenario.fault_config import AGENT
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.scenario.trigger import HOST
from wedgehog.harness.search.cells import (
    BESIDE_THE_MAIN,
    NO_FAULT,
    OF_A_SUBAGENT,
    OF_COMPACTION,
    SECOND_MESSAGE,
    STEPS,
    Cell,
    drawn_line,
)
from wedgehog.harness.search.draw import Choices, SeededChoices
from wedgehog.harness.search.scripts import (
    HOSTED,
    IN_A_ROUND,
    Drawn,
    ScriptKind,
    Tools,
    answer,
    as_items,
    fitting,
    subagent_round,
    tool_round,
)

MESSAGES = ("What is a hedgehog?", "Please look it up.", "And in short?", "Grüße, 🦔!")
INTERJECTION = "Wait, one more thing."
ROUNDS = (0, 1, 1, 2, 3)
MOST_FAULTS = 3
FASTER = 20.0
"""The time scale for an agent whose timers can be run faster."""
LEAST_TIMER_S = 3.0
"""A time scale leaves each named timer at least so many seconds."""
TURN_S = 120.0
"""The stock bound of a turn, which a time scale then divides too."""
SLOW_S, SLOWEST_S = 5.0, 100.0
"""A slow tool takes longer than the timers that the spec names, and leaves some of the turn's time."""
FULL, COMPACTED_BY = {"usage": {"input_tokens": 980_000}}, 3
"""The model reports a context near every window in turn 2; the agent then compacts in that turn or in this one."""
DRAWS = 16
"""So often a scenario is drawn before one of its faults is left out."""


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
    """Faults to draw although no provider's own service shows them."""
    delegates: bool = False
    """Whether one of its tools gives work to a subagent."""
    compacts: bool = False
    """Whether it asks for a summary when the model reports a context near its window."""

    @classmethod
    def of(cls, spec: AgentSpec, control: ControlFacts) -> "Capabilities":
        """What this agent can take part in."""
        host = any(name.endswith(CONTROL_TOOL) for name in control.tools)
        shell = find_shell([ToolSpec(name, schema=schema) for name, schema in control.schemas.items()])
        known = (CONTROL_TOOL, *((shell.name,) if shell else ()))
        own = {name: schema for name, schema in control.schemas.items() if not name.endswith(known)}
        links = ("llm", AGENT, *(("channel",) if spec.kind == "http" else ()), *((HOST,) if host else ()))
        scale = _scale(spec) if spec.scales_time else 1.0
        return cls(
            control.shell,
            own,
            host,
            3 if control.resumes else 1,
            links,
            second_message=control.resumes and spec.kind not in ("callable", "chat"),
            wakes_up=control.resumes and spec.wakes_up,
            time_scale=scale,
            turn_s=max(TURN_S, spec.limits.turn_s or 0.0),
            slow_s=_slow_s(spec, SLOWEST_S if scale > 1 else SLOW_S),
            delegates=control.delegates,
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
        )

    @property
    def calls_tools(self) -> bool:
        """Whether a scenario can call a tool."""
        return self.shell or self.host or bool(self.tools)

    @property
    def scripts(self) -> Sequence[ScriptKind]:
        """The kinds of scripts that it can follow."""
        return fitting(self.shell, self.calls_tools)

    def fits(self, cell: Cell) -> bool:
        """Whether the agent can take part in it."""
        if (
            (cell.needs_call and not self.calls_tools)
            or ("tool" in cell.place and not (self.shell or self.host))
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

    def _calls_aside(self, cell: Cell) -> bool:
        return self.delegates if cell.step == OF_A_SUBAGENT else self.compacts and self.turns >= COMPACTED_BY

    def probe(self) -> Drawn | None:
        """A scenario that applies only to an agent that compacts; None if too short a session shows nothing."""
        if self.turns < COMPACTED_BY:
            return None
        asked = Cell("status", "llm", "headers", OF_COMPACTION, 1, "plain")
        return Drawer(SeededChoices("compaction"), self).scenario([asked], "drawn-compaction")


def _scale(spec: AgentSpec) -> float:
    """So fast that each timer that the spec names still has time for the work that it limits, on a busy machine too."""
    return max(1.0, min([FASTER, *(timer.s / LEAST_TIMER_S for timer in spec.timeouts)]))


def _slow_s(spec: AgentSpec, usual_s: float) -> float:
    """Longer than each timer that the spec names, if a turn may last as long."""
    named = [timer.s for timer in spec.timeouts if timer.s < SLOWEST_S]
    return min(SLOWEST_S, 1.15 * max(named) + 2) if named else usual_s


@dataclass(frozen=True, slots=True)
class Drawer:
    """Draws for one capabilities."""

    draw: Choices
    capabilities: Capabilities

    def scenario(self, cells: Sequence[Cell], name: str) -> Drawn:
        """A legal scenario whose conversation has the call of every cell; cells that exclude each other are left out.

        One scenario cuts either with FIN or with RST, for example.
        """
        for chosen in (cells[:number] for number in range(len(cells), 0, -1)):
            for _ in range(DRAWS):
                document = self._scenario(chosen, name)
                if _is_legal(document):
                    return document
        return document

    def _scenario(self, cells: Sequence[Cell], name: str) -> Drawn:
        faults = [drawn_line(self.draw, cell) for cell in cells if cell.fault not in (NO_FAULT, SECOND_MESSAGE)]
        talk = TurnDrawer(self.draw, self.capabilities, cells)
        turns = [*talk.turns(), *talk.second_messages()]
        document: Drawn = {"name": name, "why": "Drawn by the search.", "turns": turns, "faults": faults}
        if _uses_host(turns):
            document["tools"] = {HOSTED: {"answer": "spines"}}
        return document | self._bounds(document)

    def _bounds(self, document: Drawn) -> Drawn:
        """A time scale, with the bound that it divides; what an agent shows of an empty reply is its own affair."""
        invariants: Drawn = {}
        if self.capabilities.time_scale > 1:
            invariants["turn_deadline"] = {"turn_s": self.capabilities.turn_s}
        if says_nothing(document):
            invariants["error_surfaced"] = "off: the model itself says nothing"
        if any(FULL.keys() & item.keys() for turn in document["turns"] for item in items(turn)):
            invariants["spend_bound"] = "off: the scenario itself reports the many tokens"
        scale = {"time_scale": self.capabilities.time_scale} if self.capabilities.time_scale > 1 else {}
        return scale | ({"invariants": invariants} if invariants else {})


class TurnDrawer:
    """The turns of one drawn scenario, in which each cell's call comes."""

    def __init__(self, draw: Choices, capabilities: Capabilities, cells: Sequence[Cell]) -> None:
        """The first cell's kind of script is that of its turn."""
        self._draw, self._capabilities, self._cells = draw, capabilities, cells

    def turns(self) -> Iterator[Drawn]:
        """The messages in order."""
        least = max(self._place(cell)["turn"] for cell in self._cells)
        number = min(self._capabilities.turns, self._draw.between(least, max(least, self._draw.choose((1, 2, 2, 3)))))
        for turn in range(1, number + 1):
            model = self._model([it for it in self._cells if self._turn_of(it) == turn])
            full = turn == STEPS[OF_COMPACTION]["turn"] and any(it.step == OF_COMPACTION for it in self._cells)
            yield self._stimulus(turn) | {"model": [[*as_items(it), FULL] for it in model] if full else model}

    def second_messages(self) -> Iterator[Drawn]:
        """What the user says while an earlier turn is under way."""
        for cell in self._cells:
            if cell.fault == SECOND_MESSAGE:
                yield {"user": INTERJECTION, "during": cell.at, "model": [answer(self._draw, "plain")]}

    def _stimulus(self, turn: int) -> Drawn:
        kind = self._draw.choose(("user", "user", "user", "resume", "wake_up")) if turn > 1 else "user"
        if kind == "wake_up" and self._capabilities.wakes_up:
            return {"wake_up": {"fires": 1}}
        return {"user" if kind == "wake_up" else kind: self._draw.choose(MESSAGES)}

    def _model(self, cells: Sequence[Cell]) -> list[Any]:
        """The replies of one turn."""
        places, on_tools = [self._place(cell)["step"] for cell in cells], [cell for cell in cells if _at_tool(cell)]
        with_calls = [*on_tools, *(cell for cell in cells if cell.needs_call)]
        script = next((it.script for it in cells if it.script is not None), self._draw.choose(self._quick))
        least = max([*(step - 1 for step in places), *(self._place(cell)["step"] for cell in with_calls)], default=0)
        least = max(least, 1 if script in IN_A_ROUND else 0)
        rounds = max(least, self._draw.choose(ROUNDS)) if self._capabilities.calls_tools else 0
        tools = self._tools(cells, timed=bool(on_tools))
        kinds: list[ScriptKind] = [
            script if not number and script in IN_A_ROUND else "plain" for number in range(rounds)
        ]
        delegated = [subagent_round(self._draw)] if any(cell.step == OF_A_SUBAGENT for cell in cells) else []
        return [*(tool_round(self._draw, tools, kind) for kind in kinds), *delegated, answer(self._draw, script)]

    @property
    def _quick(self) -> Sequence[ScriptKind]:
        """What the model says where no cell asks for a kind of script: mostly plain words."""
        quick: list[ScriptKind] = ["plain", "plain", "plain", "plain", "several tools", "long answer"]
        return [script for script in quick if script in self._capabilities.scripts]

    def _tools(self, cells: Sequence[Cell], *, timed: bool) -> Tools:
        """With `timed` each call reports its begin and end, as those of the shell and of our host do."""
        slow_s = self._capabilities.slow_s if self._waits_for_nothing else min(SLOW_S, self._capabilities.slow_s)
        slow_s = round(slow_s / self._capabilities.time_scale, 2)
        if any(cell.link == HOST for cell in cells):
            return Tools(False, {}, True, slow_s)
        return Tools(
            self._capabilities.shell, {} if timed else self._capabilities.tools, self._capabilities.host, slow_s
        )

    @property
    def _waits_for_nothing(self) -> bool:
        """Whether no fault makes the turn longer: with a slow tool a patient agent would exceed its bound."""
        return all(cell.link in (AGENT, "channel") or cell.fault == NO_FAULT for cell in self._cells)

    @staticmethod
    def _place(cell: Cell) -> Mapping[str, int]:
        """The reply of the main conversation; a subagent's call is beside it."""
        if cell.step == OF_COMPACTION:
            return {"turn": COMPACTED_BY, "step": 1}
        told = {key: number for key, number in STEPS[cell.step].items() if isinstance(number, int)}
        return {"turn": 1, "step": 1, **told}

    def _turn_of(self, cell: Cell) -> int:
        return self._place(cell)["turn"]


def _at_tool(cell: Cell) -> bool:
    return cell.link == HOST or "tool" in cell.place


def _is_legal(document: Drawn) -> bool:
    try:
        Scenario.model_validate(document)
    except ValidationError:
        return False
    return True


def says_nothing(document: Drawn) -> bool:
    """Whether the model ends a turn without a word."""
    empty = any(reply == [] for turn in document["turns"] for reply in turn["model"])
    faults = [parse_fault(line["do"]) for line in document["faults"]]
    return empty or any(isinstance(fault, ReplyFault) and fault.says_nothing for fault in faults)


def _uses_host(turns: Sequence[Drawn]) -> bool:
    return any(item.get("tool") == HOSTED for turn in turns for item in items(turn))


def fault_of(line: Mapping[str, Any]) -> str:
    """The name of the fault in a line of `faults`."""
    do = line["do"]
    return str(next(iter(do)) if isinstance(do, dict) else do)


def items(turn: Drawn) -> Iterator[Drawn]:
    """Every item of a turn's replies."""
    for reply in turn["model"]:
        yield from as_items(reply)
