"""A baseline: a small YAML file in the user's repository with the results of a run, to compare later runs with."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from wedgehog.reports.campaign_folder import StoredCampaign
from wedgehog.reports.differences import FALSE_ALARMS, QUANTITIES, Quantity
from wedgehog.reports.played_cells import DECIDED, Key, PlayedCell

HEAD = """\
# The results that `wedgehog run … --baseline {name}` compares with. `wedgehog baseline RUN --into {name}` writes it.
# Review a change of this file like a change of code: a worse result here is a result that the gate accepts.
"""
Number = Annotated[int | float, Field(ge=0, allow_inf_nan=False)]
Numbers = Number | list[Number]
"""One number, if all repeats have the same."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class BaselineCell(_Strict):
    """The results of one scenario and agent."""

    result: (
        Literal["passed", "known", "failed"] | dict[Literal["passed", "known", "failed"], Annotated[int, Field(ge=0)]]
    )
    """One word, or the number of repeats for each."""
    repeats: Annotated[int, Field(ge=1)] = 1
    violated: list[str] = []
    paid_calls: Numbers | None = None
    usd: Numbers | None = None
    turn_s: Numbers | None = None


class Floors(_Strict):
    """Differences below these never count."""

    paid_calls: Number | None = None
    usd: Number | None = None
    turn_s: Number | None = None


class Baseline(_Strict):
    """The file."""

    wedgehog: str = ""
    world: str = ""
    """`live` or `sim`: times of one are not compared with times of the other."""
    prices: str = ""
    """The date of the price table."""
    false_alarms: Annotated[float, Field(gt=0, lt=0.5)] = FALSE_ALARMS
    floors: Floors = Floors()
    cells: dict[str, dict[str, BaselineCell]] = {}

    @property
    def played(self) -> dict[Key, PlayedCell]:
        """The cells, by scenario and agent."""
        return {(s, a): _played(s, a, cell) for s, agents in self.cells.items() for a, cell in agents.items()}

    def quantities(self, world: str) -> tuple[Quantity, ...]:
        """What is compared with a run in `world`, with the floors of this file."""
        floors = {key: floor for key, floor in self.floors.model_dump().items() if floor is not None}
        kept = [key for key in QUANTITIES if key != "turn_s" or self.world in ("", world)]
        return tuple(replace(QUANTITIES[key], floor=floors.get(key, QUANTITIES[key].floor)) for key in kept)


def read_baseline(path: Path) -> Baseline:
    """Read a baseline. ValueError: it can't be read; one line with file, line and what is expected."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as wrong:
        raise ValueError(f"{path}: {wrong.strerror}; `wedgehog baseline RUN --into {path}` writes it") from None
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        return Baseline.model_validate(yaml.safe_load(text) or {})
    except yaml.MarkedYAMLError as wrong:
        line = wrong.problem_mark.line + 1 if wrong.problem_mark else 1
        raise ValueError(f"{path}:{line}: {wrong.problem}") from None
    except ValidationError as wrong:
        first = wrong.errors()[0]
        keys = [str(part) for part in first["loc"]]
        raise ValueError(f"{path}:{_line_of(node, keys)}: {'.'.join(keys)}: {first['msg']}") from None


def world_of(campaign: StoredCampaign) -> str:
    """`live` or `sim`; empty without a run."""
    return next((run.judgement.world for run in campaign.runs), "")


def updated(old: Baseline, campaign: StoredCampaign, cells: Mapping[Key, PlayedCell], *, prune: bool) -> Baseline:
    """The baseline with the decided cells of a run; other cells stay, unless `prune`."""
    made: dict[str, dict[str, BaselineCell]] = {} if prune else {s: dict(agents) for s, agents in old.cells.items()}
    for (scenario, agent), cell in cells.items():
        if cell.decided and not cell.undecided:
            made.setdefault(scenario, {})[agent] = _written(cell)
    facts = {key: str(campaign.facts.get(key, "")) for key in ("wedgehog", "prices")}
    return old.model_copy(update={**facts, "world": world_of(campaign), "cells": made})


def write_baseline(baseline: Baseline, path: Path) -> None:
    """Write the file: one line per scenario and agent, so that a change is easy to review."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.part")
    draft.write_text(HEAD.format(name=path.name) + "\n".join(_lines(baseline)) + "\n", encoding="utf-8")
    draft.replace(path)


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


def _line_of(node: yaml.Node | None, keys: Sequence[str]) -> int:
    """The line of the deepest of these keys that the file has."""
    line = 1
    for key in keys:
        if not isinstance(node, yaml.MappingNode):
            break
        pair = next(((k, v) for k, v in node.value if k.value == key), None)
        if pair is None:
            break
        line, node = pair[0].start_mark.line + 1, pair[1]
    return line


def _written(cell: PlayedCell) -> BaselineCell:
    results = {name: cell.results[name] for name in DECIDED if cell.results.get(name)}
    return BaselineCell(
        result=next(iter(results)) if len(results) == 1 else results,  # type: ignore[arg-type]
        repeats=cell.decided,
        violated=list(cell.violated),
        paid_calls=_folded(cell.paid_calls, 0),
        usd=_folded(cell.usd, 6),
        turn_s=_folded(cell.turn_s, 3),
    )


def _folded(values: Iterable[float], digits: int) -> Numbers | None:
    rounded = [round(value, digits) if digits else round(value) for value in values]
    return None if not rounded else rounded[0] if len(set(rounded)) == 1 else rounded


def _played(scenario: str, agent: str, cell: BaselineCell) -> PlayedCell:
    results = {cell.result: cell.repeats} if isinstance(cell.result, str) else dict(cell.result)
    return PlayedCell(
        scenario,
        agent,
        {str(name): number for name, number in results.items()},
        tuple(cell.violated),
        paid_calls=_unfolded(cell.paid_calls, cell.repeats),
        usd=_unfolded(cell.usd, cell.repeats),
        turn_s=_unfolded(cell.turn_s, cell.repeats),
    )


def _unfolded(value: Numbers | None, repeats: int) -> tuple[float, ...]:
    if value is None:
        return ()
    return tuple(value) if isinstance(value, list) else (value,) * repeats
