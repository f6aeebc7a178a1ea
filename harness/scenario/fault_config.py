"""One line of a fault plan in a scenario file: link, trigger, fault, healing."""

import re
from dataclasses import fields
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, NonNegativeFloat, NonNegativeInt, PositiveInt, model_validator

from wedgehog.fake_llm.script.items import ConfigModel
from wedgehog.harness.faults.base import Fault, Need, WireFault, parse_fault
from wedgehog.harness.faults.process_fault import ActorFault, ProcessFault
from wedgehog.harness.scenario import link_triggers
from wedgehog.harness.scenario import trigger as triggers
from wedgehog.harness.scenario.fault_plan import ALWAYS, PlannedFault, StickTo
from wedgehog.harness.scenario.mistake import BadValueError
from wedgehog.harness.scenario.trigger import BACKEND, CHANNEL, CHAT, HOST, PIPE, STORE, Moment, Phase, Trigger

AGENT = "agent"
"""The link whose faults hit the agent's processes."""
LINKS = ("llm", CHANNEL, "tool:web", HOST, PIPE, STORE, CHAT, AGENT)

ANY_PIPE = r"ipc:[A-Za-z0-9._-]+"
"""A `wedgehog-pipe --name NAME` of the agent's own."""
ANY_BACKEND = r"tcp:[a-z0-9][a-z0-9-]*"
"""One of the `links` of the agent's spec."""


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
    chat: link_triggers.ChatRequest | None = None
    when: Moment = "started"
    session: Literal["written", "idle"] | None = None
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
            return link_triggers.AtPipe
        if link.startswith(BACKEND) and not (isinstance(fault, WireFault) and fault.closes_port):
            return link_triggers.AtBackend
        if self.session == "idle":
            return triggers.SessionIdle
        for key, kind in _KINDS.items():
            if getattr(self, key) is not None:
                return kind
        if self.phase in ("connect", "request"):
            return triggers.BeforeRequest
        timed = self.after_s is not None and fault.timed
        alone = timed and self == TriggerConfig(turn=self.turn, after_s=self.after_s)
        return triggers.AfterStart if alone else triggers.AtReply


_OF_SOME: dict[str, str] = {
    "edit": "in this run the agent changed no message that it had sent to its chat",
    "typing": "in this run the agent did not show its chat that it writes",
}
"""Why a correct agent may never meet a fault on a request to its chat."""
_KINDS: dict[str, type[Trigger]] = {
    "session": triggers.SessionWritten,
    "query": link_triggers.AtQuery,
    "chat": link_triggers.AtChat,
    "tool": triggers.AtTool,
}
"""The key that makes a trigger what it is."""


class HealConfig(ConfigModel):
    """When the harm is taken away."""

    after_s: NonNegativeFloat


def _link(name: str) -> str:
    if name not in LINKS and not re.fullmatch(f"{ANY_PIPE}|{ANY_BACKEND}", name):
        known = f"one of {', '.join(LINKS)}, ipc:NAME or tcp:NAME"
        raise BadValueError(f"unknown link {name!r}, expected {known}")
    return name


def _do(words: Any) -> Any:
    try:
        parse_fault(words)
    except ValueError as wrong:
        raise BadValueError(str(wrong)) from None
    return words


class FaultConfig(ConfigModel):
    """One line of the fault plan."""

    link: Annotated[str, AfterValidator(_link)] = "llm"
    at: TriggerConfig = TriggerConfig()
    do: Annotated[Any, AfterValidator(_do)]
    times: PositiveInt | Literal["always"] = 1
    sticks_to: StickTo = "call"
    heal: HealConfig | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> "FaultConfig":
        fault = self.fault
        _fits(fault, self)
        if misfit := self.at.trigger(self.link, fault).misfit(fault, self.link):
            raise BadValueError(misfit[0], *misfit[1])
        return self

    @cached_property
    def fault(self) -> Fault:
        """What `do` says. A search asks for it some thousand times."""
        return parse_fault(self.do)

    @property
    def unmet(self) -> str:
        """Why a correct agent may never meet it; empty for one that each agent meets."""
        if self.at.session == "idle":
            return "no program below the agent's own process lived between two messages"
        if isinstance(self.fault, ProcessFault) and self.fault.at_subagent:
            return "in this run no subagent had a process of its own"
        if self.at.chat in _OF_SOME:
            return _OF_SOME[self.at.chat]
        return self.fault.unmet if self.fault.for_some else ""

    @property
    def needs(self) -> tuple[Need, ...]:
        """What it needs of the agent: its fault's needs, and those of its place (only a streamed reply has events)."""
        counts = self.at.event is not None or (self.at.phase == "linger" and isinstance(self.fault, WireFault))
        place: dict[Need, bool] = {
            "stream": counts,
            "page": self.link == CHANNEL and isinstance(self.fault, WireFault),
            "chat": self.link == CHAT,
            "chat_poll": self.at.chat == "poll",
            "background": self.at.on == "background",
        }
        beside: dict[Need, Need] = {"schema": "schema_beside"} if place["background"] else {}
        of_fault = (beside.get(need, need) for need in self.fault.needs)
        return (*of_fault, *(need for need, applies in place.items() if applies))

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
