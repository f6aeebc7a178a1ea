"""The registry of invariants by name, with what the judge, the docs and a scenario's author need.

A check is a pure function with typed keyword parameters, all with a default. It returns a verdict, or yields findings,
of which `together` makes one:

    @invariant("tool_round_bound")
    def tool_round_bound(history: History, *, tool_rounds: int = 50) -> Verdict:
        \"\"\"A turn has at most `tool_rounds` rounds of tool calls.\"\"\"

A parameter whose default is None has no stock bound: without one its value is reported, not judged. Parameters named
`…_s` are seconds; a check gets them as real ones.
"""

import inspect
import math
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

from pydantic import BeforeValidator, Field

from wedgehog.harness.faults.parameters import Parameter, Seconds, ValueType, accept
from wedgehog.harness.invariants.overload import counted
from wedgehog.harness.invariants.scope import folded, together
from wedgehog.harness.record.expectation import did_you_mean
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Level, Reason, Verdict, error


class InvariantError(ValueError):
    """An unknown invariant or parameter, or a wrong value: the user's mistake, in one line."""


FIX = "Fix:"
"""Begins the paragraph of a docstring that says how to fix a violation."""

CheckFunction = TypeVar("CheckFunction", bound=Callable[..., Verdict | Iterator[Verdict]])


@dataclass(frozen=True, slots=True)
class Invariant:
    """A named property of a run."""

    name: str
    doc: str
    """One line."""
    fix: str
    """What an agent that violates it should do; one line, empty if the docstring has no paragraph `Fix: …`."""
    run: Callable[..., Verdict]
    parameters: Mapping[str, Parameter]
    asked: bool = False
    """Judged only where a scenario names it."""
    by_calls: bool = False
    """It counts calls. Their number proves nothing where the agent waited too long for a processor."""
    level: Level = "safe"
    """From this level on it decides the verdict of a run."""
    across: bool = False
    """It compares the sessions of a run; every other one judges each session by itself."""

    @property
    def room(self) -> str:
        """The folder in which it stands, such as `requests`; empty for one of a plugin."""
        above, _, below = self.run.__module__.partition(f"{__package__}.")
        return "" if above else below.partition(".")[0]

    @property
    def reported_only(self) -> bool:
        """Whether it has bounds but no stock number for any: without one it only reports."""
        return bool(self.parameters) and all(it.default is None for it in self.parameters.values())

    def accept(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters as their types. Raises InvariantError: one line that says what is expected."""
        return accept(self.name, self.parameters, parameters, InvariantError)


_REGISTRY: dict[str, Invariant] = {}


def invariant(
    name: str,
    *,
    asked: bool = False,
    unscaled: tuple[str, ...] = (),
    by_calls: bool = False,
    level: Level = "safe",
    across: bool = False,
) -> Callable[[CheckFunction], CheckFunction]:
    """Register a check; `unscaled` names durations that are real seconds in every run. Errors: InvariantError."""

    def register(run: CheckFunction) -> CheckFunction:
        if name in _REGISTRY:
            raise InvariantError(f"two invariants are called {name}")
        if name in get_args(Reason):
            raise InvariantError(f"no invariant may be called {name}: a run that counts for nothing has this reason")
        doc, _, fix = (inspect.getdoc(run) or "").partition(f"\n\n{FIX}")
        holds, says = doc.partition("\n")[0], " ".join(fix.split())
        takes, judges = _parameters(run, unscaled), _one_verdict(run)
        _REGISTRY[name] = Invariant(name, holds, says, judges, takes, asked, by_calls, level, across)
        return run

    return register


def _one_verdict(run: Callable[..., Verdict | Iterator[Verdict]]) -> Callable[..., Verdict]:
    @wraps(run)
    def judge(history: History, **parameters: Any) -> Verdict:
        found = run(history, **parameters)
        return found if isinstance(found, Verdict) else together(found)

    return judge


def _whole(value: object) -> object:
    """A scenario file's numbers are floats."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_SECONDS = ValueType(Seconds)
_VALUES = {
    bool: ValueType(bool),
    float: ValueType(Annotated[float, Field(ge=0)]),
    int: ValueType(Annotated[int, Field(ge=0), BeforeValidator(_whole)]),
}


def _parameters(run: Callable[..., object], unscaled: tuple[str, ...]) -> Mapping[str, Parameter]:
    hints = get_type_hints(run)
    found = {}
    for name, given in inspect.signature(run).parameters.items():
        if name != "history":
            hint = hints.get(name)
            members = get_args(hint) if isinstance(hint, UnionType) else (hint,)
            kind = next((it for it in _VALUES if it in members), None)
            if kind is None or given.default is inspect.Parameter.empty:
                raise InvariantError(f"parameter {name}: it needs a default, and int, float or bool as its type")
            fits = _SECONDS if name.endswith("_s") and kind is not bool else _VALUES[kind]
            found[name] = Parameter(fits, given.default, real_time=name in unscaled)
    return found


def known() -> dict[str, Invariant]:
    """All of them, in order of their names."""
    return dict(sorted(_REGISTRY.items()))


def find(name: str) -> Invariant:
    """The invariant of this name. Raises InvariantError where there is none."""
    if name not in _REGISTRY:
        hint = did_you_mean(name, _REGISTRY) or "; one of your own needs `--plugin FILE`"
        raise InvariantError(f"unknown invariant {name!r}{hint}")
    return _REGISTRY[name]


def check(name: str, history: History, **parameters: Any) -> Verdict:
    """The verdict of one invariant on a sealed history; a check that crashes says `error`. Errors: InvariantError."""
    found = folded(_checked(name, history, **parameters))
    if found.status == "fail":
        return replace(found, fix=find(name).fix)
    return replace(found, because=find(name).doc) if found.status == "pass" and not found.because else found


def _checked(name: str, history: History, **parameters: Any) -> Verdict:
    chosen = find(name)
    fitting = chosen.accept(parameters)
    try:
        if chosen.across or len(history.sessions) < 2:
            return _of_one(chosen, history, fitting)
        found = ((session, _of_one(chosen, part, fitting)) for session, part in history.sessions.items())
        each = sorted((_in_session(*it) for it in found), key=_first_evidence)
        return together(each).named(name)
    except Exception as crash:  # a crash is the harness's fault, never the agent's
        last = traceback.extract_tb(crash.__traceback__)[-1]
        place = f"{Path(last.filename).name}, line {last.lineno}"
        return error(f"the check {name} itself failed in {place}: {type(crash).__name__}: {crash}").named(name)


def _of_one(chosen: Invariant, history: History, fitting: Mapping[str, Any]) -> Verdict:
    """The verdict on a history of one session."""
    found = chosen.run(history, **fitting).named(chosen.name)
    if not chosen.by_calls:
        return found
    return counted(history, found, lambda others: chosen.run(others, **fitting))


def _first_evidence(verdict: Verdict) -> float:
    return min(verdict.evidence, default=math.inf)


def _in_session(session: str, verdict: Verdict) -> Verdict:
    """The verdict with the name of its session, where it says something about it."""
    if verdict.status == "nothing":
        return verdict
    says, because = (f"session {session}: {words}" if words else "" for words in (verdict.says, verdict.because))
    more = tuple(replace(it, says=f"session {session}: {it.says}") for it in verdict.more)
    return replace(verdict, says=says, because=because, more=more)
