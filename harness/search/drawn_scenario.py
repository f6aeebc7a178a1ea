"""Draws scenarios: a conversation with tools that the agent has, and faults in it. Each is a legal scenario file."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from wedgehog.fake_llm.script.file_tools import FILE_ROLES
from wedgehog.harness.faults.base import parse_fault
from wedgehog.harness.faults.reply_fault import ReplyFault
from wedgehog.harness.scenario.fault_config import AGENT
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.scenario.trigger import CHANNEL, HOST
from wedgehog.harness.search.capabilities import COMPACTED_BY, SLOW_S, Capabilities
from wedgehog.harness.search.cells import (
    NO_FAULT,
    OF_A_SUBAGENT,
    OF_COMPACTION,
    SECOND_MESSAGE,
    STEPS,
    SearchCell,
    drawn_line,
)
from wedgehog.harness.search.draw import Choices, SeededChoices
from wedgehog.harness.search.scripts import (
    FILES,
    HOSTED,
    IN_A_ROUND,
    Drawn,
    ScriptKind,
    Tools,
    answer,
    as_items,
    subagent_round,
    tool_round,
)

MESSAGES = ("What is a hedgehog?", "Please look it up.", "And in short?", "Grüße, 🦔!")
INTERJECTION = "Wait, one more thing."
ROUNDS = (0, 1, 1, 2, 3)
MOST_FAULTS = 3
FULL = {"usage": {"input_tokens": 980_000}}
"""The model reports a context near every window in turn 2; the agent then compacts in that turn or in this one."""
DRAWS = 16
"""How often a scenario is drawn before one of its faults is left out."""


@dataclass(frozen=True, slots=True)
class Drawer:
    """Draws for one capabilities."""

    draw: Choices
    capabilities: Capabilities

    def scenario(self, cells: Sequence[SearchCell], name: str) -> Drawn:
        """A legal scenario whose conversation has the call of every cell; cells that exclude each other are left out.

        One scenario cuts either with FIN or with RST, for example.
        """
        return self.read(cells, name)[0]

    def read(self, cells: Sequence[SearchCell], name: str) -> tuple[Drawn, Scenario | None]:
        """The same scenario with its meaning; None if no legal one was drawn."""
        for chosen in (cells[:number] for number in range(len(cells), 0, -1)):
            for _ in range(DRAWS):
                document = self._scenario(chosen, name)
                if (legal := _read(document)) is not None:
                    return document, legal
        return document, None

    def _scenario(self, cells: Sequence[SearchCell], name: str) -> Drawn:
        faults = [drawn_line(self.draw, cell) for cell in cells if cell.fault not in (NO_FAULT, SECOND_MESSAGE)]
        talk = TurnDrawer(self.draw, self.capabilities, cells)
        turns = [*talk.turns(), *talk.second_messages()]
        document: Drawn = {"name": name, "why": "Drawn by the search.", "turns": turns, "faults": faults}
        if _uses_host(turns):
            document["tools"] = {HOSTED: {"answer": "spines"}}
        if _uses_files(turns):
            document["files"] = dict(FILES)
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

    def __init__(self, draw: Choices, capabilities: Capabilities, cells: Sequence[SearchCell]) -> None:
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

    def _model(self, cells: Sequence[SearchCell]) -> list[Any]:
        """The replies of one turn."""
        places, on_tools = [self._place(cell)["step"] for cell in cells], [cell for cell in cells if _at_tool(cell)]
        with_calls = [*on_tools, *(cell for cell in cells if cell.needs_call)]
        script = next((it.script for it in cells if it.script is not None), self._quick(with_files=not on_tools))
        least = max([*(step - 1 for step in places), *(self._place(cell)["step"] for cell in with_calls)], default=0)
        least = max(least, 1 if script in IN_A_ROUND else 0)
        rounds = max(least, self._draw.choose(ROUNDS)) if self._capabilities.calls_tools else 0
        rounds = least if script == "file edit" else rounds  # after a command what became of a file is not known
        tools = self._tools(cells, timed=bool(on_tools))
        kinds: list[ScriptKind] = [
            script if script in IN_A_ROUND and (not number or script == "file edit") else "plain"
            for number in range(rounds)
        ]
        delegated = (
            [subagent_round(self._draw, one_call=self._capabilities.one_call)]
            if any(cell.step == OF_A_SUBAGENT for cell in cells)
            else []
        )
        return [*(tool_round(self._draw, tools, kind) for kind in kinds), *delegated, answer(self._draw, script)]

    def _quick(self, *, with_files: bool) -> ScriptKind:
        """What the model says where no cell asks for a kind of script: mostly plain words.

        A fault at a tool needs a call that reports its beginning and end, and the agent's tools for files do not.
        """
        quick: list[ScriptKind] = ["plain", "plain", "plain", "plain", "several tools", "file edit", "long answer"]
        possible = [it for it in quick if it in self._capabilities.scripts and (with_files or it != "file edit")]
        return self._draw.choose(possible)

    def _tools(self, cells: Sequence[SearchCell], *, timed: bool) -> Tools:
        """With `timed` each call reports its beginning and end, as those of the shell and of our host do."""
        can = self._capabilities
        slow_s = can.slow_s if self._waits_for_nothing else min(SLOW_S, can.slow_s)
        slow_s = round(slow_s / can.time_scale, 2)
        if any(cell.link == HOST for cell in cells):
            return Tools(False, {}, True, slow_s, can.one_call)
        return Tools(can.shell, {} if timed else can.tools, can.host, slow_s, can.one_call)

    @property
    def _waits_for_nothing(self) -> bool:
        """Whether no fault makes the turn longer: with a slow tool a patient agent would exceed its bound."""
        return all(cell.link in (AGENT, CHANNEL) or cell.fault == NO_FAULT for cell in self._cells)

    @staticmethod
    def _place(cell: SearchCell) -> Mapping[str, int]:
        """The reply of the main conversation; a subagent's call is beside it."""
        if cell.step == OF_COMPACTION:
            return {"turn": COMPACTED_BY, "step": 1}
        told = {key: number for key, number in STEPS[cell.step].items() if isinstance(number, int)}
        return {"turn": 1, "step": 1, **told}

    def _turn_of(self, cell: SearchCell) -> int:
        return self._place(cell)["turn"]


def _at_tool(cell: SearchCell) -> bool:
    return cell.link == HOST or "tool" in cell.place


def _read(document: Drawn) -> Scenario | None:
    with suppress(ValidationError):
        return Scenario.model_validate(document)
    return None


def says_nothing(document: Drawn) -> bool:
    """Whether the model ends a turn without a word."""
    empty = any(reply == [] for turn in document["turns"] for reply in turn["model"])
    faults = [parse_fault(line["do"]) for line in document["faults"]]
    return empty or any(isinstance(fault, ReplyFault) and fault.says_nothing for fault in faults)


def _uses_host(turns: Sequence[Drawn]) -> bool:
    return any(item.get("tool") == HOSTED for turn in turns for item in items(turn))


def _uses_files(turns: Sequence[Drawn]) -> bool:
    return any(item.get("tool") in FILE_ROLES for turn in turns for item in items(turn))


def fault_of(line: Mapping[str, Any]) -> str:
    """The name of the fault in a line of `faults`."""
    do = line["do"]
    return str(next(iter(do)) if isinstance(do, dict) else do)


def items(turn: Drawn) -> Iterator[Drawn]:
    """Every item of a turn's replies."""
    for reply in turn["model"]:
        yield from as_items(reply)


def compaction_probe(capabilities: Capabilities) -> Drawn | None:
    """A scenario that applies only to an agent that compacts; None if too short a session shows nothing."""
    if capabilities.turns < COMPACTED_BY:
        return None
    asked = SearchCell("status", "llm", "headers", OF_COMPACTION, 1, "plain")
    return Drawer(SeededChoices("compaction"), capabilities).scenario([asked], "drawn-compaction")
