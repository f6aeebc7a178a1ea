"""The registry that invariants enter by name, with what the judge, the docs and a scenario's author need to know.

A check is a pure function with typed keyword parameters, all with a default:

    @invariant("tool_round_bound")
    def tool_round_bound(history: History, *, tool_rounds: int = 50) -> Verdict:
        \"\"\"A turn has at most `tool_rounds` rounds of tool calls.\"\"\"

A parameter whose default is None has no stock number: without one its value is reported, never judged. Parameters
named `…_s` are seconds, and real ones when they reach the check.
"""

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, Protocol, get_args, get_type_hints

from wedgehog.harness.invariants.overload import counted
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, error

Number = int | float | bool | None


class InvariantError(ValueError):
    """An unknown invariant or parameter, or a value that does not fit: the user's mistake, in one line."""


class Check(Protocol):
    """A check: it takes a sealed history and its own keyword parameters."""

    def __call__(self, history: History, **parameters: Any) -> Verdict:
        """Judge one history."""
        ...


@dataclass(frozen=True, slots=True)
class Parameter:
    """One keyword parameter of a check."""

    name: str
    type: type[int] | type[float] | type[bool]
    default: Number
    optional: bool
    """It may be None, which means: report the value, judge nothing."""
    scaled: bool
    """Seconds of the story: whoever calls divides them by the run's `time_scale` first."""

    @property
    def in_seconds(self) -> bool:
        """Whether it is a duration."""
        return self.name.endswith("_s")

    def fit(self, value: Any) -> Number:
        """`value`, if it fits.

        Raises:
            ValueError: what was expected.
        """
        if value is None and self.optional:
            return None
        if self.type is bool:
            if not isinstance(value, bool):
                raise ValueError("true or false")
            return value
        whole = self.type is int
        number = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
        if not number or (whole and value != int(value)):
            raise ValueError(f"a {'whole ' if whole else ''}number of 0 or more")
        return int(value) if whole else value


@dataclass(frozen=True, slots=True)
class Invariant:
    """A named property of a run."""

    name: str
    doc: str
    """One line."""
    run: Check
    parameters: Mapping[str, Parameter]
    asked: bool = False
    """Judged only where a scenario names it."""
    by_calls: bool = False
    """It counts calls. Their number proves nothing where the agent waited too long for a processor."""

    @property
    def reported_only(self) -> bool:
        """Whether it has bounds but no stock number for any: without one it only reports."""
        return bool(self.parameters) and all(it.default is None for it in self.parameters.values())


_REGISTRY: dict[str, Invariant] = {}


def invariant(
    name: str, *, asked: bool = False, unscaled: tuple[str, ...] = (), by_calls: bool = False
) -> Callable[[Callable[..., Verdict]], Callable[..., Verdict]]:
    """Register a check; `unscaled` names durations that are real seconds in every run.

    Raises:
        InvariantError: the name is taken, or a parameter is not as described above.
    """

    def register(run: Callable[..., Verdict]) -> Callable[..., Verdict]:
        if name in _REGISTRY:
            raise InvariantError(f"two invariants are called {name}")
        doc = (inspect.getdoc(run) or "").split("\n", maxsplit=1)[0]
        _REGISTRY[name] = Invariant(name, doc, run, _parameters(run, unscaled), asked, by_calls)
        return run

    return register


def _parameters(run: Callable[..., Verdict], unscaled: tuple[str, ...]) -> Mapping[str, Parameter]:
    hints = get_type_hints(run)
    found = {}
    for name, given in inspect.signature(run).parameters.items():
        if name != "history":
            hint = hints.get(name)
            members = get_args(hint) if isinstance(hint, UnionType) else (hint,)
            kind = next((it for it in (bool, float, int) if it in members), None)
            if kind is None or given.default is inspect.Parameter.empty:
                raise InvariantError(f"parameter {name}: it needs a default, and int, float or bool as its type")
            scaled = name.endswith("_s") and name not in unscaled
            found[name] = Parameter(name, kind, given.default, NoneType in members, scaled)
    return found


def known() -> dict[str, Invariant]:
    """All of them, in order of their names."""
    return dict(sorted(_REGISTRY.items()))


def find(name: str) -> Invariant:
    """The invariant of this name.

    Raises:
        InvariantError: there is none.
    """
    if name not in _REGISTRY:
        raise InvariantError(f"unknown invariant {name!r}{_did_you_mean(name, _REGISTRY)}")
    return _REGISTRY[name]


def accept(name: str, parameters: Mapping[str, Any]) -> dict[str, Number]:
    """The parameters, if the invariant knows them and their values fit.

    Raises:
        InvariantError: one line that says what was expected.
    """
    known, fitting = find(name).parameters, {}
    for word, value in parameters.items():
        if word not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes no parameters"
            raise InvariantError(f"{name} does not know {word!r}{_did_you_mean(word, known)}; {takes}")
        try:
            fitting[word] = known[word].fit(value)
        except ValueError as wanted:
            raise InvariantError(f"{name}: {word}: expected {wanted}, found {value!r}") from None
    return fitting


def check(name: str, history: History, **parameters: Any) -> Verdict:
    """The verdict of one invariant on a sealed history, under its name; a check that crashes says `error`.

    Raises:
        InvariantError: an unknown name or parameter.
    """
    chosen = find(name)
    fitting = accept(name, parameters)
    try:
        found = chosen.run(history, **fitting).named(name)
        if not chosen.by_calls:
            return found
        return counted(history, found, lambda others: chosen.run(others, **fitting))
    except Exception as crash:  # whatever a check dies of is ours, never the agent's
        return error(f"the check itself failed: {type(crash).__name__}: {crash}").named(name)


def _did_you_mean(word: str, known: Mapping[str, object]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
