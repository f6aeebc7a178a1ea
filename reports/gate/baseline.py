"""A baseline: a small YAML file in the user's repository with the results of a run, to compare later runs with."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, field_validator, model_validator

from wedgehog.harness.record.files import draft_of
from wedgehog.harness.scenario.document import BadFileError, load
from wedgehog.harness.scenario.mistake import BadValueError
from wedgehog.reports.campaign_folder import StoredCampaign
from wedgehog.reports.gate.baseline_cell import TIMES, BaselineCell, Number, Strict
from wedgehog.reports.gate.number_differences import FALSE_ALARMS
from wedgehog.reports.gate.quantities import QUANTITIES, Quantity
from wedgehog.reports.played_cells import Key, PlayedCell, skipped_of

HEAD = """\
# The results that `wedgehog run … --baseline {name}` compares with. `wedgehog baseline RUN --into {name}` writes it.
# Review a change of this file like a change of code: a worse result here is a result that the gate accepts.
"""


class Floors(Strict):
    """Differences below these never count."""

    unanswered: Number | None = None
    paid_calls: Number | None = None
    usd: Number | None = None
    start_s: Number | None = None
    turn_s: Number | None = None
    other_turns_s: Number | None = None
    recovery_calls: Number | None = None
    recovery_usd: Number | None = None


class Baseline(Strict):
    """The file."""

    wedgehog: str = ""
    world: Literal["live", "sim"] | None = None
    """`live` or `sim`: times of one are not compared with times of the other."""
    prices: str = ""
    """The date of the price table."""
    false_alarms: Annotated[float, Field(gt=0, lt=0.5)] = FALSE_ALARMS
    floors: Floors = Floors()
    cells: dict[str, dict[str, BaselineCell]] = Field(default_factory=dict)

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
    def by_key(self) -> dict[Key, BaselineCell]:
        """The cells, by scenario and agent."""
        return {(s, a): cell for s, agents in self.cells.items() for a, cell in agents.items()}

    @property
    def played(self) -> dict[Key, PlayedCell]:
        """The cells as they were played."""
        return {key: cell.played(*key) for key, cell in self.by_key.items()}

    def compares_times(self, world: str) -> bool:
        """Whether times of a run in `world` (empty: not known) can be compared: virtual and real ones can't."""
        return not (self.world and world) or self.world == world

    def quantities(self, world: str) -> tuple[Quantity, ...]:
        """What is compared with a run in `world` (empty: not known), with the floors of this file."""
        given = self.floors.model_dump(exclude_none=True)
        kept = [key for key in QUANTITIES if self.compares_times(world) or key not in TIMES]
        return tuple(replace(QUANTITIES[key], floor=given.get(key, QUANTITIES[key].floor)) for key in kept)


def read_baseline(path: Path) -> Baseline:
    """Read a baseline. BadFileError: each mistake in a line, with file, line and what is expected."""
    if not path.exists():
        raise BadFileError(path, None, f"no such file; `wedgehog baseline RUN --into {path}` writes it")
    return load(path).into(Baseline)


def world_of(campaign: StoredCampaign) -> str:
    """`live` or `sim`; empty without a run."""
    return next((run.judgement.world for run in campaign.runs), "")


def settings_of(campaign: StoredCampaign) -> Baseline:
    """A baseline without results: in which world a campaign was played, and the date of its prices."""
    return Baseline.model_validate(
        {"world": world_of(campaign) or None, "prices": str(campaign.description.get("prices", ""))}
    )


def _of_another_version(wrote: str) -> bool:
    return bool(wrote) and wrote.split(".")[:2] != version("wedgehog").split(".")[:2]


def updated(old: Baseline, campaign: StoredCampaign, cells: Mapping[Key, PlayedCell], *, prune: bool) -> Baseline:
    """The baseline with the decided cells of a run; other cells stay, unless `prune`, or if the run skipped them.

    ValueError: another version played the run, so that no command would take the file; or the cells that stay were
    played in another world.
    """
    if _of_another_version(wrote := str(campaign.description.get("wedgehog", ""))):
        raise ValueError(
            f"{campaign.folder}: expected a run of this version of Wedgehog, {version('wedgehog')}, found {wrote!r}, "
            "which may judge differently; play again"
        )
    written = {key: BaselineCell.of(cell) for key, cell in cells.items() if cell.decided and not cell.undecided}
    dropped = old.by_key.keys() if prune else written.keys() | skipped_of(campaign).keys()
    kept = {key: cell for key, cell in old.by_key.items() if key not in dropped}
    world = world_of(campaign)
    if kept and world and old.world and world != old.world:
        raise ValueError(
            f"{campaign.folder}: played in the world {world}, and other results of the baseline in {old.world}; "
            "with --prune only the results of this run are kept"
        )
    facts = {key: str(campaign.description.get(key, "")) for key in ("wedgehog", "prices")}
    return old.model_copy(update={**facts, "world": world or None, "cells": _by_scenario(kept | written)})


def _by_scenario(cells: Mapping[Key, BaselineCell]) -> dict[str, dict[str, BaselineCell]]:
    found: dict[str, dict[str, BaselineCell]] = {}
    for (scenario, agent), cell in cells.items():
        found.setdefault(scenario, {})[agent] = cell
    return found


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
