"""A baseline: a small YAML file in the user's repository with the results of a run, to compare later runs with."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from wedgehog.harness.record.store import draft_of
from wedgehog.harness.scenario.document import BadFileError, load
from wedgehog.harness.scenario.mistake import BadValueError, BadValuesError
from wedgehog.reports.campaign_folder import StoredCampaign
from wedgehog.reports.number_differences import FALSE_ALARMS
from wedgehog.reports.played_cells import DECIDED, Key, PlayedCell
from wedgehog.reports.quantities import QUANTITIES, Quantity

HEAD = """\
# The results that `wedgehog run … --baseline {name}` compares with. `wedgehog baseline RUN --into {name}` writes it.
# Review a change of this file like a change of code: a worse result here is a result that the gate accepts.
"""
LARGEST = 999_999
"""Of every number in the file; a larger one is damage."""
Number = Annotated[int | float, Field(ge=0, le=LARGEST, allow_inf_nan=False)]
Numbers = Number | list[Number] | Literal["unknown"]
"""One number, if all repeats have the same; `unknown`: it was not measured."""
TIMES = ("start_s", "turn_s", "other_turns_s")
DIGITS: Mapping[str, int] = {"paid_calls": 0, "usd": 6, "recovery_calls": 0, "recovery_usd": 6} | dict.fromkeys(
    TIMES, 3
)
"""The measured keys of a cell, and how many decimals are written."""
NOT_IN_EACH_REPEAT = ("start_s", "recovery_calls", "recovery_usd")
"""A repeat without a request has no start, and one without a recovery message no cost of it."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class BaselineCell(_Strict):
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

    @model_validator(mode="after")
    def _one_for_each_repeat(self) -> Self:
        found = [((name,), said) for name in DIGITS if (said := self._wrong_length(name))]
        if isinstance(self.result, dict) and sum(self.result.values()) != self.repeats:
            says = f"'result': expected {self.repeats} in all, as 'repeats' says, found {sum(self.result.values())}"
            found.insert(0, (("result",), says))
        if found:
            raise BadValuesError(found)
        return self

    def _wrong_length(self, name: str) -> str:
        values = getattr(self, name)
        fewest = 1 if name in NOT_IN_EACH_REPEAT else self.repeats
        if not isinstance(values, list) or fewest <= len(values) <= self.repeats:
            return ""
        return f"'{name}': expected one number, or one for each of {self.repeats} repeats, found {len(values)}"


class Floors(_Strict):
    """Differences below these never count."""

    paid_calls: Number | None = None
    usd: Number | None = None
    start_s: Number | None = None
    turn_s: Number | None = None
    other_turns_s: Number | None = None
    recovery_calls: Number | None = None
    recovery_usd: Number | None = None


class Baseline(_Strict):
    """The file."""

    wedgehog: str = ""
    world: Literal["live", "sim"] | None = None
    """`live` or `sim`: times of one are not compared with times of the other."""
    prices: str = ""
    """The date of the price table."""
    false_alarms: Annotated[float, Field(gt=0, lt=0.5)] = FALSE_ALARMS
    floors: Floors = Floors()
    cells: dict[str, dict[str, BaselineCell]] = {}

    @field_validator("wedgehog")
    @classmethod
    def _of_this_version(cls, wrote: str) -> str:
        if _of_another_version(wrote):
            raise BadValueError(
                f"'wedgehog': expected a baseline of this version, {version('wedgehog')}, found {wrote!r}, which may "
                "judge differently; delete this file, play again without --baseline, and write it with "
                "`wedgehog baseline RUN --into FILE`"
            )
        return wrote

    @model_validator(mode="after")
    def _names_its_world(self) -> Self:
        if self.cells and self.world is None:
            raise BadValueError("the key 'world' is missing: expected live or sim")
        return self

    @property
    def played(self) -> dict[Key, PlayedCell]:
        """The cells, by scenario and agent."""
        return {(s, a): _played(s, a, cell) for s, agents in self.cells.items() for a, cell in agents.items()}

    def quantities(self, world: str) -> tuple[Quantity, ...]:
        """What is compared with a run in `world`, with the floors of this file."""
        return quantities_between(self.world or "", world, self.floors)


def quantities_between(one: str, other: str, floors: Floors) -> tuple[Quantity, ...]:
    """What is compared between these worlds; empty: not known. Times of two worlds are not."""
    given = floors.model_dump(exclude_none=True)
    kept = [key for key in QUANTITIES if key not in TIMES or one == other or not (one and other)]
    return tuple(replace(QUANTITIES[key], floor=given.get(key, QUANTITIES[key].floor)) for key in kept)


def read_baseline(path: Path) -> Baseline:
    """Read a baseline. BadFileError: each mistake in a line, with file, line and what is expected."""
    if not path.exists():
        raise BadFileError(path, None, f"no such file; `wedgehog baseline RUN --into {path}` writes it")
    return load(path).into(Baseline)


def world_of(campaign: StoredCampaign) -> str:
    """`live` or `sim`; empty without a run."""
    return next((run.judgement.world for run in campaign.runs), "")


def _of_another_version(wrote: str) -> bool:
    return bool(wrote) and wrote.split(".")[:2] != version("wedgehog").split(".")[:2]


def updated(old: Baseline, campaign: StoredCampaign, cells: Mapping[Key, PlayedCell], *, prune: bool) -> Baseline:
    """The baseline with the decided cells of a run; other cells stay, unless `prune`.

    ValueError: another version played the run, so that no command would take the file.
    """
    if _of_another_version(wrote := str(campaign.facts.get("wedgehog", ""))):
        raise ValueError(
            f"{campaign.folder}: expected a run of this version of Wedgehog, {version('wedgehog')}, found {wrote!r}, "
            "which may judge differently; play again"
        )
    made: dict[str, dict[str, BaselineCell]] = {} if prune else {s: dict(agents) for s, agents in old.cells.items()}
    for (scenario, agent), cell in cells.items():
        if cell.decided and not cell.undecided:
            made.setdefault(scenario, {})[agent] = _written(cell)
    facts = {key: str(campaign.facts.get(key, "")) for key in ("wedgehog", "prices")}
    return old.model_copy(update={**facts, "world": world_of(campaign) or None, "cells": made})


def write_baseline(baseline: Baseline, path: Path) -> None:
    """Write the file: one line per scenario and agent, so that a change is easy to review."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with draft_of(path) as draft:
        draft.write_text(HEAD.format(name=path.name) + "\n".join(_lines(baseline)) + "\n", encoding="utf-8")


def _lines(baseline: Baseline) -> Iterator[str]:
    for key, value in baseline.model_dump(exclude={"cells"}, exclude_defaults=True, exclude_none=True).items():
        yield f"{key}: {_flow(value)}"
    yield "cells:" if baseline.cells else "cells: {}"
    for scenario, agents in sorted(baseline.cells.items()):
        yield f"  {_flow(scenario)}:"
        for agent, cell in sorted(agents.items()):
            yield f"    {_flow(agent)}: {_flow(cell.model_dump(exclude_defaults=True, exclude_none=True))}"


def _flow(value: Any) -> str:
    said: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=100_000, allow_unicode=True)
    return said.removesuffix("...\n").strip()


def _written(cell: PlayedCell) -> BaselineCell:
    results = {name: cell.results[name] for name in DECIDED if cell.results.get(name)}
    return BaselineCell(
        result=next(iter(results)) if len(results) == 1 else results,  # type: ignore[arg-type]
        repeats=cell.decided,
        expected_fails=cell.expected_fails,
        violated=list(cell.violated),
        bound_s=cell.bound_s,
        **{name: _folded(cell, name) for name in DIGITS},
    )


def _folded(cell: PlayedCell, name: str) -> Numbers:
    """One number only if every repeat has it, so that the file tells how many have one."""
    rounded = [round(value, DIGITS[name] or None) for value in getattr(cell, name)]
    if not rounded or (len(rounded) < cell.decided and name not in NOT_IN_EACH_REPEAT):
        return "unknown"
    return rounded[0] if len(rounded) == cell.decided and len(set(rounded)) == 1 else rounded


def _played(scenario: str, agent: str, cell: BaselineCell) -> PlayedCell:
    results = {cell.result: cell.repeats} if isinstance(cell.result, str) else dict(cell.result)
    return PlayedCell(
        scenario,
        agent,
        {str(name): number for name, number in results.items()},
        cell.expected_fails,
        tuple(cell.violated),
        paid_calls=_unfolded(cell.paid_calls, cell.repeats),
        usd=_unfolded(cell.usd, cell.repeats),
        start_s=_unfolded(cell.start_s, cell.repeats),
        turn_s=_unfolded(cell.turn_s, cell.repeats),
        other_turns_s=_unfolded(cell.other_turns_s, cell.repeats),
        recovery_calls=_unfolded(cell.recovery_calls, cell.repeats),
        recovery_usd=_unfolded(cell.recovery_usd, cell.repeats),
        bound_s=cell.bound_s,
    )


def _unfolded(value: Numbers | None, repeats: int) -> tuple[float, ...]:
    if value is None or value == "unknown":
        return ()
    return tuple(value) if isinstance(value, list) else (float(value),) * repeats
