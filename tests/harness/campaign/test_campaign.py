"""Campaigns: exit codes, what is kept of a run, and a verdict that can be redone from it."""

import asyncio
import contextlib
import json
import shutil
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from wedgehog.fake_llm.script.main_call import MainShape
from wedgehog.harness.agents.missing import ProgramError
from wedgehog.harness.agents.spec import load_spec
from wedgehog.harness.campaign.campaign import Campaign
from wedgehog.harness.campaign.exit_code import exit_code
from wedgehog.harness.campaign.options import Options
from wedgehog.harness.campaign.plan import take_up
from wedgehog.harness.campaign.selection import Entry
from wedgehog.harness.campaign.stored import judge_again, read_inputs, stored_agent
from wedgehog.harness.network.relay import EmbeddedNetwork
from wedgehog.harness.record.events.turn import DeadlineHit
from wedgehog.harness.record.judgement import Judgement, never_played, write_judgement
from wedgehog.harness.record.store import read_run, run_folders
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.run import skip_reasons
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.run.playable_part import FIRST_TURN_ONLY
from wedgehog.harness.scenario.scenario_file import load_scenario
from wedgehog.reports.facts import facts_of, keep_facts, kept_facts

WELL = {
    "name": "well",
    "why": "w",
    "turns": [{"user": "Go on.", "model": [{"text": "Done {nonce}"}]}],
}
PLAIN_HTTP = Path(__file__).parents[2] / "live" / "plain_http.py"
AGENT = """\
import json, os, sys
from plain_http import post
body = {"model": "m", "max_tokens": 999, "messages": [{"role": "user", "content": sys.argv[2]}]}
headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
try:
    print(json.loads(post(sys.argv[1] + "/v1/messages", body, headers, timeout_s=20).read())["content"][0]["text"])
except OSError as wrong:
    sys.exit(f"Error: {wrong}")
"""


# ---- the exit code


def one(verdict: Any, as_expected: bool | None = None, **more: Any) -> Judgement:
    return Judgement("s", "a", "embedded", verdict, as_expected=as_expected, **more)


@pytest.mark.parametrize(
    ("judgement", "code"),
    [
        (one("pass"), 0),
        (one("nothing"), 0),
        (one("fail"), 1),
        (one("inconclusive"), 3),
        (one("error"), 3),
        (one("pass", True), 0),
        (one("fail", True), 0),
        (one("inconclusive", True), 0),
        (one("error", True), 0),
        (one("pass", False), 1),
        (one("fail", False), 1),
        (one("inconclusive", False), 3),
        (one("error", False), 3),
        (one("fail", known="issue 7"), 0),
        (one("fail", False, known="issue 7"), 0),
        (one("pass", known="issue 7"), 0),
        (one("error", known="issue 7"), 3),
        (one("inconclusive", known="issue 7"), 3),
        (one("fail", matrix_only=True), 0),
        (one("error", matrix_only=True), 0),
        (one("nothing", skipped="no tool"), 0),
    ],
)
def test_one_run_decides_the_exit_code(judgement: Judgement, code: int):
    """Expected counts as passed; known failures, matrix cells and skipped runs count as nothing; errors never pass."""
    assert exit_code([judgement]) == code


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ([], 0),
        (["pass", "fail"], 1),
        (["pass", "error"], 3),
        (["inconclusive", "fail", "error"], 1),
        (["pass", "inconclusive"], 3),
    ],
)
def test_of_several_runs_a_failure_weighs_most(verdicts: list[Any], code: int):
    """Then what could not be told."""
    assert exit_code([one(verdict) for verdict in verdicts]) == code


def test_a_known_failure_excuses_no_other_run_that_looks_the_same():
    """Only runs that carry the reason are left out."""
    assert exit_code([one("fail", known="issue 7"), one("fail")]) == 1


def test_an_agent_whose_runs_were_all_skipped_is_named():
    """Nothing was judged, and that is no pass; a specimen whose scenarios expect a verdict is excused."""
    skipped = one("nothing", skipped="no certificates")
    part = [skipped, one("pass")]
    expected = replace(skipped, expected="pass")
    assert never_played([skipped, skipped]) == {skipped.agent: "no certificates"}
    assert never_played(part) == never_played([expected]) == never_played([]) == {}
    assert list(never_played([*part, replace(skipped, agent="other")])) == ["other"]


# ---- what is kept, on a small campaign of real runs


class Quiet:
    """A progress that remembers."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def begins(self, what: str) -> None:
        self.lines.append(("begins", what))

    def ended(self, what: str, judgement: Judgement | None) -> None:
        self.lines.append(("ended", what))


@pytest.fixture
def entry(tmp_path: Path) -> Any:
    """Writes a scenario and an agent, and puts them together."""

    def make(agent: dict[str, Any] | None = None, code: str = AGENT, **scenario: Any) -> Entry:
        story = {**WELL, **scenario}
        path = tmp_path / f"{story['name']}.yaml"
        path.write_text(yaml.safe_dump(story))
        (tmp_path / "agent.py").write_text(code)
        shutil.copy(PLAIN_HTTP, tmp_path)
        spec = tmp_path / "agent.yaml"
        command = ["{python}", "-S", "-E", "{here}/agent.py", "{llm_url}", "{message}"]
        spec.write_text(yaml.safe_dump({"name": "mine", "wire": "anthropic", "command": command, **(agent or {})}))
        return Entry(load_scenario(path), load_spec(spec))

    return make


async def played(out: Path, *entries: Entry, **options: Any) -> tuple[Campaign, Quiet]:
    """Play a campaign on the embedded network."""
    progress = Quiet()
    campaign = Campaign(entries, Options(out, "embedded", **options), progress, lambda line: None)
    await campaign.play()
    return campaign, progress


async def test_what_an_agent_lacks_ends_a_campaign_before_a_network_is_fetched_for_it(
    entry: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Also where another agent could be played: its hours would be in vain if the comparison lacks one."""

    @contextlib.asynccontextmanager
    async def choose(*_: Any, **__: Any) -> AsyncIterator[EmbeddedNetwork]:
        raise AssertionError("a network was opened")
        yield

    monkeypatch.setattr("wedgehog.harness.campaign.world.choose_network", choose)
    gone = entry({"name": "gone", "command": ["no-such-program", "{message}"]})
    monkeypatch.setenv("PATH", "/usr/bin")
    campaign = Campaign((entry(), gone), Options(tmp_path / "runs", "toxiproxy"), Quiet(), lambda line: None)
    with pytest.raises(ProgramError) as wrong:
        await campaign.play()
    assert str(wrong.value) == f"{gone.agent.path}:1: command: there is no program 'no-such-program' in /usr/bin"


async def test_a_campaign_plays_each_agents_control_once_and_keeps_every_run(entry: Any, tmp_path: Path):
    """Two repeats, one control; each run's folder holds what is needed to judge it again and to replay it."""
    first = entry(expect={"mine": "pass"})
    campaign, progress = await played(tmp_path / "runs", first, replace(first, repeat=2), jobs=2, seed=5)
    assert [j.verdict for j in campaign.judgements] == ["pass", "pass"], campaign.judgements
    assert [what for word, what in progress.lines if word == "begins"].count("control x mine") == 1
    folders = list(run_folders(campaign.store.folder))
    assert [folder.name for folder in folders] == ["mine", "mine.2"]
    assert [read_inputs(folder)["seed"] for folder in folders] == [5, 6]
    kept = {path.name for path in folders[0].iterdir()}
    assert {"scenario.yaml", "agent.yaml", "inputs.json", "history.jsonl", "verdicts.json"} <= kept
    facts = json.loads((campaign.store.folder / "campaign.json").read_text())
    assert (facts["network"], facts["seed"]) == ("embedded", 5)
    assert (facts["whys"], facts["tags"]) == ({"well": "w"}, {"well": []})
    assert campaign.judgements[0].replay.endswith(str(folders[0])) or campaign.judgements[0].replay.endswith(
        str(folders[1])
    )


async def test_processors_that_do_not_suffice_are_told_once(
    entry: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """By what the control runs waited for them."""
    monkeypatch.setattr(
        "wedgehog.harness.campaign.busy_machine.busy", lambda history: "of 2.0 s it waited 1.0 s for a processor"
    )
    entries, said = [entry(agent={"name": name}) for name in ("one", "two")], list[str]()
    campaign = Campaign(entries, Options(tmp_path / "runs", "embedded", jobs=3), Quiet(), said.append)
    await campaign.play()
    (line,) = (line for line in said if line.startswith("busy machine: control x "))
    assert "of 2.0 s it waited 1.0 s" in line and "--jobs 3" in line and line.endswith("try fewer --jobs")
    by_itself = Options(tmp_path / "more", "embedded", jobs=2, most_jobs=6)
    await Campaign(entries, by_itself, Quiet(), said.append).play()
    assert "up to 6 runs at once" in said[-1] and said[-1].endswith("try --jobs 1")


def test_there_is_a_run_for_each_processor_unless_somebody_says_so(monkeypatch: pytest.MonkeyPatch):
    """Many of them would keep the harness itself busy."""
    for processors, jobs in ((1, 1), (2, 2), (64, 6)):
        monkeypatch.setattr("wedgehog.harness.campaign.options.processors", lambda processors=processors: processors)
        assert Options(Path()).jobs == jobs


@pytest.mark.parametrize("second", ["pass", "inconclusive"])
async def test_a_run_that_a_busy_machine_left_undecided_is_played_once_more(
    second: str, entry: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Alone, when the others are done; the second result counts, whatever it is."""
    undecided = Verdict("inconclusive", "late, but the agent waited 2.0 s for a processor", overload=True)
    results = {"well": ["inconclusive", second], "other": ["pass"]}

    def judged(history: Any, scenario: Any, *more: Any) -> Judgement:
        status = results[scenario.name].pop(0)
        verdicts = (undecided,) if status == "inconclusive" else ()
        return Judgement(scenario.name, "mine", "embedded", status, verdicts=verdicts)

    monkeypatch.setattr("wedgehog.harness.campaign.campaign.judge", judged)
    campaign, progress = await played(tmp_path / "runs", entry(), entry(name="other"))
    begun = [what for word, what in progress.lines if word == "begins" and not what.startswith("control")]
    assert sorted(begun[:2]) == ["other x mine", "well x mine"] and begun[2:] == ["well x mine"]
    assert sorted((it.scenario, it.verdict) for it in campaign.judgements) == [("other", "pass"), ("well", second)]
    assert len(list(run_folders(campaign.store.folder))) == 2


@pytest.mark.parametrize(
    ("lacked", "second", "remark"),
    [
        (True, "pass", "on a busy machine it first violated turn_answered; this is its second result, played alone"),
        (True, "error", "on a busy machine it first violated turn_answered; this is its second result, played alone"),
        (True, "fail", ""),
        (False, "", ""),
    ],
)
async def test_a_run_that_failed_on_a_busy_machine_is_played_once_more(
    lacked: bool, second: str, remark: str, entry: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Alone; the second result counts, and names the first one if that was another."""
    results = {"well": ["fail", second], "other": ["pass"]}

    def judged(history: Any, scenario: Any, *more: Any) -> Judgement:
        status: Any = results[scenario.name].pop(0)
        violated = ("turn_answered",) if status == "fail" else ()
        return Judgement(
            scenario.name, "mine", "embedded", status, violated=violated, lacked_processors=lacked and bool(second)
        )

    monkeypatch.setattr("wedgehog.harness.campaign.campaign.judge", judged)
    campaign, progress = await played(tmp_path / "runs", entry(), entry(name="other"))
    begun = [what for word, what in progress.lines if word == "begins" and not what.startswith("control")]
    assert begun[2:] == (["well x mine"] if second else [])
    (well,) = (it for it in campaign.judgements if it.scenario == "well")
    assert (well.verdict, well.remarks) == (second or "fail", (remark,) if remark else ())
    assert next(it for it in campaign.judgements if it.scenario == "other").verdict == "pass"


async def test_a_run_that_passed_on_a_busy_machine_where_a_failure_is_expected_is_named_too(
    entry: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Neither result violates anything; only the verdicts differ. The remark is kept when it is judged again."""
    results: list[Any] = ["pass", "inconclusive"]

    def judged(*given: Any) -> Judgement:
        status = results.pop(0)
        first = status == "pass"
        return Judgement("well", "mine", "embedded", status, as_expected=not first, lacked_processors=first)

    monkeypatch.setattr("wedgehog.harness.campaign.campaign.judge", judged)
    campaign, _ = await played(tmp_path / "runs", entry())
    (well,) = campaign.judgements
    assert well.remarks == ("on a busy machine it first passed; this is its second result, played alone",)
    (folder,) = run_folders(campaign.store.folder)
    assert judge_again(folder).remarks[-1:] == well.remarks


class StopsTheSecond(Quiet):
    """Cancels its campaign when a run begins that was played before, as Ctrl-C does."""

    playing: "asyncio.Task[Any]"

    def begins(self, what: str) -> None:
        if ("begins", what) in self.lines:
            asyncio.get_running_loop().call_soon(self.playing.cancel)
        super().begins(what)


async def test_a_first_result_stays_if_the_second_play_is_stopped(
    entry: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It was finished; the reports and `--resume` find it."""
    first = Judgement("well", "mine", "embedded", "fail", violated=("turn_answered",), lacked_processors=True)
    monkeypatch.setattr("wedgehog.harness.campaign.campaign.judge", lambda *given: first)
    progress = StopsTheSecond()
    campaign = Campaign([entry()], Options(tmp_path / "runs", "embedded"), progress, lambda line: None)
    progress.playing = asyncio.create_task(campaign.play())
    with pytest.raises(asyncio.CancelledError):
        await progress.playing
    assert [it.violated for it in campaign.judgements] == [first.violated]
    (folder,) = run_folders(campaign.store.folder)
    assert read_run(folder).judgement.violated == first.violated
    assert folder == campaign.store.run_folder("well", "mine") and len(list(folder.parent.iterdir())) == 1
    assert len(take_up(campaign.store.folder).finished) == 1


async def test_many_runs_that_failed_on_a_busy_machine_are_not_played_again(
    entry: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The agent fails for reasons of its own. The line says what would help."""

    def judged(history: Any, scenario: Any, *more: Any) -> Judgement:
        return Judgement(scenario.name, "mine", "embedded", "fail", violated=("w",), lacked_processors=True)

    monkeypatch.setattr("wedgehog.harness.campaign.campaign.judge", judged)
    said = list[str]()
    options = Options(tmp_path / "runs", "embedded", jobs=2, most_doubted=1)
    progress = Quiet()
    await Campaign([entry(), entry(name="other")], options, progress, said.append).play()
    begun = [what for word, what in progress.lines if word == "begins" and not what.startswith("control")]
    assert len(begun) == 2
    assert "2 runs failed on a busy machine: too many to play again; try fewer --jobs" in said


async def test_the_first_failure_is_one_that_a_busy_machine_does_not_explain(
    entry: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """With `--fail-fast` too, a doubtful failure is played again at the end."""
    results: list[Any] = ["fail", "pass", "pass"]

    def judged(history: Any, scenario: Any, *more: Any) -> Judgement:
        status = results.pop(0)
        return Judgement(scenario.name, "mine", "embedded", status, lacked_processors=status == "fail")

    monkeypatch.setattr("wedgehog.harness.campaign.campaign.judge", judged)
    options = Options(tmp_path / "runs", "embedded", jobs=1, fail_fast=True)
    campaign = Campaign([entry(), entry(name="other")], options, Quiet(), lambda line: None)
    assert [it.verdict for it in await campaign.play()] == ["pass", "pass"] and not results


async def test_with_fail_fast_many_failures_on_a_busy_machine_end_a_campaign(
    entry: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """So many are not played again: the agent fails for reasons of its own."""
    failed = Judgement("well", "mine", "embedded", "fail", lacked_processors=True)
    monkeypatch.setattr("wedgehog.harness.campaign.campaign.judge", lambda *given: failed)
    options = Options(tmp_path / "runs", "embedded", jobs=1, fail_fast=True, most_doubted=1)
    entries = [entry(name=name) for name in ("well", "other", "third")]
    assert len(await Campaign(entries, options, Quiet(), lambda line: None).play()) == 2


async def test_a_slow_scenario_begins_first(entry: Any, tmp_path: Path):
    """Whatever its place in the list: alone at the end it would cost its whole length."""
    entries = [entry(), entry(name="long", tags=["slow"])]
    _, progress = await played(tmp_path / "runs", *entries, jobs=1)
    begun = [what for word, what in progress.lines if word == "begins"]
    assert begun.index("long x mine") < begun.index("well x mine")


async def test_a_stored_run_is_judged_again_to_the_same_verdict_also_where_its_files_are_gone(
    entry: Any, tmp_path: Path
):
    """The kept copies are enough."""
    given = entry(expect={"mine": "pass"}, invariants={"turn_answered": {}})
    campaign, _ = await played(tmp_path / "runs", given)
    (folder,) = run_folders(campaign.store.folder)
    before = read_run(folder).judgement
    for name in ("well.yaml", "agent.yaml", "agent.py", "plain_http.py"):
        (tmp_path / name).unlink()
    elsewhere = folder.rename(tmp_path / "elsewhere")
    again = judge_again(elsewhere)
    assert again == before == read_run(elsewhere).judgement
    assert again.verdict == "pass"


async def test_a_stored_run_is_judged_by_the_spec_that_it_was_played_with(entry: Any, tmp_path: Path):
    """The user's file has been edited since: another limit, another name, no YAML at all."""
    campaign, _ = await played(tmp_path / "runs", entry(agent={"limits": {"calls_per_turn": 5}}))
    (folder,) = run_folders(campaign.store.folder)
    before = read_run(folder).judgement
    assert before.verdict == "pass"
    spec = tmp_path / "agent.yaml"
    words = yaml.safe_load(spec.read_text())
    for edited in ({**words, "limits": {"calls_per_turn": 0}}, {**words, "name": "other"}, "no spec"):
        spec.write_text(yaml.safe_dump(edited))
        assert judge_again(folder) == before
    (folder / "agent.yaml").write_text(yaml.safe_dump({**words, "limits": {"calls_per_turn": 0}}))
    assert judge_again(folder).violated == ("paid_call_bound",), "the kept one does decide"


async def test_a_run_is_not_judged_again_without_the_plugin_that_failed_it(entry: Any, tmp_path: Path):
    """Its invariant would be missing, and the failed run would pass."""
    campaign, _ = await played(tmp_path / "runs", entry())
    (folder,) = run_folders(campaign.store.folder)
    before = read_run(folder).judgement
    own = Verdict(status="fail", name="one_answer_per_turn", says="turn 1 was answered 2 times, 1 allowed")
    failed = replace(before, verdict="fail", violated=(own.name,), verdicts=(*before.verdicts, own))
    write_judgement(folder, failed)
    with pytest.raises(ValueError, match="judged by one_answer_per_turn, which is no stock invariant: name its"):
        judge_again(folder)
    assert read_run(folder).judgement == failed


async def test_a_run_that_counts_for_nothing_is_judged_again(entry: Any, tmp_path: Path):
    """Its reason is no invariant, and none of a plugin that would be missing."""
    campaign, _ = await played(tmp_path / "runs", entry(faults=[{"at": {"byte": 10**6}, "do": "cut"}]))
    (folder,) = run_folders(campaign.store.folder)
    (before,) = campaign.judgements
    assert [it.name for it in before.verdicts if it.status == "inconclusive"] == ["faults"]
    assert judge_again(folder).verdicts == before.verdicts


async def test_what_an_incident_expects_of_its_own_agent_is_not_expected_of_a_namesake(entry: Any, tmp_path: Path):
    """Neither when it is played nor when it is judged again."""
    given = entry(agent={"name": "buggy"}, expect={"buggy": {"fail": ["turn_answered"]}})
    (tmp_path / "incident" / "agents").mkdir(parents=True)
    story = given.file.path.rename(tmp_path / "incident" / "well.yaml")
    campaign, _ = await played(tmp_path / "runs", replace(given, file=load_scenario(story)))
    (judgement,) = campaign.judgements
    assert (judgement.verdict, judgement.expected, judgement.as_expected) == ("pass", "", None)
    assert exit_code([judgement]) == 0
    (folder,) = run_folders(campaign.store.folder)
    assert judge_again(folder) == judgement


async def test_a_campaign_folds_from_the_facts_of_its_runs_as_from_their_histories(entry: Any, tmp_path: Path):
    """Facts are kept when a run has been judged; the numbers and calls are equal field by field."""
    options = Options(tmp_path / "runs", "embedded")
    campaign = Campaign([entry()], options, Quiet(), lambda line: None, stored=keep_facts)
    await campaign.play()
    (folder,) = run_folders(campaign.store.folder)
    kept = kept_facts(folder)
    assert kept is not None and kept.numbers.columns["paid_calls"] == 1 and len(kept.calls) == 2
    assert kept == facts_of(read_run(folder).history)


async def test_an_answer_before_a_line_of_ten_megabytes_is_an_answer(entry: Any, tmp_path: Path):
    """A program's noise after its answer does not turn the verdict."""
    code = AGENT.replace("except OSError", '    print("x" * 10_000_000)\nexcept OSError')
    campaign, _ = await played(tmp_path / "runs", entry(code=code, invariants={"turn_answered": {}}))
    (judgement,) = campaign.judgements
    assert (judgement.verdict, judgement.violated) == ("pass", ())


async def test_a_run_of_a_search_ends_once_its_paid_calls_surely_break_the_bound(entry: Any, tmp_path: Path):
    """An agent that asks for ever is stopped long before its time is over, and violates the same bound."""
    code = AGENT.replace("    print(json", "    while True:\n        print(json")
    code = code.replace('["text"])\n', '["text"])\n        if "Go on." not in sys.argv[2]: break\n')
    given = entry(agent={"limits": {"turn_s": 8}, "recover_s": 0}, code=code)
    campaign, _ = await played(tmp_path / "runs", given, until_certain=True)
    (judgement,) = campaign.judgements
    assert "paid_call_bound" in judgement.violated and "turn_deadline" not in judgement.violated
    (folder,) = run_folders(campaign.store.folder)
    hits = list(read_run(folder).history.of(DeadlineHit))
    assert hits and all(hit.too_many.endswith("paid calls of one step") for hit in hits)


async def test_a_verdict_follows_its_history(entry: Any, tmp_path: Path):
    """A run whose record says that it was not answered is red when judged again."""
    given = entry(invariants={"turn_answered": {}})
    campaign, _ = await played(tmp_path / "runs", given)
    (folder,) = run_folders(campaign.store.folder)
    path = folder / "history.jsonl"
    path.write_text(path.read_text().replace('"answer": "Done', '"answer": "Error: 500 Done').replace("Done ", "Dune "))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line["event"] == "turn_ended" and line["turn"] == 1:
            line.update(answer="", stdout="", stderr="Error: boom", error="Error: boom", exit_code=1)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    again = judge_again(folder)
    assert (again.verdict, again.violated) == ("fail", ("turn_answered",))
    assert read_run(folder).judgement == again


@pytest.mark.parametrize("size", [0, 1500, -60])
async def test_a_record_that_was_torn_off_passes_nothing(entry: Any, tmp_path: Path, size: int):
    """Not even an empty one, and not where only its last line is gone."""
    campaign, _ = await played(tmp_path / "runs", entry())
    (folder,) = run_folders(campaign.store.folder)
    path = folder / "history.jsonl"
    path.write_bytes(path.read_bytes()[:size])
    again = judge_again(folder)
    assert (again.verdict, again.says) == ("inconclusive", "the record ends before the run does")
    assert exit_code([again]) == 3


async def test_a_scenario_that_is_edited_while_it_plays_is_kept_as_it_was(entry: Any, tmp_path: Path):
    """The run is judged again and replayed by what was played, and the campaign goes on with the first text."""
    given = entry()
    path, text = given.file.path, given.file.path.read_text()
    campaign = Campaign((given,), Options(tmp_path / "runs", "embedded"), Quiet(), lambda line: None)
    path.write_text("name: other")
    await campaign.play()
    (folder,) = run_folders(campaign.store.folder)
    assert (folder / "scenario.yaml").read_text() == text
    path.write_text(text)
    assert len(take_up(campaign.store.folder).finished) == 1


async def test_a_failed_control_is_an_error_with_its_reason_and_is_not_judged_again(entry: Any, tmp_path: Path):
    """The agent's own words are in it."""
    given = entry(code="import sys; sys.exit('cannot find my hat')", expect={"mine": "pass"})
    campaign, _ = await played(tmp_path / "runs", given)
    (judgement,) = campaign.judgements
    assert (judgement.verdict, judgement.as_expected, exit_code([judgement])) == ("error", False, 3)
    said = "its control run failed: it said 'cannot find my hat': no request for the model arrived"
    assert judgement.says.startswith(said)
    (folder,) = run_folders(campaign.store.folder)
    assert judge_again(folder) == judgement


async def test_a_scenario_that_does_not_apply_is_skipped_with_its_reason(entry: Any, tmp_path: Path):
    """It counts as nothing, whatever was expected."""
    model = [{"tool": "shell", "args": {"command": "ls"}}, {"text": "Done {nonce}"}]
    given = entry(turns=[{"user": "x", "model": model}], expect={"mine": "pass"})
    campaign, _ = await played(tmp_path / "runs", given)
    (judgement,) = campaign.judgements
    assert judgement.skipped == "the agent advertises no tool shell"
    assert (judgement.verdict, judgement.as_expected, exit_code([judgement])) == ("nothing", None, 0)
    (folder,) = run_folders(campaign.store.folder)
    assert judge_again(folder) == judgement


@pytest.mark.parametrize(("answers", "verdict"), [("return message", "nothing"), ("raise OSError", "error")])
async def test_what_is_not_played_is_of_the_campaigns_world(entry: Any, tmp_path: Path, answers: str, verdict: str):
    """The gate takes the world from the first run of a campaign, and compares no times of two worlds."""
    (tmp_path / "function.py").write_text(f"async def answer(message):\n    {answers}\n")
    spec = tmp_path / "function.yaml"
    spec.write_text("{name: mine, wire: anthropic, callable: 'function.py:answer'}")
    kill = {"link": "agent", "at": {"turn": 1, "step": 1}, "do": "kill"}
    given = entry(faults=[kill] if verdict == "nothing" else [])
    campaign, _ = await played(tmp_path / "runs", replace(given, agent=load_spec(spec)), world="sim")
    (judgement,) = campaign.judgements
    assert (judgement.verdict, judgement.world) == (verdict, "sim"), judgement.says


async def test_without_a_session_the_first_turn_is_played_and_judged(entry: Any, tmp_path: Path):
    """An agent that keeps nothing between messages is not skipped for a scenario whose faults are in the first."""
    given = entry(turns=[*WELL["turns"], *WELL["turns"]], faults=[{"do": {"status": 503}}])
    campaign, _ = await played(tmp_path / "runs", given)
    (judgement,) = campaign.judgements
    assert (judgement.skipped, judgement.verdict) == ("", "pass")
    assert FIRST_TURN_ONLY in judgement.remarks


async def test_a_scenario_about_a_session_alone_is_skipped_without_one(entry: Any, tmp_path: Path):
    """Its first turn says nothing of what it is about."""
    campaign, _ = await played(tmp_path / "runs", entry(tags=["session"], turns=[*WELL["turns"], *WELL["turns"]]))
    assert [it.skipped for it in campaign.judgements] == ["the agent does not continue a session"]


async def test_an_agent_that_cannot_be_run_on_this_system_is_skipped_and_never_started(
    entry: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Its control run is not its failure either; the verdict can be read again elsewhere."""
    monkeypatch.setattr(skip_reasons, "hosts_unavailable_reason", lambda: "user namespaces do not work here")
    given = entry(expect={"mine": "pass"})
    given = replace(given, agent=given.agent.model_copy(update={"hosts": {"api.example.com": "llm"}}))
    campaign, _ = await played(tmp_path / "runs", given)
    (judgement,) = campaign.judgements
    assert judgement.skipped == "user namespaces do not work here"
    assert (judgement.verdict, exit_code([judgement])) == ("nothing", 0)
    assert not (campaign.store.folder / "control").exists()


async def test_a_fault_without_a_spot_in_the_reply_makes_its_run_inconclusive(entry: Any, tmp_path: Path):
    """Sabotage of the fault alone must never look like a pass."""
    given = entry(faults=[{"at": {"byte": 10**6}, "do": "cut"}])
    campaign, _ = await played(tmp_path / "runs", given)
    assert campaign.judgements[0].verdict == "inconclusive"
    assert campaign.judgements[0].says.startswith(
        "the fault never fired: cut on llm at step 1 of turn 1; it waits for byte 1,000,000, and "
    )


async def test_a_crash_of_ours_is_an_error_and_its_trace_is_kept(
    entry: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """One run's trouble; the campaign goes on."""

    async def broken(*args: Any, **more: Any) -> Any:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(EmbeddedNetwork, "open_link", broken)
    campaign, _ = await played(tmp_path / "runs", entry())
    (judgement,) = campaign.judgements
    assert judgement.verdict == "error" and "a bug of ours" in judgement.says
    trouble = list(campaign.store.folder.rglob("trouble.txt"))
    assert trouble and "RuntimeError" in trouble[0].read_text()


async def test_a_campaign_that_is_stopped_keeps_what_was_finished(entry: Any, tmp_path: Path):
    """And leaves no task behind."""
    hangs = entry(code="import time; time.sleep(600)")
    progress = Quiet()
    campaign = Campaign([hangs], Options(tmp_path / "runs", "embedded"), progress, lambda line: None)
    playing = asyncio.create_task(campaign.play())
    async with asyncio.timeout(20):
        while ("begins", "control x mine") not in progress.lines:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)
    playing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await playing
    assert campaign.judgements == [] and (campaign.store.folder / "campaign.json").is_file()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_campaign_leaves_nothing_in_the_temporary_folder(
    entry: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Neither the agents' folders nor the one that they lie in."""
    made = tmp_path / "temporary"
    made.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    code = AGENT + f"\nopen({str(tmp_path / 'cwd')!r}, 'w').write(__import__('os').getcwd())"
    await played(tmp_path / "runs", entry(code=code))
    assert Path((tmp_path / "cwd").read_text()).is_relative_to(made)
    assert list(made.iterdir()) == []


# ---- damaged folders


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", r"inputs\.json:1: not valid JSON"),
        ("{", r"inputs\.json:1: not valid JSON"),
        ("[1]", r"inputs\.json: expected a JSON object, found a list"),
        ('"x"', r"inputs\.json: expected a JSON object, found 'x'"),
    ],
)
def test_inputs_that_cannot_be_read_are_one_line(tmp_path: Path, text: str, says: str):
    """Missing, torn or something else."""
    with pytest.raises(ValueError, match=r"no run's folder \(it has no inputs\.json\)"):
        read_inputs(tmp_path)
    (tmp_path / "inputs.json").write_text(text)
    with pytest.raises(ValueError, match=says):
        read_inputs(tmp_path)


def test_an_agent_that_its_spec_no_longer_has_is_one_line(tmp_path: Path):
    """The fix was renamed since."""
    words = {"name": "a", "wire": "anthropic", "command": ["x", "{message}"]}
    (tmp_path / "agent.yaml").write_text(yaml.safe_dump(words))
    with pytest.raises(ValueError, match="no agent 'only-old' any more"):
        stored_agent(tmp_path, {"agent": "only-old", "agent_path": str(tmp_path / "gone.yaml")})


def test_what_the_control_showed_survives_its_way_through_json(tmp_path: Path):
    """Sets and the main shape too: a refusal that it excused is still excused."""
    from wedgehog.harness.campaign.stored import _CONTROL

    shape = {"tools": ["b", "a"], "system": "s", "structured": True}
    data = {"passed": True, "tools": ["a"], "refusals": ["bad"], "shape": shape, "start_up_s": 0.5}
    facts = _CONTROL.validate_python(json.loads(json.dumps(data)))
    whole = MainShape(frozenset({"a", "b"}), "s", True)
    assert facts == ControlFacts(True, "", 0.5, whole, frozenset({"a"}), refusals=frozenset({"bad"}))
