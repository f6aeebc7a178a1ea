"""The cells of a search: every fault at every place that fits it.

A message beside a running turn counts as a fault here, and so does a conversation without any fault.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import combinations, product
from typing import Any, Literal, get_args

from pydantic import ValidationError

from wedgehog.fake_llm.script.side_conversations import SUBAGENT
from wedgehog.harness.faults.base import Aim, Fault, fault_named, parameters, parse_fault, registered
from wedgehog.harness.faults.chat_fault import ChatFault
from wedgehog.harness.faults.parameters import FaultError
from wedgehog.harness.faults.reply_fault import ReplyFault
from wedgehog.harness.scenario.fault_config import AGENT, FaultConfig
from wedgehog.harness.scenario.trigger import COMPACTION, Phase
from wedgehog.harness.scenario.turn_config import TurnConfig
from wedgehog.harness.search.draw import Choices, SeededChoices
from wedgehog.harness.search.scripts import SCRIPTS, ScriptKind
from wedgehog.harness.search.values import value_for

CallKind = Literal["first call", "call after a tool", "call of a later turn", "call of a subagent", "compaction"]
OF_A_SUBAGENT: Literal["call of a subagent"] = "call of a subagent"
OF_COMPACTION: Literal["compaction"] = "compaction"
STEPS: Mapping[CallKind, Mapping[str, int | str]] = {
    "first call": {},
    "call after a tool": {"step": 2},
    "call of a later turn": {"turn": 2},
    OF_A_SUBAGENT: {"on": SUBAGENT},
    OF_COMPACTION: {"turn": 2, "on": COMPACTION},
}
"""The calls at which a fault fires, with their positions in a drawn scenario."""
BESIDE_THE_MAIN = (OF_A_SUBAGENT, OF_COMPACTION)
"""Their scenario says only that they come, not what is in them."""
PLACES: Mapping[str, Mapping[str, Any]] = {
    "call": {},
    **{it: {"phase": it} for it in get_args(Phase)},
    "tool started": {"tool": 1},
    "tool done": {"tool": 1, "when": "done"},
    "session written": {"session": "written"},
    "time": {"after_s": 0.2},
    "byte": {"byte": 40},
    "message sent": {"chat": "send"},
}
"""Triggers, by the name that a report shows."""
OF_A_CALL = PLACES.keys() - {"tool started", "tool done", "session written", "time", "message sent"}
"""Places that one request and its reply have."""
TIMES: tuple[Literal["always"] | int, ...] = (1, "always", 3)
TIMES_OF_A_CHAT: tuple[int, ...] = (1, 3)
"""A chat that refuses all messages keeps its user from reading anything, whatever the agent does."""
NO_FAULT, SECOND_MESSAGE = "no fault", "second message"
"""Cells of these names have no line in `faults`."""
DRAWS = 12
"""How often parameters are drawn for a fault before only the needed ones are used."""


@dataclass(frozen=True)
class SearchCell:
    """One fault on one link at one place of one call, once or on every attempt."""

    fault: str
    link: str
    place: str
    step: CallKind
    times: Literal["always"] | int
    script: ScriptKind | None = None
    """What the model says in the turn of the fault; None: anything."""
    value: int | str | None = None
    """The value of its fault's main parameter; None: any."""

    @property
    def at(self) -> dict[str, Any]:
        """The trigger of its fault."""
        return {**STEPS[self.step], **PLACES[self.place]}

    @property
    def key(self) -> str:
        """Its fault; without one, its script."""
        return self.fault if self.fault != NO_FAULT else f"{NO_FAULT}, {self.script}"

    @property
    def needs_call(self) -> bool:
        """Whether its fault changes only a reply that calls a tool."""
        known = fault_named(self.fault)
        return known is not None and issubclass(known, ReplyFault) and known.needs_call

    @property
    def bare(self) -> "SearchCell":
        """Without its script, which is chosen when it is tried; without a fault the script is all of it."""
        return self if self.fault == NO_FAULT else replace(self, script=None)

    def line(self, do: object, at: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Its line in a scenario's `faults`; `at` in place of its own trigger."""
        at = self.at if at is None else dict(at)
        line: dict[str, Any] = {"do": do}
        line |= {"at": at} if at else {}
        line |= {"link": self.link} if self.link != "llm" else {}
        return line | ({"times": self.times} if self.times != 1 else {})

    @cached_property
    def pairs(self) -> frozenset[tuple[object, object]]:
        """What it covers: each two of its values."""
        return _pairs(self.fault, self.place, self.step, self.times, self.script)

    def __str__(self) -> str:
        """`cut at middle, call after a tool, always`."""
        often = "" if self.times == 1 else f", {self.times}" if self.times == "always" else f", {self.times} times"
        script = f", {self.script}" if self.script else ""
        return f"{self.fault} at {self.place}, {self.step}{often}{script}"


@cache
def _pairs(*values: object) -> frozenset[tuple[object, object]]:
    names = ("fault", "place", "step", "times", "script")
    named = [pair for pair in zip(names, values, strict=True) if pair[1] is not None]
    return frozenset(_the_same(pair) for pair in combinations(named, 2))


@cache
def _the_same(pair: tuple[object, object]) -> tuple[object, object]:
    """One object for equal pairs: sets of them are subtracted without a comparison of their parts."""
    return pair


def cells(links: Sequence[str], fits: Callable[[SearchCell], bool] = lambda cell: True) -> list[SearchCell]:
    """Every cell that a scenario may contain, on these links, of those that fit: others are not checked."""
    talks = (SearchCell(NO_FAULT, "llm", "call", "first call", 1, script) for script in SCRIPTS)
    where = [
        (place, step) for place, step in product(PLACES, STEPS) if step not in BESIDE_THE_MAIN or place in OF_A_CALL
    ]
    messages = (SearchCell(SECOND_MESSAGE, AGENT, *it, 1) for it in where)
    found = [*filter(fits, talks), *filter(_is_a_moment, filter(fits, messages))]
    for name, cls in registered().items():
        if not cls.searched:
            continue
        if issubclass(cls, ReplyFault) and cls.lasts:
            continue  # which item of its conversation an agent can do without is not known
        for link, do in _by_link(cls, links).items():
            once = (cell for it in where if fits(cell := SearchCell(name, link, *it, 1)) and _legal(cell.line(do)))
            often = TIMES_OF_A_CHAT if issubclass(cls, ChatFault) else TIMES
            found += [replace(cell, times=times) for cell in once for times in often]
    return found


def drawn_fault(draw: Choices, cls: type[Fault], value: int | str | None = None) -> object:
    """A fault's `do:` with its needed parameters drawn; the main one is drawn also where it has a default.

    It has this `value`, if one is given.
    """
    known = parameters(cls)
    if not known:
        return cls.name
    main = next(iter(known))
    needed = {name: it.schema for name, it in known.items() if name == main or it.is_needed}
    drawn = {name: _value(draw, _above_zero(schema)) for name, schema in needed.items()}
    return {cls.name: drawn if value is None else drawn | {main: value}}


def kinds_of(fault: str) -> Sequence[int | str]:
    """The values of a fault's main parameter, if they are kinds; the usual one is the first.

    Of statuses it is the first one, and one of each hundred: 429, 500 and 400, for example.
    """
    cls = fault_named(fault)
    main = next(iter(parameters(cls).values()), None) if cls is not None else None
    values = list(main.schema.get("enum") or main.schema.get("examples") or ()) if main is not None else []
    alike = {value // 100 if isinstance(value, int) else value: value for value in reversed(values[1:])}
    return [*values[:1], *reversed(alike.values())]


def _above_zero(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A fault that lasts 0 s does nothing, and never fires: its duration is drawn above that."""
    if "anyOf" in schema:
        return {**schema, "anyOf": [_above_zero(one) for one in schema["anyOf"]]}
    if schema.get("description") != "seconds" or schema.get("minimum") != 0:
        return schema
    return {name: value for name, value in schema.items() if name != "minimum"} | {"exclusiveMinimum": 0}


def drawn_line(draw: Choices, cell: SearchCell) -> dict[str, Any]:
    """A cell's line in a scenario's `faults`, with other parameters, bytes and times each time that it is drawn."""
    cls = fault_named(cell.fault)
    assert cls is not None  # noqa: S101  a cell's fault is a registered one
    for _ in range(DRAWS):
        line = cell.line(_with_options(draw, cls, cell.value), _varied(draw, cell.at)) | _lasting(draw)
        if _legal(line):
            return line
    return cell.line(_by_link(cls, [cell.link])[cell.link])


def _with_options(draw: Choices, cls: type[Fault], value: int | str | None = None) -> object:
    """A fault with some of its other parameters."""
    do = drawn_fault(draw, cls, value)
    if not isinstance(do, dict):
        return do
    more = {name: it for name, it in parameters(cls).items() if name not in (*do[cls.name], *cls.undrawn)}
    chosen = {name: it for name, it in more.items() if draw.choose((False, False, True))}
    return {cls.name: do[cls.name] | {name: _value(draw, _drawn(it.schema, cls)) for name, it in chosen.items()}}


def _drawn(schema: Mapping[str, Any], cls: type[Fault]) -> Mapping[str, Any]:
    """Without the kinds that few agents have."""
    kinds = [kind for kind in schema.get("enum", ()) if kind not in cls.undrawn]
    return {**schema, "enum": kinds} if kinds else schema


def _value(draw: Choices, schema: Mapping[str, Any]) -> object:
    """A value of a fault's parameter; no text is empty, because an agent may show it as it is."""
    return value_for(draw, {"minLength": 1, **schema} if schema.get("type") == "string" else schema)


def _varied(draw: Choices, at: Mapping[str, Any]) -> dict[str, Any]:
    values = {"byte": draw.choose((40, 0, 1, 90)), "after_s": draw.choose((0.2, 0, 1))}
    return {key: values.get(key, value) for key, value in at.items()}


def _lasting(draw: Choices) -> dict[str, Any]:
    """How long the fault lasts, and on what."""
    heal = draw.choose((None, None, None, {"after_s": 1}))
    sticks_to = draw.choose((None, None, None, "connection", "link"))
    return {key: value for key, value in (("heal", heal), ("sticks_to", sticks_to)) if value is not None}


def _by_link(cls: type[Fault], links: Sequence[str]) -> dict[str, object]:
    """A fault for each link that it fits: its parameters may say which, unless its class says it for all."""
    found: dict[str, object] = {}
    plain = drawn_fault(SeededChoices(cls.name), cls)
    drawn = (_with_options(SeededChoices(f"{cls.name} {number}"), cls) for number in range(4 * DRAWS))
    for do in (plain,) if isinstance(cls.aim, Aim) or cls.aim is Fault.aim else (plain, *drawn):
        with suppress(FaultError):
            found = dict.fromkeys(_links(parse_fault(do), links), do) | found
    return found


def _links(fault: Fault, links: Sequence[str]) -> Sequence[str]:
    aim = fault.aim
    wanted = aim.links if aim.links is not None else ("llm", *(link for link in links if link.startswith("tool:")))
    return [link for link in wanted if link in links]


def _legal(line: Mapping[str, Any]) -> bool:
    try:
        FaultConfig.model_validate(line)
    except ValidationError:
        return False
    return True


def _is_a_moment(cell: SearchCell) -> bool:
    """Whether a message can be sent at its place."""
    if not cell.at or "chat" in cell.at:
        return False
    try:
        TurnConfig.model_validate({"user": "?", "during": cell.at, "model": []})
    except ValidationError:
        return False
    return True
