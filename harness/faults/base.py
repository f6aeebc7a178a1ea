"""Faults as plain data, and the registry of their names.

A fault is a frozen value. It says what it does; the plan says when and where:

>>> parse_fault({"cut": "rst"})
Cut(then='rst')
>>> parse_fault({"stall": {"for_s": 30}}).scaled(10)
Stall(for_s=3.0)

To add one, write a class with `@fault` in `wire/`, `reply/` or `actor/`; no other list names it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self, TypeVar, dataclass_transform, get_type_hints

from wedgehog.harness.faults.parameters import FaultError, Parameter, ValueType, accept
from wedgehog.harness.faults.promise import broken_promise
from wedgehog.harness.record.expectation import did_you_mean, shown

Family = Literal["wire", "reply", "actor"]
Ending = Literal["stall", "fin", "rst"]
Need = Literal[
    "abort",
    "front_end",
    "processes",
    "worker",
    "disk",
    "stream",
    "wake_up",
    "second_message",
    "message_at_once",
    "redelivery",
    "two_events",
    "sessions",
    "page",
    "new_chat",
    "chat",
    "chat_poll",
    "one_poller",
    "background",
    "thinking",
    "shown_thoughts",
    "system_messages",
    "hosts",
    "http_tools",
    "tokens",
    "permission",
    "result_ids",
    "websocket",
    "stream_form",
    "chat_chunks",
    "item_ids",
    "call_ids",
    "schema",
    "schema_beside",
    "finish",
    "text_calls",
    "choices",
    "broken_calls",
    "filters",
    "models",
    "calls",
    "background_subagent",
]
"""What an agent must have for a fault: a way to stop a turn, a client that can give up, and so on."""


class FaultPipe(Protocol):
    """One direction of one connection, for a wire fault; `at` counts from the connection's first byte."""

    def stop(self, at: int, how: Ending) -> None:
        """Let exactly `at` bytes pass, then stay silent for ever, send FIN, or send RST."""

    def pace(self, at: int, every_s: float, size: int, *, in_proportion: bool = False) -> None:
        """From byte `at` on let `size` bytes pass every `every_s` seconds.

        `in_proportion`: the pause after fewer bytes is as much shorter.
        """

    def delay(self, s: float) -> None:
        """Let every byte pass `s` seconds after it came."""


class Toxic(NamedTuple):
    """A Toxiproxy toxic in our words; `kind` and `attributes` are Toxiproxy's."""

    kind: str
    attributes: Mapping[str, int]
    stream: Literal["downstream", "upstream"] = "downstream"
    toxicity: float = 1.0


@dataclass(frozen=True, slots=True)
class Aim:
    """The links and phases that a fault fits (None: all), and what a user reads at others."""

    links: tuple[str, ...] | None = None
    says: str = ""
    phases: tuple[str | None, ...] | None = None
    phases_say: str = ""
    hint: str = ""


class Fault:
    """Base of all faults: a frozen dataclass with valid parameters; a property may be a class attribute instead."""

    __slots__ = ()
    name: ClassVar[str]
    family: ClassVar[Family]
    usual: ClassVar[int] = 0
    """A search tries the greatest first: what providers, networks and users do most."""
    usual_at: ClassVar[str] = ""
    """A search tries this place first: `PLACES` of the search has the names."""
    unofficial: ClassVar[bool] = False
    """Whether only gateways and local servers show it: then a search draws it only if asked."""
    searched: ClassVar[bool] = True
    """Whether a search draws it; False if only agents with a special spec can meet it."""
    lasts_its_turn: ClassVar[bool] = False
    """Whether its harm lasts until it is healed, so that no second try in its turn can be answered."""
    of_memory: ClassVar[bool] = False
    """Whether it strikes the agent's own database."""
    of_disk: ClassVar[bool] = False
    """Whether nothing can be stored until it is healed."""
    of_form: ClassVar[bool] = False
    """Whether a reply is not in the form in which the agent reads answers or tool calls."""
    unmet: ClassVar[str] = ""
    """Why it did not fire, although its place was reached."""
    undrawn: ClassVar[tuple[str, ...]] = ()
    """Parameters that a search leaves at their defaults, because not every agent can show what they do."""
    without_threshold: ClassVar[tuple[str, ...]] = ()
    """Parameters in seconds whose smaller values are no milder: a search looks for no breaking point of them."""

    @property
    def aim(self) -> Aim:
        """The links and phases that it fits."""
        return Aim()

    @property
    def needs(self) -> tuple[Need, ...]:
        """What the agent must have."""
        return ()

    @property
    def for_some(self) -> bool:
        """Whether a correct agent may never have what it acts on; then its scenario does not apply."""
        return False

    @property
    def invents(self) -> str:
        """The words that the model makes up in the place of an answer; empty if it makes up none."""
        return ""

    @property
    def timed(self) -> bool:
        """Whether `after_s` counts from the turn's start where its trigger names no call."""
        return False

    def __post_init__(self) -> None:
        """Raise FaultError for a parameter of the wrong type or out of range."""
        known = parameters(type(self))
        accept(self.name, known, {parameter: getattr(self, parameter) for parameter in known}, FaultError)

    def scaled(self, factor: float) -> Self:
        """The same fault with each duration divided by `factor` (a scenario's `time_scale`)."""
        durations = {name: getattr(self, name) for name, it in parameters(type(self)).items() if it.scaled}
        shorter = {name: s / factor for name, s in durations.items() if isinstance(s, int | float)}
        return replace(self, **shorter)  # type: ignore[type-var]


class WireFault(Fault):
    """What happens to bytes, for Toxiproxy and for a Pipe: how many can have arrived follows from `on_pipe`."""

    __slots__ = ()
    closes_port: ClassVar[bool] = False
    """The link's port is closed: open connections end, and new ones are refused."""

    def __post_init__(self) -> None:
        """Raise FaultError also where `on_pipe` and `toxics` do not end a connection as `ends` says."""
        Fault.__post_init__(self)
        if not self.closes_port and (says := broken_promise(self)):
            raise FaultError(f"{self.name} {says}")

    @property
    def ends(self) -> Ending | None:
        """How a connection ends at the fault's byte; None: bytes are slow, and none is lost."""
        return None

    @property
    def slows(self) -> bool:
        """Whether every byte arrives in the end."""
        return self.ends is None

    @property
    def reach(self) -> Literal["connection", "link"]:
        """What it applies to. Toxiproxy can slow a whole link only."""
        return "link" if self.slows or self.closes_port else "connection"

    @property
    def proof(self) -> Literal["count", "flow", "port"]:
        """What proves it: exactly the bytes before its byte, bytes that crossed under it, or a refused connect."""
        return "port" if self.closes_port else "flow" if self.slows else "count"

    @property
    def holds_s(self) -> float | None:
        """How long the sender holds at the byte, where no network can make the fault."""
        return None

    @property
    def begins(self) -> Literal["before", "at_target"]:
        """Where the sender holds while the fault is armed: before its byte, or at it where the fault begins at once."""
        return "before" if self.proof == "count" and self.holds_s is None else "at_target"

    @property
    def heals_after_s(self) -> float | None:
        """After how long it ends by itself."""
        return None

    @property
    def timed(self) -> bool:
        """A fault of a whole link needs no call."""
        return self.reach == "link"

    def on_pipe(self, pipe: FaultPipe, at: int) -> None:
        """Apply the fault to one direction of a connection at absolute byte `at`."""
        raise NotImplementedError

    def toxics(self, at: int) -> tuple[Toxic, ...]:
        """The same fault as Toxiproxy settings, in the order in which they must be made."""
        raise NotImplementedError


class PortFault(WireFault):
    """A closed port: the network closes its listener itself; open connections end with FIN."""

    __slots__ = ()
    closes_port: ClassVar[bool] = True
    ends = "fin"
    aim = Aim(phases=(None, "connect"), phases_say="fires on connections: write `phase: connect`")

    def on_pipe(self, pipe: FaultPipe, at: int) -> None:
        """End an open connection."""
        pipe.stop(0, "fin")

    def toxics(self, at: int) -> tuple[Toxic, ...]:
        """None: the proxy is disabled."""
        return ()


FaultClass = TypeVar("FaultClass", bound=type[Fault])
_registry: dict[str, type[Fault]] = {}
_parameters: dict[type[Fault], dict[str, Parameter]] = {}


@dataclass_transform(frozen_default=True)
def fault(name: str, family: Family) -> Callable[[FaultClass], FaultClass]:
    """Make a class a frozen dataclass, and register it under `name`, the word in a scenario's `do:`."""

    def register(cls: Any) -> Any:
        if name in _registry:
            raise FaultError(f"two faults are called {name}")
        made = cls if "__dataclass_fields__" in vars(cls) else dataclass(frozen=True, slots=True)(cls)
        made.name, made.family = name, family
        _registry[name] = made
        return made

    return register


def registered(family: Family | None = None) -> dict[str, type[Fault]]:
    """All fault classes by name, in alphabetical order; of one family if given."""
    return {name: cls for name, cls in sorted(_registry.items()) if family in (None, cls.family)}


def fault_named(name: str) -> type[Fault] | None:
    """The fault class of a name, if there is one. A search asks for it many thousand times."""
    return _registry.get(name)


def parameters(cls: type[Fault]) -> dict[str, Parameter]:
    """The parameters of a fault class in order, the main one first."""
    if cls not in _parameters:
        hints = get_type_hints(cls, include_extras=True)
        found = fields(cls)  # type: ignore[arg-type]
        _parameters[cls] = {it.name: Parameter(ValueType(hints[it.name]), it.default) for it in found}
    return _parameters[cls]


def parse_fault(do: object) -> Fault:
    """The fault that a scenario's `do:` means: a name, or one name with its main parameter or all parameters.

    >>> parse_fault("abort"), parse_fault({"stall": "forever"}), parse_fault({"status": {"code": 429}})
    (Abort(), Stall(for_s='forever'), StatusReply(code=429, retry_after=None, message=None))

    Raises FaultError with one sentence for the user.
    """
    name, value = _split(do)
    if name not in _registry:
        hint = did_you_mean(name, _registry) or f"; there are {', '.join(sorted(_registry))}"
        raise FaultError(f"no fault is called {name!r}{hint}")
    cls = _registry[name]
    given = _given(cls, value)
    accept(name, parameters(cls), given, FaultError)
    return cls(**given)


def _split(do: object) -> tuple[str, object]:
    if isinstance(do, str):
        return do, {}
    if not isinstance(do, Mapping) or len(do) != 1:
        found = f"the keys {', '.join(map(str, do))}" if isinstance(do, Mapping) and do else shown(do)
        raise FaultError(f"a fault is a name or one `name: value`, found {found}")
    ((name, value),) = do.items()
    return str(name), value


def _given(cls: type[Fault], value: object) -> dict[str, object]:
    if value is None:
        raise FaultError(f"{cls.name} has nothing after its colon: write `do: {cls.name}`, or its parameters")
    if isinstance(value, Mapping):
        return {str(key): item for key, item in value.items()}
    if not parameters(cls):
        raise FaultError(f"{cls.name} takes no parameters, found {shown(value)}")
    return {next(iter(parameters(cls))): value}
