"""Draws scenarios: a conversation with tools that the agent has, and faults in it. Each is a legal scenario file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wedgehog.fake_llm.script.roles import SHELL
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.faults.base import registered
from wedgehog.harness.run.control import CONTROL_TOOL, ControlFacts
from wedgehog.harness.scenario.trigger import HOST
from wedgehog.harness.search.cells import STEPS, Cell, drawn_fault
from wedgehog.harness.search.draw import Choices
from wedgehog.harness.search.values import value_for

Drawn = dict[str, Any]
COMMANDS = ("echo one", "printf '%s' two", "exit 3", "sleep 0.3; echo late", "seq 1 2000", "echo three >&2")
MESSAGES = ("What is a hedgehog?", "Please look it up.", "And in short?", "Grüße, 🦔!")
TEXTS = (
    "A small animal. {nonce}",
    "It rolls itself up when it is worried, and then it waits. {nonce}",
    "Igel 🦔. {nonce}",
)
LONG = "A hedgehog is a small animal with spines. " * 40 + "{nonce}"
MOST_ROUNDS, MOST_FAULTS = 3, 3
HOSTED = "look_up"
"""The tool of our tool host."""


@dataclass(frozen=True, slots=True)
class Palette:
    """What scenarios for an agent are drawn from; it follows from the agent's spec and control run."""

    shell: bool = False
    tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """JSON Schemas of the arguments of the agent's own tools, by name."""
    host: bool = False
    """Whether the agent uses the tools of our tool host."""
    turns: int = 2
    """How many turns a session may have."""
    links: tuple[str, ...] = ("llm",)

    @classmethod
    def of(cls, spec: AgentSpec, control: ControlFacts) -> "Palette":
        """What this agent can take part in."""
        host = any(name.endswith(CONTROL_TOOL) for name in control.tools)
        own = {name: schema for name, schema in control.schemas.items() if not name.endswith(CONTROL_TOOL)}
        links = ("llm", "agent", *(("channel",) if spec.kind == "http" else ()), *((HOST,) if host else ()))
        return cls(control.shell, own, host, 2 if control.resumes else 1, links)

    @classmethod
    def common(cls, palettes: "Sequence[Palette]") -> "Palette":
        """What all of them can take part in."""
        first, *others = palettes
        tools = {name: it for name, it in first.tools.items() if all(name in other.tools for other in others)}
        return cls(
            all(one.shell for one in palettes),
            tools,
            all(one.host for one in palettes),
            min(one.turns for one in palettes),
            tuple(link for link in first.links if all(link in other.links for other in others)),
        )

    @property
    def calls_tools(self) -> bool:
        """Whether a scenario can call a tool."""
        return self.shell or self.host or bool(self.tools)


@dataclass(frozen=True, slots=True)
class Drawer:
    """Draws for one palette."""

    draw: Choices
    palette: Palette

    def scenario(self, cells: Sequence[Cell], name: str) -> Drawn:
        """A scenario whose conversation has the call of every cell."""
        faults = [cell.line(drawn_fault(self.draw, registered()[cell.fault])) for cell in cells]
        needed = [{"turn": 1, "step": 1, **STEPS[cell.step]} for cell in cells]
        with_tool = [cell.link == HOST or "tool" in cell.place for cell in cells]
        on_tools = [place for place, tool in zip(needed, with_tool, strict=True) if tool]
        timed = {place["turn"] for place in on_tools}
        number = self.draw.between(max(place["turn"] for place in needed), self.palette.turns)
        turns = []
        for turn in range(1, number + 1):
            steps = [place["step"] - 1 for place in needed if place["turn"] == turn]
            rounds = [place["step"] for place in on_tools if place["turn"] == turn]
            least = max([*steps, *rounds], default=0)
            turns.append(self._turn(least, timed=turn in timed, host=any(cell.link == HOST for cell in cells)))
        document: Drawn = {"name": name, "why": "Drawn by the search.", "turns": turns, "faults": faults}
        return document | ({"tools": {HOSTED: {"answer": "spines"}}} if _uses_host(turns) else {})

    def _turn(self, least_rounds: int, *, timed: bool, host: bool) -> Drawn:
        """With `timed` each call tells when it begins and ends, as the shell's and our host's do."""
        most = MOST_ROUNDS if self.palette.calls_tools else 0
        rounds = self.draw.between(min(least_rounds, most), most)
        model = [self._round(self._kinds(timed=timed, host=host)) for _ in range(rounds)]
        return {"user": self.draw.choose(MESSAGES), "model": [*model, self._answer()]}

    def _kinds(self, *, timed: bool, host: bool) -> list[str]:
        """The tools that a round may call."""
        if host:
            return [HOSTED]
        own = [] if timed else sorted(self.palette.tools)
        return [SHELL] * self.palette.shell + own + [HOSTED] * self.palette.host

    def _round(self, kinds: Sequence[str]) -> Any:
        calls = [self._call(self.draw.choose(kinds)) for _ in range(self.draw.between(1, 2))]
        said = [{"text": "I look."}] if self.draw.choose((False, True)) else []
        return [*said, *calls] if len(calls) > 1 or said else calls[0]

    def _call(self, name: str) -> Drawn:
        if name == SHELL:
            return {"tool": SHELL, "args": {"command": self.draw.choose(COMMANDS)}}
        return {"tool": name, "args": {} if name == HOSTED else value_for(self.draw, self.palette.tools[name])}

    def _answer(self) -> Any:
        text: Drawn = {"text": self.draw.choose((*TEXTS, LONG))}
        extra = self.draw.choose((None, {"thinking": "I think."}, {"delay_s": 0.3}))
        return text if extra is None else [extra, text]


def _uses_host(turns: Sequence[Drawn]) -> bool:
    return any(item.get("tool") == HOSTED for turn in turns for item in items(turn))


def fault_of(line: Mapping[str, Any]) -> str:
    """The name of the fault in a line of `faults`."""
    do = line["do"]
    return str(next(iter(do)) if isinstance(do, dict) else do)


def items(turn: Drawn) -> Iterator[Drawn]:
    """Every item of a turn's replies."""
    for reply in turn["model"]:
        yield from reply if isinstance(reply, list) else [reply]
