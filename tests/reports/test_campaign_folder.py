"""Reading the folder of a campaign, finished or not."""

import pytest

from wedgehog.reports.campaign_folder import load

from .conftest import judgement, plain_run, storm, storm_judgement


def test_a_run_killed_half_way_is_unfinished_not_missing(campaign):
    """A run without a judgement is listed with the reason."""
    campaign.run(judgement("plain", "fixed"), plain_run, judged=False)
    found = load(campaign.folder)
    assert not found.runs
    assert [(lost.folder.name, lost.why) for lost in found.unfinished] == [
        ("fixed", "the run ended before it was judged")
    ]


def test_a_torn_last_line_costs_nothing_but_itself(campaign):
    """A half-written last event is ignored, and the run is read."""
    folder = campaign.run(judgement("plain", "fixed"), plain_run)
    with (folder / "history.jsonl").open("a") as file:
        file.write('{"event": "note", "wha')
    assert len(load(campaign.folder).runs) == 1


def test_a_broken_history_is_named_with_its_line(campaign):
    """A broken line in the middle makes the run unreadable, and the report names the line."""
    folder = campaign.run(judgement("plain", "fixed"), plain_run)
    path = folder / "history.jsonl"
    path.write_text(path.read_text().replace('"event": "turn_ended"', '"event": "turn_endless"', 1))
    found = load(campaign.folder)
    assert not found.runs
    assert "history.jsonl:" in found.unfinished[0].why
    assert "turn_endless" in found.unfinished[0].why


def test_files_of_the_same_names_inside_an_agents_folder_are_no_runs(campaign):
    """An agent may write a verdicts.json of its own."""
    folder = campaign.run(judgement("plain", "fixed"), plain_run)
    (folder / "session").mkdir()
    for name in ("verdicts.json", "history.jsonl"):
        (folder / "session" / name).write_text("{}")
    found = load(campaign.folder)
    assert [run.folder for run in found.runs] == [folder]
    assert not found.unfinished


def test_control_runs_are_neither_runs_nor_unfinished(campaign):
    """A control run has no judgement and needs none."""
    campaign.run(judgement("control", "retry-storm-buggy"), plain_run, judged=False)
    found = load(campaign.folder)
    assert not found.runs
    assert not found.unfinished
    assert [folder.name for folder in found.controls] == ["retry-storm-buggy"]


def test_runs_come_in_the_campaigns_order_broken_before_repaired(campaign):
    """Scenarios in the campaign's order; agents: buggy, single fixes, fixed, leave-one-out, then all others."""
    campaign.describe(families={"z-first": "one", "a-second": "two"})
    for agent in ("zeta", "without-x", "fixed", "only-x", "buggy"):
        campaign.run(judgement("z-first", agent), plain_run)
    campaign.run(judgement("a-second", "fixed"), plain_run)
    found = load(campaign.folder)
    assert [run.judgement.agent for run in found.runs[:5]] == ["buggy", "only-x", "fixed", "without-x", "zeta"]
    assert found.runs[5].judgement.scenario == "a-second"
    assert found.family("a-second") == "two"


def test_a_single_runs_folder_can_be_reported_too(campaign):
    """The folder of one run is a campaign of one."""
    folder = campaign.run(storm_judgement(), storm(2, "buggy"))
    assert [run.judgement.agent for run in load(folder).runs] == ["buggy"]


def test_a_folder_that_is_not_there_is_one_clear_line(tmp_path):
    """The error names the path."""
    with pytest.raises(ValueError, match="nowhere: no such folder"):
        load(tmp_path / "nowhere")


@pytest.mark.parametrize("text", ["", "[1, 2]", "{torn"])
def test_a_broken_campaign_json_leaves_the_runs_readable(campaign, text):
    """The facts are unknown then, the verdicts are not."""
    campaign.run(judgement("plain", "fixed"), plain_run)
    (campaign.folder / "campaign.json").write_text(text)
    found = load(campaign.folder)
    assert (len(found.runs), dict(found.description)) == (1, {})
