"""Faults as plain data, the registry they enter by name, and the two small things a wire fault talks to.

A fault is a frozen value that knows what it means and nothing about when or where it strikes:

>>> parse_fault({"cut": "rst"})
Cut(then='rst')
>>> parse_fault({"stall": {"for_s": 30}}).scaled(10)
Stall(for_s=3.0)

To add one, write a file in `wire/`, `reply/` or `actor/` with a decorated dataclass; nothing else lists it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self, TypeVar

from wedgehog.harness.faults.parameters import (
    Default,
    FaultError,
    check,
    closest,
    hints,
    is_duration,
    shorten,
)

Family = Literal["wire", "reply", "actor"]
Ending = Literal["stall", "fin", "rst"]
Need = Literal["abort", "front_end", "processes", "disk", "stream"]
"""What an agent must have for a fault to strike it: a way to stop a turn, a client that can give up, and so on."""


class FaultPipe(Protocol):
    """One direction of one connection, as a wire fault sees it; `at` counts from the connection's first byte."""

    def stop(self, at: int, how: Ending) -> None:
        """Let exactly `at` bytes pass, then stay silent for ever, send FIN, or send RST."""

    def pace(self, at: int, every_s: float, size: int) -> None:
        """From byte `at` on let `size` bytes pass every `every_s` seconds."""

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
    """The links and phases at which a fault can strike, None: all; and what a user is told at others."""

    links: tuple[str, ...] | None = None
    says: str = ""
    phases: tuple[str | None, ...] | None = None
    phases_say: str = ""
    hint: str = ""


class Fault:
    """Base of all faults: validated when made, comparable, and able to run faster than the story tells it."""

    __slots__ = ()
    name: ClassVar[str]
    family: ClassVar[Family]

    @property
    def aim(self) -> Aim:
        """Where it can strike."""
        return Aim()

    @property
    def needs(self) -> tuple[Need, ...]:
        """What it needs of the agent."""
        return ()

    @property
    def timed(self) -> Literal["never", "alone", "always"]:
        """Whether time sets it off and no call: `alone`, where its trigger names no place in a call."""
        return "never"

    def __post_init__(self) -> None:
        """Refuse parameters of the wrong type or out of range (FaultError)."""
        for parameter, hint in hints(type(self)).items():
            check(self.name, parameter, hint, getattr(self, parameter))

    def scaled(self, factor: float) -> Self:
        """The same fault with every duration divided by `factor` (a scenario's `time_scale`)."""
        durations = [parameter for parameter, hint in hints(type(self)).items() if is_duration(hint)]
        return replace(self, **{it: shorten(getattr(self, it), factor) for it in durations})  # type: ignore[type-var]


class WireFault(Fault):
    """What happens to bytes: its meaning for a Pipe and for Toxiproxy stand side by side.

    How many bytes can have arrived under it is not written down again: `on_pipe` is played on a Pipe, with the times
    at which the reply was written.
    """

    __slots__ = ()
    closes_port: ClassVar[bool] = False
    """The link's port is closed: open connections end, and new ones are refused."""

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
        """What it strikes. Toxiproxy can slow a whole link only."""
        return "link" if self.slows or self.closes_port else "connection"

    @property
    def proof(self) -> Literal["count", "flow", "port"]:
        """What proves it: exactly the bytes before its byte, bytes that crossed under it, or a refused connect."""
        return "port" if self.closes_port else "flow" if self.slows else "count"

    @property
    def holds_s(self) -> float | None:
        """For how long the sender holds at the byte, where no network can make the harm."""
        return None

    @property
    def begins(self) -> Literal["before", "at_spot"]:
        """Where the sender must hold while it is armed: anywhere before its byte, or at it: the harm begins at once."""
        return "before" if self.proof == "count" and self.holds_s is None else "at_spot"

    @property
    def heals_after_s(self) -> float | None:
        """After how long it is over by itself."""
        return None

    @property
    def timed(self) -> Literal["never", "alone", "always"]:
        """What strikes a whole link needs no call."""
        return "alone" if self.reach == "link" else "never"

    def on_pipe(self, pipe: FaultPipe, at: int) -> None:
        """Do the harm to one direction of a connection at absolute byte `at`."""
        raise NotImplementedError

    def toxics(self, at: int) -> tuple[Toxic, ...]:
        """The same harm as Toxiproxy settings, in the order in which they must be made."""
        raise NotImplementedError


class PortFault(WireFault):
    """A closed port: it has no pipe and no toxic, for the network closes its listener itself."""

    __slots__ = ()
    closes_port: ClassVar[bool] = True

    @property
    def ends(self) -> Ending:
        """What is open ends with FIN."""
        return "fin"

    @property
    def aim(self) -> Aim:
        """It strikes connections."""
        return Aim(phases=(None, "connect"), phases_say="strikes connections: write `phase: connect`")

    def on_pipe(self, pipe: FaultPipe, at: int) -> None:
        """End what is open."""
        pipe.stop(0, "fin")

    def toxics(self, at: int) -> tuple[Toxic, ...]:
        """None: the proxy is disabled."""
        return ()


FaultClass = TypeVar("FaultClass", bound=type[Fault])
_registry: dict[str, type[Fault]] = {}


def fault(name: str, family: Family) -> Callable[[FaultClass], FaultClass]:
    """Enter a fault dataclass into the registry under its wire name, the word in a scenario's `do:`."""

    def enter(cls: FaultClass) -> FaultClass:
        if name in _registry:
            raise FaultError(f"two faults are called {name}")
        cls.name, cls.family = name, family
        _registry[name] = cls
        return cls

    return enter


def registered(family: Family | None = None) -> dict[str, type[Fault]]:
    """All fault classes by name, in alphabetical order; of one family if asked."""
    return {name: cls for name, cls in sorted(_registry.items()) if family in (None, cls.family)}


def parse_fault(do: object) -> Fault:
    """The fault that a scenario's `do:` means: a name, or one name with its main parameter or all parameters.

    >>> parse_fault("abort"), parse_fault({"stall": "forever"}), parse_fault({"status": {"code": 429}})
    (Abort(), Stall(for_s='forever'), Status(code=429, retry_after=None, message=None))

    Raises FaultError with one sentence for the user.
    """
    name, value = _split(do)
    if name not in _registry:
        raise FaultError(f"no fault is called {name!r}{closest(name, _registry) or _all_names()}")
    cls = _registry[name]
    return cls(**_arguments(cls, value))


def _split(do: object) -> tuple[str, object]:
    if isinstance(do, str):
        return do, None
    if not isinstance(do, Mapping) or len(do) != 1:
        raise FaultError(f"a fault is a name or one `name: value`, not {do!r}")
    ((name, value),) = do.items()
    return str(name), value


def _arguments(cls: type[Fault], value: object) -> dict[str, Any]:
    known = list(hints(cls))
    if value is None:
        given: dict[str, Any] = {}
    elif isinstance(value, Mapping):
        given = {str(key): item for key, item in value.items()}
    elif known:
        given = {known[0]: value}
    else:
        raise FaultError(f"{cls.name} takes no parameter, not even {value!r}")
    for key in given:
        if key not in known:
            raise FaultError(f"{cls.name} has no parameter {key!r}{closest(key, known) or _only(known)}")
    for parameter in _required(cls):
        if parameter not in given:
            raise FaultError(f"{cls.name} needs {parameter}: write `{cls.name}: {{{parameter}: …}}`")
    return given


def _required(cls: type[Fault]) -> list[str]:
    return [row.name for row in parameters(cls) if row.default is Default.REQUIRED]


def _only(known: list[str]) -> str:
    return f"; it has {', '.join(known)}" if known else "; it takes none"


def _all_names() -> str:
    return f"; there are {', '.join(sorted(_registry))}"


@dataclass(frozen=True, slots=True)
class ParameterRow:
    """One parameter of a fault: its name and its default (`Default.REQUIRED` where it has none)."""

    name: str
    default: object


@dataclass(frozen=True, slots=True)
class FaultRow:
    """One line of the generated table of faults."""

    name: str
    family: Family
    parameters: tuple[ParameterRow, ...]
    says: str


def parameters(cls: type[Fault]) -> tuple[ParameterRow, ...]:
    """The parameters of a fault class in order, the main one first."""
    return tuple(ParameterRow(item.name, Default.of(item)) for item in fields(cls))  # type: ignore[arg-type]


def fault_table() -> list[FaultRow]:
    """Every registered fault, by family and name, for the docs: `says` is the first line of its docstring."""
    rows = [
        FaultRow(name, cls.family, parameters(cls), (cls.__doc__ or "").strip().splitlines()[0])
        for name, cls in _registry.items()
    ]
    return sorted(rows, key=lambda row: (("wire", "reply", "actor").index(row.family), row.name))
