"""The results of one scenario and agent as a baseline keeps them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from wedgehog.harness.record.verdict import Level
from wedgehog.harness.scenario.mistake import BadValuesError
from wedgehog.reports.played_cells import DECIDED, PlayedCell

LARGEST = 999_999
"""Of every number in the file; a larger one is damage."""
Number = Annotated[int | float, Field(ge=0, le=LARGEST, allow_inf_nan=False)]
Numbers = Number | list[Number | None] | Literal["unknown"]
"""One number, if all repeats have the same; `unknown`: it was not measured. None: a repeat does not have it."""
TIMES = ("start_s", "turn_s", "other_turns_s")
COUNTS = ("unanswered", "paid_calls", "recovery_calls")
COSTS = ("usd", "recovery_usd")
DIGITS: Mapping[str, int] = dict.fromkeys(COUNTS, 0) | dict.fromkeys(COSTS, 6) | dict.fromkeys(TIMES, 3)
"""The measured keys of a cell, and how many decimals are written."""
NOT_IN_EACH_REPEAT = ("start_s", "recovery_calls", "recovery_usd")
"""A repeat without a request has no start, and one without a recovery message no cost of it."""

FAILED = {"known", "failed"}
ADDED_LATER = ("unanswered", "start_s", "other_turns_s", "recovery_calls", "bound_s", "level")
"""Keys of a cell that older files do not have."""
ORDER = "order"
"""Older files do not say which numbers of a result that varies are of passed repeats."""


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
    always_violated: list[str] | None = None
    """What each failed repeat violates. None: none failed, or the file is of before it was kept."""
    unanswered: Numbers | None = None
    """Messages that need an answer and got none. None: the file is of before it was kept."""
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

    busy: Number | None = None
    """For which share of its turns the harness waited for a processor. None: the file is of before it was kept."""

    @classmethod
    def of(cls, cell: PlayedCell) -> Self:
        """The decided repeats of a played cell."""
        results = {name: cell.results[name] for name in DECIDED if cell.results.get(name)}
        return cls(
            result=next(iter(results)) if len(results) == 1 else results,  # type: ignore[arg-type]
            repeats=cell.decided,
            expected_fails=cell.expected_fails,
            violated=list(cell.violated),
            always_violated=_listed(cell.always_violated) if set(results) & FAILED else None,
            bound_s=cell.bound_s,
            level=cell.level,
            busy=cell.busy,
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
            self._always_violated,
            passed_with=self._passed_with,
            not_kept=tuple(self._not_kept()),
            unanswered=self._unfolded("unanswered"),
            paid_calls=self._unfolded("paid_calls"),
            usd=self._unfolded("usd"),
            turn_s=self._unfolded("turn_s"),
            other_turns_s=self._unfolded("other_turns_s"),
            recovery_calls=self._unfolded("recovery_calls"),
            recovery_usd=self._unfolded("recovery_usd"),
            start_s=self._unfolded("start_s"),
            bound_s=self.bound_s,
            level=self.level,
            busy=self.busy,
        )

    @property
    def _results(self) -> Mapping[str, int]:
        if isinstance(self.result, str):
            return {self.result: self.repeats}
        return {str(name): number for name, number in self.result.items()}

    @property
    def _always_violated(self) -> tuple[str, ...] | None:
        failed = self.repeats - self._passed
        if self.always_violated is None and failed and (failed > 1 or self.expected_fails):
            return None
        return tuple(self.violated if failed and self.always_violated is None else self.always_violated or ())

    @property
    def _passed(self) -> int:
        return self._results.get("passed", 0)

    @property
    def _varies(self) -> bool:
        return 0 < self._passed < self.repeats

    @property
    def _passed_with(self) -> Mapping[str, int]:
        lists = {name: getattr(self, name) for name in NOT_IN_EACH_REPEAT}
        whole = {name: it for name, it in lists.items() if isinstance(it, list) and len(it) == self.repeats}
        return {name: sum(value is not None for value in it[: self._passed]) for name, it in whole.items()}

    def _not_kept(self) -> Iterator[str]:
        """Which keys an older file does not have, and ORDER if it is not known of which repeats some numbers are."""
        yield from (name for name in ADDED_LATER if getattr(self, name) is None)
        if any(self._of_unknown_repeats(name) for name in DIGITS):
            yield ORDER

    def _of_unknown_repeats(self, name: str) -> bool:
        """Whether it is not known which numbers are of passed repeats: an older file has them in another order."""
        value = getattr(self, name)
        has_order = self.level is not None or self.always_violated is not None
        return self._varies and isinstance(value, list) and not (has_order and len(value) == self.repeats)

    def _unfolded(self, name: str) -> tuple[float, ...]:
        value: Numbers | None = getattr(self, name)
        if value is None or value == "unknown" or self._of_unknown_repeats(name):
            return ()
        if isinstance(value, list):
            return tuple(it for it in value if it is not None)
        return (float(value),) * self.repeats

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
        if not isinstance(values, list):
            return ""
        fewest, found = 1 if name in NOT_IN_EACH_REPEAT else self.repeats, sum(it is not None for it in values)
        if fewest <= found and len(values) <= self.repeats:
            return ""
        return f"'{name}': expected one number, or one for each of {self.repeats} repeats, found {found}"


def _folded(cell: PlayedCell, name: str) -> Numbers:
    """One number only if every repeat has it, so that the file tells how many have one.

    Of a result that varies, a missing one is null, so that the file tells which are of passed repeats.
    """
    rounded = [round(value, DIGITS[name] or None) for value in getattr(cell, name)]
    if not rounded or (len(rounded) < cell.decided and name not in NOT_IN_EACH_REPEAT):
        return "unknown"
    if len(rounded) == cell.decided:
        return rounded[0] if len(set(rounded)) == 1 else [*rounded]
    passed, failed = cell.results.get("passed", 0), cell.decided - cell.results.get("passed", 0)
    with_it = cell.passed_with.get(name)
    if not (passed and failed) or with_it is None:
        return [*rounded]
    return [*_filled(rounded[:with_it], passed), *_filled(rounded[with_it:], failed)]


def _filled(values: Sequence[float], number: int) -> list[float | None]:
    return [*values, *[None] * (number - len(values))]


def _listed(names: Iterable[str] | None) -> list[str] | None:
    return None if names is None else list(names)
