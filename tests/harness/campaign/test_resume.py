"""A campaign that was interrupted is played to its end: each run once, finished runs stay as they are."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from wedgehog.harness.agents.spec import load_spec
from wedgehog.harness.campaign.campaign import Campaign
from wedgehog.harness.campaign.options import NoProgress, Options
from wedgehog.harness.campaign.plan import take_up
from wedgehog.harness.campaign.selection import Entry
from wedgehog.harness.commands.cli import app
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.record.store import run_folders
from wedgehog.harness.scenario.scenario_file import load_scenario
from wedgehog.reports.campaign_folder import load

AGENT = """\
import aiohttp

async def answer(message, *, session_dir, llm_url, key):
    body = {"model": "claude-sonnet-4-6", "max_tokens": 99, "messages": [{"role": "user", "content": message}]}
    headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
    async with aiohttp.ClientSession() as client:
        async with client.post(f"{llm_url}/v1/messages", json=body, headers=headers) as reply:
            return (await reply.json())["content"][0]["text"]
"""
REPEATS = 4
Files = dict[Path, bytes]


def files(folder: Path) -> Path:
    """A scenario and an agent for virtual time."""
    folder.mkdir()
    turns = [{"user": "Go on.", "model": [{"text": "Done {nonce}"}]}]
    (folder / "well.yaml").write_text(yaml.safe_dump({"name": "well", "why": "w", "turns": turns}))
    (folder / "agent.py").write_text(AGENT)
    spec = {"name": "mine", "wire": "anthropic", "callable": "{here}/agent.py:answer", "recover_s": 0}
    (folder / "mine.yaml").write_text(yaml.safe_dump(spec))
    return folder


class StopsAfter(NoProgress):
    """Cancels its campaign when a number of runs has ended, as Ctrl-C does."""

    def __init__(self, runs: int) -> None:
        self.left, self.controls = runs, 0

    def ended(self, what: str, judgement: Judgement | None) -> None:
        self.left -= judgement is not None
        self.controls += what.startswith("control")
        if self.left == 0:
            task = self.playing
            asyncio.get_running_loop().call_soon(task.cancel)

    playing: "asyncio.Task[Any]"


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a campaign that was stopped after its second run of four."""
    place = files(tmp_path_factory.mktemp("resume") / "files")
    first = Entry(load_scenario(place / "well.yaml"), load_spec(place / "mine.yaml"))
    entries = [replace(first, repeat=n) for n in range(1, REPEATS + 1)]
    progress = StopsAfter(2)

    async def play() -> Path:
        options = Options(place.parent / "runs", jobs=1, seed=7, world="sim")
        campaign = Campaign(entries, options, progress, lambda line: None)
        progress.playing = asyncio.create_task(campaign.play())
        await asyncio.gather(progress.playing, return_exceptions=True)
        return campaign.store.folder

    return asyncio.run(play())


@pytest.fixture
def folder(stopped: Path, tmp_path: Path) -> Path:
    """A copy of that campaign, whose files lie where they lay."""
    return Path(shutil.copytree(stopped, tmp_path / "runs" / stopped.name))


def resumed(folder: Path) -> tuple[Campaign, StopsAfter]:
    """Play a campaign to its end."""
    found = take_up(folder)
    options, progress = Options(folder.parent, seed=found.plan.seed, world=found.plan.world), StopsAfter(-1)
    campaign = Campaign(found.entries, options, progress, lambda line: None, found)
    asyncio.run(campaign.play())
    return campaign, progress


def undecided(run: Path) -> None:
    """Make a run one that a busy machine left undecided."""
    judged = json.loads((run / "verdicts.json").read_text())
    late = {"name": "turn_deadline", "status": "inconclusive", "says": "late", "evidence": [], "overload": True}
    (run / "verdicts.json").write_text(json.dumps(judged | {"verdict": "inconclusive", "verdicts": [late]}))


def kept(folder: Path) -> Files:
    """The finished runs, byte for byte."""
    return {path: path.read_bytes() for run in run_folders(folder) for path in run.iterdir() if path.is_file()}


def test_each_run_is_there_once_and_finished_ones_are_not_played_again(folder: Path):
    """Nor is the control run. What was begun, or what a busy machine left undecided, is played from its beginning."""
    undecided(folder / "well" / "mine.2")
    before = {path: text for path, text in kept(folder).items() if path.parent.name != "mine.2"}
    begun = folder / "well" / "mine.3"
    begun.mkdir(exist_ok=True)
    (begun / "history.jsonl").write_text('{"torn')
    (begun / "left-over.txt").write_text("of the run that was stopped")
    campaign, progress = resumed(folder)
    assert [run.name for run in run_folders(folder)] == ["mine", *(f"mine.{n}" for n in range(2, REPEATS + 1))]
    assert {path: path.read_bytes() for path in before} == before
    assert progress.controls == 0 and -1 - progress.left == REPEATS - 1
    assert sorted(judged.repeat for judged in campaign.judgements) == [1, 2, 3, 4]
    assert {judged.verdict for judged in campaign.judgements} == {"pass"}
    assert not (begun / "left-over.txt").exists()
    seeds = [json.loads((run / "inputs.json").read_text())["seed"] for run in run_folders(folder)]
    assert seeds == [7, 8, 9, 10]
    assert len(json.loads((folder / "campaign.json").read_text())["resumed"]) == 1


@pytest.mark.parametrize(("name", "text"), [("verdicts.json", ""), ("history.jsonl", "{\n{}\n")])
def test_a_run_whose_files_a_crash_of_the_machine_destroyed_is_played_again(folder: Path, name: str, text: str):
    """An empty file is what a power failure leaves of one that was just written."""
    (folder / "well" / "mine" / name).write_text(text)
    assert [judged.repeat for judged in take_up(folder).finished.values()] == [2]


class Edits(NoProgress):
    """Edits the agent when a run begins; with `back_at_the_end` only for the time of that run."""

    def __init__(self, agent: Path, *, back_at_the_end: bool) -> None:
        self.agent, self.back = agent, back_at_the_end

    def begins(self, what: str) -> None:
        if not what.startswith("control"):
            self.agent.write_text(f"{AGENT}# edited")

    def ended(self, what: str, judgement: Judgement | None) -> None:
        if judgement is not None and self.back:
            self.agent.write_text(AGENT)


def played_while(progress: NoProgress, folder: Path) -> Campaign:
    """A campaign of two runs in virtual time."""
    first = Entry(load_scenario(folder / "well.yaml"), load_spec(folder / "mine.yaml"))
    options = Options(folder.parent / "runs", jobs=1, world="sim")
    campaign = Campaign([first, replace(first, repeat=2)], options, progress, lambda line: None)
    asyncio.run(campaign.play())
    return campaign


@pytest.mark.parametrize("back_at_the_end", [True, False])
def test_an_agent_that_is_edited_while_it_is_tested_is_named(back_at_the_end: bool, tmp_path: Path):
    """Once for all its runs, also if the edit is taken back at once: not all runs tested the same program."""
    place = files(tmp_path / "files")
    agent = place / "agent.py"
    campaign = played_while(Edits(agent, back_at_the_end=back_at_the_end), place)
    assert campaign.store.description()["edited"] == [str(agent)]
    says = f"{agent} was edited while the campaign played: not all runs tested the same program"
    assert load(campaign.store.folder).edited == [says]
    into = tmp_path / "baseline.yaml"
    told = CliRunner().invoke(app, ["baseline", str(campaign.store.folder), "--into", str(into)])
    assert told.exit_code == 0 and says in " ".join(told.stderr.split())


def test_a_campaign_without_an_edit_names_no_program(tmp_path: Path):
    campaign = played_while(NoProgress(), files(tmp_path / "files"))
    assert "edited" not in campaign.store.description() and load(campaign.store.folder).edited == []


# ---- mistakes


def changed_scenario(folder: Path) -> None:
    path = place_of(folder) / "well.yaml"
    path.write_text(path.read_text().replace("Go on.", "Go on, please."))


def changed_agent(folder: Path) -> None:
    path = place_of(folder) / "mine.yaml"
    path.write_text(path.read_text() + "start_s: 50\n")


def changed_program(folder: Path) -> None:
    path = place_of(folder) / "agent.py"
    path.write_text(path.read_text() + "# edited\n")


def changed_plugin(folder: Path) -> None:
    path = place_of(folder) / "own.py"
    path.write_text("# edited\n")
    plan = json.loads((folder / "plan.json").read_text())
    (folder / "plan.json").write_text(json.dumps(plan | {"plugins": {str(path): "0" * 64}}))


def lost_plugin(folder: Path) -> None:
    plan = json.loads((folder / "plan.json").read_text())
    (folder / "plan.json").write_text(json.dumps(plan | {"plugins": {"no_such_module": "0" * 64}}))


def lost_agent(folder: Path) -> None:
    (place_of(folder) / "mine.yaml").unlink()


def no_plan(folder: Path) -> None:
    (folder / "plan.json").unlink()


def torn_plan(folder: Path) -> None:
    path = folder / "plan.json"
    path.write_text(path.read_text()[:200])


def odd_plan(folder: Path) -> None:
    path = folder / "plan.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"seed": "x"}))


def other_version(folder: Path) -> None:
    path = folder / "plan.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"wedgehog": "0.0.1"}))


def torn_facts(folder: Path) -> None:
    (folder / "campaign.json").write_text("{")


def nothing(folder: Path) -> None:
    """Leave the folder as it is."""


def place_of(folder: Path) -> Path:
    """The folder of the campaign's files, which `own_files` made for this test."""
    return folder.parent.parent / "files"


@pytest.fixture
def own_files(folder: Path, stopped: Path) -> Path:
    """The campaign, with scenario and agent files of its own."""
    old, new = str(stopped.parent.parent / "files"), shutil.copytree(stopped.parent.parent / "files", place_of(folder))
    plan = folder / "plan.json"
    plan.write_text(plan.read_text().replace(old, str(new)))
    return folder


@pytest.mark.parametrize(
    ("damage", "words", "said"),
    [
        (changed_scenario, [], "well.yaml: its text has changed since the campaign began; restore it"),
        (changed_agent, [], "mine.yaml: its text has changed since the campaign began; restore it"),
        (changed_program, [], "agent.py: this program of an agent has changed since the campaign began; restore it"),
        (changed_plugin, [], "own.py: this plugin has changed since the campaign began; restore it"),
        (lost_plugin, [], "no_such_module: this plugin is not found where it was when the campaign began; restore it"),
        (lost_agent, [], "mine.yaml: no such file; the campaign was begun with it"),
        (no_plan, [], "no plan.json in it; only a campaign of `wedgehog run` can go on"),
        (torn_plan, [], "plan.json: damaged: not valid JSON"),
        (odd_plan, [], "plan.json: damaged: seed: "),
        (other_version, [], "begun by Wedgehog 0.0.1, and this is "),
        (torn_facts, [], "campaign.json:1: not valid JSON"),
        (nothing, ["--agent", "other.yaml", "--seed", "3"], "says what is played and how; leave out --agent, --seed"),
        (nothing, ["well.yaml"], "says what is played and how; leave out SCENARIOS"),
    ],
)
def test_a_campaign_that_cannot_go_on_is_one_line(
    damage: Callable[[Path], None], words: list[str], said: str, own_files: Path
):
    """And nothing in its folder is touched."""
    damage(own_files)
    before = kept(own_files)
    ran = CliRunner().invoke(app, ["run", *words, "--resume", str(own_files)])
    assert ran.exit_code == 2 and said in ran.stderr and "Traceback" not in ran.output, ran.output
    assert kept(own_files) == before


@pytest.mark.parametrize(
    ("place", "said"), [("nowhere", "no such folder"), ("well/mine", "the folder of one run; expected that of its")]
)
def test_a_folder_that_is_no_campaigns_is_one_line(folder: Path, place: str, said: str):
    ran = CliRunner().invoke(app, ["run", "--resume", str(folder / place)])
    assert ran.exit_code == 2 and said in ran.stderr, ran.output


def test_two_processes_do_not_play_into_one_folder(folder: Path):
    """The second one is refused while the first one holds it."""
    first, second = take_up(folder).store, take_up(folder).store
    with first.held(), pytest.raises(ValueError, match="another process plays this campaign now"), second.held():
        pass
    with second.held():
        pass


def test_a_run_that_another_process_finished_meanwhile_is_not_removed(folder: Path):
    """The folder was read before it was held."""
    found = take_up(folder)
    shutil.copytree(folder / "well" / "mine", folder / "well" / "mine.4")
    with pytest.raises(ValueError, match="another process has just played it"):
        found.clear(lambda line: None)
    assert (folder / "well" / "mine.4" / "verdicts.json").is_file()


# ---- the whole command


PLAYS = """
import asyncio, sys
from dataclasses import replace
from pathlib import Path
from wedgehog.harness.agents.spec import load_spec
from wedgehog.harness.campaign.campaign import Campaign
from wedgehog.harness.campaign.options import NoProgress, Options
from wedgehog.harness.campaign.selection import Entry
from wedgehog.harness.scenario.scenario_file import load_scenario

class Says(NoProgress):
    def ended(self, what, judgement):
        print(what, flush=True)

first = Entry(load_scenario(Path("well.yaml")), load_spec(Path("mine.yaml")))
entries = [replace(first, repeat=n) for n in range(1, 41)]
asyncio.run(Campaign(entries, Options(Path("runs"), jobs=1, world="sim"), Says(), lambda line: None).play())
"""


def test_a_harness_that_is_killed_is_taken_up_where_it_was(tmp_path: Path):
    """`kill -9` in mid campaign; the report of the second command holds each run once."""
    place = files(tmp_path / "files")
    head = subprocess.Popen([sys.executable, "-c", PLAYS], cwd=place, stdout=subprocess.PIPE, text=True)
    assert head.stdout is not None
    seen = [line.strip() for line, _ in zip(head.stdout, range(3), strict=False)]
    os.kill(head.pid, signal.SIGKILL)
    head.communicate()
    assert seen == ["control x mine", "well x mine", "well x mine"]
    ran = CliRunner().invoke(app, ["run", "--resume", str(place / "runs" / "latest"), "--jobs", "3", "--json"])
    assert ran.exit_code == 0, ran.output
    assert "of 40 runs are finished" in ran.stderr and "control x mine" not in ran.stderr
    rows = json.loads(ran.stdout)
    assert sorted(row["repeat"] for row in rows) == list(range(1, 41))
    assert {row["verdict"] for row in rows} == {"pass"}
