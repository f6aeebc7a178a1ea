"""Where, when and what: a fault plan is plain data, hence it can be shrunk and replayed."""

from dataclasses import dataclass, field, replace
from typing import Literal

from wedgehog.harness.faults.base import Fault, WireFault

Phase = Literal["connect", "request", "headers", "body", "middle", "terminal", "linger"]
StickTo = Literal["call", "connection", "link"]

ALWAYS = -1
"""`times: always`"""


@dataclass(frozen=True, slots=True)
class Trigger:
    """When a fault strikes. Turn, step and attempt count from 1.

    With `tool` the trigger is the beacon of that tool call of (turn, step), with `session` the first change of a
    session file after the request of (turn, step, attempt); else it is byte `byte`, the end of event `event` or the
    phase of that call. `after_s` delays it; alone, it counts from the turn's start.
    """

    turn: int = 1
    step: int = 1
    attempt: int = 1
    event: int | None = None
    byte: int | None = None
    phase: Phase | None = None
    tool: int | None = None
    query: int | None = None
    """The query of the turn, of our database."""
    chat: Literal["poll", "send"] | None = None
    """The poll that brings the turn's message, or what the agent sends back."""
    when: Literal["started", "done"] = "started"
    session: Literal["written"] | None = None
    model_name: str | None = None
    after_s: float | None = None
    on: Literal["main", "background"] = "main"

    @property
    def before_request(self) -> bool:
        """Whether the harm must be armed before the request comes."""
        return self.phase in ("connect", "request")


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """One line of a plan."""

    link: str
    trigger: Trigger
    fault: Fault
    times: int = 1
    sticks_to: StickTo = "call"
    heal_after_s: float | None = None
    """None: healed at the end of the turn."""

    @property
    def on_pipe(self) -> bool:
        """Whether it strikes a process's stdin or stdout (`ipc:NAME`)."""
        return self.link.startswith("ipc:")

    @property
    def heals_in_s(self) -> float | None:
        """When it is over: as the plan says, else by itself."""
        own = self.fault.heals_after_s if isinstance(self.fault, WireFault) else None
        return own if self.heal_after_s is None else self.heal_after_s

    def scaled(self, factor: float) -> "PlannedFault":
        """The same line with every duration divided by `factor`."""
        trigger = self.trigger
        if trigger.after_s is not None:
            trigger = replace(trigger, after_s=trigger.after_s / factor)
        heal = None if self.heal_after_s is None else self.heal_after_s / factor
        return replace(self, trigger=trigger, fault=self.fault.scaled(factor), heal_after_s=heal)

    def __str__(self) -> str:
        """`stall on llm at 1.2`"""
        return f"{self.fault.name} on {self.link} at {self.trigger.turn}.{self.trigger.step}"


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """All lines, in the order written; a fault's place here is its name in the history."""

    faults: tuple[PlannedFault, ...] = field(default=())

    def scaled(self, factor: float) -> "FaultPlan":
        """The same plan, faster."""
        return FaultPlan(tuple(planned.scaled(factor) for planned in self.faults))

    def resets(self, link: str) -> bool:
        """Whether an RST may be struck on this link."""
        faults = (it.fault for it in self.faults if it.link == link)
        return any(isinstance(fault, WireFault) and fault.ends == "rst" for fault in faults)

    @property
    def links(self) -> tuple[str, ...]:
        """The links that are harmed."""
        return tuple(dict.fromkeys(planned.link for planned in self.faults))
