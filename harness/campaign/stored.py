"""The inputs of a run, kept beside its history: enough to judge it again elsewhere, and to replay it here."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import get_args

from pydantic import TypeAdapter, ValidationError

from wedgehog.harness.agents.backend_links import passwords
from wedgehog.harness.agents.spec import AgentSpec, at_version, load_spec, variants
from wedgehog.harness.campaign.campaign_files import CampaignFiles
from wedgehog.harness.campaign.common_bound import CommonBound
from wedgehog.harness.campaign.exit_code import exit_code
from wedgehog.harness.campaign.selection import Entry, check_invariant, for_others
from wedgehog.harness.invariants.registry import known
from wedgehog.harness.record.expectation import first_mistake
from wedgehog.harness.record.files import read_object, write_whole
from wedgehog.harness.record.history import History
from wedgehog.harness.record.judgement import SECOND_RESULT, Judgement, read_judgement, write_judgement
from wedgehog.harness.record.store import RunStore, read_run, run_folders
from wedgehog.harness.record.verdict import Level, Reason
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.run.judging.judge import judge
from wedgehog.harness.scenario.document import BadFileError
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.scenario.scenario_file import load_scenario

_LEVEL: TypeAdapter[Level] = TypeAdapter(Level)
_CONTROL: TypeAdapter[ControlFacts] = TypeAdapter(ControlFacts)


def keep_inputs(
    store: RunStore,
    entry: Entry,
    control: ControlFacts,
    seed: int,
    files: CampaignFiles,
    common: CommonBound | None = None,
) -> None:
    """Write the inputs into the run's folder."""
    store.hides |= passwords(entry.agent)
    store.keep_text("scenario.yaml", files.text(entry.file.path))
    store.keep_text("agent.yaml", files.text(entry.agent.path))
    for name in entry.scenario.planted.values():
        kept = store.folder / name
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(files.read(entry.file.path.parent / name))
    inputs = {
        "agent": entry.agent.name,
        "agent_path": str(entry.agent.path),
        "scenario_path": str(entry.file.path.absolute()),
        "matrix_only": entry.matrix_only,
        "own": entry.own,
        "seed": seed,
        "level": entry.agent.level,
        "yardstick": None if common is None else asdict(common),
        "control": asdict(control),
    }
    write_whole(store.folder / "inputs.json", json.dumps(inputs, indent=1, default=sorted) + "\n")


CONTROL = "control.json"
"""What a control run showed, in its folder: a campaign that goes on does not play it again."""


def keep_control(store: RunStore, facts: ControlFacts) -> None:
    """Keep what a control run showed, if it passed."""
    if facts.passed:
        write_whole(store.folder / CONTROL, json.dumps(asdict(facts), indent=1, default=sorted) + "\n")


def kept_control(folder: Path) -> ControlFacts | None:
    """What the control run in this folder showed; None if it did not pass, or if there is none."""
    try:
        return _CONTROL.validate_json((folder / CONTROL).read_bytes())
    except (OSError, ValueError):
        return None


def judge_all(folders: Iterable[Path], level: Level | None = None) -> tuple[list[Judgement], list[str]]:
    """Redo the verdicts of stored runs; for each run that can't be read, a sentence that names it."""
    judgements, unread = [], []
    for folder in folders:
        try:
            judgements.append(judge_again(folder, level))
        except (BadFileError, OSError, ValueError) as wrong:
            unread.append(str(wrong))
    return judgements, unread


def judge_again(folder: Path, level: Level | None = None) -> Judgement:
    """Redo the verdict of a stored run from its history alone, at its own level or at another one.

    Errors: ValueError (one sentence), BadFileError.
    """
    stored = read_run(folder)
    if stored.judgement.skipped:
        return stored.judgement
    inputs = read_inputs(folder)
    control = _control(folder, inputs)
    if not control.passed:
        return stored.judgement
    scenario = load_scenario(folder / "scenario.yaml").scenario
    _check_invariants(folder, stored.judgement)
    if not inputs.get("own", True):
        scenario = for_others(scenario)
    agent = _variant(load_spec(folder / "agent.yaml"), inputs).at_level(level)
    fresh = _judged(stored.history, scenario, agent, control, inputs.get("yardstick"))
    old = stored.judgement
    fresh = replace(fresh, repeat=old.repeat, matrix_only=old.matrix_only, replay=old.replay)
    first = tuple(it for it in old.remarks if it.endswith(SECOND_RESULT))
    fresh = replace(fresh, world=old.world, virtual_s=old.virtual_s, real_s=old.real_s, remarks=fresh.remarks + first)
    write_judgement(folder, fresh)
    return fresh


def _check_invariants(folder: Path, old: Judgement) -> None:
    """ValueError if an invariant of a plugin is missing now: without it a failed run could pass."""
    lost = sorted({verdict.name for verdict in old.verdicts} - known().keys() - set(get_args(Reason)))
    if lost:
        raise ValueError(f"{folder}: judged by {', '.join(lost)}, which is no stock invariant: name its --plugin")


def _control(folder: Path, inputs: Mapping[str, object]) -> ControlFacts:
    try:
        return _CONTROL.validate_python(inputs.get("control"))
    except ValidationError as wrong:
        raise ValueError(f"{folder / 'inputs.json'}: control: {first_mistake(wrong)}") from None


def _judged(history: History, scenario: Scenario, agent: AgentSpec, control: ControlFacts, kept: object) -> Judgement:
    """Judge by the bound by which the run was played."""
    if not isinstance(kept, dict):
        return judge(history, scenario, agent, control)
    common = CommonBound(**kept)
    fresh = judge(history, common.scenario(scenario, history.run.time_scale), common.agent(agent), control)
    return common.beside(fresh, history, scenario, agent)


def read_inputs(folder: Path) -> dict[str, object]:
    """The inputs of a stored run. ValueError, in one sentence, if it is none or inputs.json is broken."""
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder; expected that of one run, as a report names it")
    if (folder / "campaign.json").is_file():
        first = next((f", such as {run}" for run in run_folders(folder)), "")
        raise ValueError(f"{folder}: a campaign's folder; expected that of one of its runs{first}")
    if not (folder / "inputs.json").is_file():
        raise ValueError(f"{folder}: no run's folder (it has no inputs.json)")
    return read_object(folder / "inputs.json")


def stored_agent(folder: Path, inputs: Mapping[str, object]) -> AgentSpec:
    """A stored run's agent: its spec file if that exists, else the copy. Errors: BadFileError, ValueError."""
    original = Path(str(inputs["agent_path"]))
    return _variant(load_spec(original if original.is_file() else folder / "agent.yaml"), inputs)


def stored_entry(folder: Path) -> tuple[Entry, int]:
    """A stored run, to be played again: the scenario's file if it exists, else the copy; and its seed.

    Errors: BadFileError, ValueError.
    """
    inputs = read_inputs(folder)
    original = Path(str(inputs["scenario_path"]))
    file = load_scenario(original if original.is_file() else folder / "scenario.yaml", check_invariant)
    return Entry(file, stored_agent(folder, inputs), bool(inputs["matrix_only"])), int(str(inputs["seed"]))


def failed_before(out: Path, level: Level | None = None) -> list[Entry]:
    """What the last campaign in the folder `out` did not pass: failures, errors and undecided runs.

    Errors: BadFileError, ValueError if there is no campaign.
    """
    latest = out / "latest"
    if not latest.is_dir():
        raise ValueError(f"--last-failed: no earlier run in {out}")
    folders = [folder for folder in run_folders(latest.resolve()) if exit_code([read_judgement(folder)])]
    found = {(it.file.scenario.name, it.agent.name): it for it in (stored_entry(folder)[0] for folder in folders)}
    return [replace(entry, agent=entry.agent.at_level(level)) for entry in found.values()]


def _variant(spec: AgentSpec, inputs: Mapping[str, object]) -> AgentSpec:
    level = _LEVEL.validate_python(inputs.get("level", spec.level))
    if spec.runtime:
        return at_version(spec, str(inputs["agent"]).partition("@")[2]).at_level(level)
    for agent in variants(spec):
        if agent.name == inputs["agent"]:
            return agent.at_level(level)
    raise ValueError(f"{spec.path}: no agent {str(inputs['agent'])!r} any more")
