"""The results of one scenario and agent as a baseline keeps them."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from wedgehog.harness.record.verdict import Level
from wedgehog.harness.scenario.mistake import BadValuesError
from wedgehog.reports.played_cells import DECIDED, PlayedCell

LARGEST = 999_999
"""Of every number in the file; a larger one is damage."""
Number = Annotated[int | float, Field(ge=0, le=LARGEST, allow_inf_nan=False)]
Numbers = Number | list[Number] | Literal["unknown"]
"""One number, if all repeats have the same; `unknown`: it was not measured."""
TIMES = ("start_s", "turn_s", "other_turns_s")
CALLS = ("paid_calls", "recovery_calls")
COSTS = ("usd", "recovery_usd")
DIGITS: Mapping[str, int] = dict.fromkeys(CALLS, 0) | dict.fromkeys(COSTS, 6) | dict.fromkeys(TIMES, 3)
"""The measured keys of a cell, and how many decimals are written."""
NOT_IN_EACH_REPEAT = ("start_s", "recovery_calls", "recovery_usd")
"""A repeat without a request has no start, and one without a recovery message no cost of it."""


class Strict(BaseModel):
    """Unknown keys and values of another type are mistakes."""

    model_config = ConfigDict(extra="forbid", strict=True)


class BaselineCell(Strict):
    """The results of one scenario and agent."""

    result: (
        Literal["passed", "known", "failed"]
        | dict[Literal["passed", "known", "failed"], Annotated[int, Field(ge=1, le=LARGEST)]]
    )
    """One word, or the number of repeats for each."""
    repeats: Annotated[int, Field(ge=1, le=LARGEST)] = 1
    expected_fails: Annotated[int, Field(ge=0, le=LARGEST)] = 0
    """How many of the passed repeats are fails that the scenario expects; older files do not say."""
    violated: list[str] = []
    paid_calls: Numbers
    usd: Numbers
    start_s: Numbers | None = None
    """Fewer than `repeats` if some had no request. None: the file is of before it was measured."""
    turn_s: Numbers
    other_turns_s: Numbers | None = None
    """All turns but the longest, with the recovery message. None: the file is of before it was measured."""
    recovery_calls: Numbers | None = None
    """Of the recovery message alone. Fewer than `repeats` if some had none. None: the file is of before it was kept."""
    recovery_usd: Numbers | None = None
    bound_s: Number | None = None
    """The time that a turn may take. None: the file is of before it was kept, or repeats had several."""

    level: Level | None = None
    """The level of the verdicts. None: the file is of before it was kept, or repeats had several."""

    @classmethod
    def of(cls, cell: PlayedCell) -> Self:
        """The decided repeats of a played cell."""
        results = {name: cell.results[name] for name in DECIDED if cell.results.get(name)}
        return cls(
            result=next(iter(results)) if len(results) == 1 else results,  # type: ignore[arg-type]
            repeats=cell.decided,
            expected_fails=cell.expected_fails,
            violated=list(cell.violated),
            bound_s=cell.bound_s,
            level=cell.level,
            **{name: _folded(cell, name) for name in DIGITS},
        )

    def played(self, scenario: str, agent: str) -> PlayedCell:
        """The cell as it was played."""
        return PlayedCell(
            scenario,
            agent,
            dict(self._results),
            self.expected_fails,
            tuple(self.violated),
            paid_calls=self._unfolded("paid_calls"),
            usd=self._unfolded("usd"),
            turn_s=self._unfolded("turn_s"),
            other_turns_s=self._unfolded("other_turns_s"),
            recovery_calls=self._unfolded("recovery_calls"),
            recovery_usd=self._unfolded("recovery_usd"),
            start_s=self._unfolded("start_s"),
            bound_s=self.bound_s,
            level=self.level,
        )

    @property
    def _results(self) -> Mapping[str, int]:
        if isinstance(self.result, str):
            return {self.result: self.repeats}
        return {str(name): number for name, number in self.result.items()}

    def _unfolded(self, name: str) -> tuple[float, ...]:
        value: Numbers | None = getattr(self, name)
        if value is None or value == "unknown":
            return ()
        return tuple(value) if isinstance(value, list) else (float(value),) * self.repeats

    @model_validator(mode="after")
    def _fits_its_repeats(self) -> Self:
        found = [((name,), said) for name in DIGITS if (said := self._wrong_length(name))]
        number, passed = sum(self._results.values()), self._results.get("passed", 0)
        if number != self.repeats:
            says = f"'result': expected {self.repeats} in all, as 'repeats' says, found {number}"
            found.insert(0, (("result",), says))
        if self.expected_fails > passed:
            says = f"'expected_fails': expected at most {passed}, the passed repeats, found {self.expected_fails}"
            found.append((("expected_fails",), says))
        if found:
            raise BadValuesError(found)
        return self

    def _wrong_length(self, name: str) -> str:
        values = getattr(self, name)
        fewest = 1 if name in NOT_IN_EACH_REPEAT else self.repeats
        if not isinstance(values, list) or fewest <= len(values) <= self.repeats:
            return ""
        return f"'{name}': expected one number, or one for each of {self.repeats} repeats, found {len(values)}"


def _folded(cell: PlayedCell, name: str) -> Numbers:
    """One number only if every repeat has it, so that the file tells how many have one."""
    rounded = [round(value, DIGITS[name] or None) for value in getattr(cell, name)]
    if not rounded or (len(rounded) < cell.decided and name not in NOT_IN_EACH_REPEAT):
        return "unknown"
    return rounded[0] if len(rounded) == cell.decided and len(set(rounded)) == 1 else rounded
