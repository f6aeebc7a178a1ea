"""Shares of answered turns under transient faults, and paid calls under permanent ones."""

import io
import json

import pytest
from rich.console import Console

from wedgehog.harness.record.events.turn import AbortSent
from wedgehog.reports import write_folder
from wedgehog.reports.campaign_folder import load
from wedgehog.reports.cost import shares
from wedgehog.reports.rows import as_json, table
from wedgehog.reports.terminal import print_campaign

from .conftest import Campaign, Telling, judgement, plain_run

PASSES, STAYS = ("stall-once", "reset-once"), ("stall-always",)
TAGS = {name: ["stall", "transient"] for name in PASSES} | {name: ["starter", "permanent"] for name in STAYS}
ANSWERED = "answered under transient faults: codex 1 of 2, pi 2 of 2"
PAID = "paid under permanent faults: codex 3 calls in 1 run, pi 4 calls in 1 run"
"""Paid calls in the table: the turn without a fault is one more call."""


def _faulty(paid: int, *, answers: bool, carries_nonces: bool = True):
    """All calls of a turn stall, but the last if it answers; the next turn has no fault and ends in an error."""

    def tell(telling: Telling) -> None:
        telling.start("told", "told", carries_nonces=carries_nonces)
        telling.message(1)
        for number in range(1, paid + 1):
            call = telling.later(0.1).request(1)
            telling.accept(call)
            if answers and number == paid and paid > 1:
                telling.whole(call, "Three files.")
            else:
                telling.stalled(call, 1.0)
        if answers:
            telling.end(1, "Three files. heron-violet-48211")
        else:
            telling.end(1, error="Error: no word from the model", exit_code=1)
        telling.message(2)
        telling.accept(telling.request(2))
        telling.end(2, error="Error: something else", exit_code=1)

    return tell


@pytest.fixture
def compared(campaign: Campaign) -> Campaign:
    """Two agents, two transient faults, one permanent fault, and one scenario without tags."""
    campaign.describe(tags=TAGS | {"plain": []})
    for scenario, agent, paid, answers in (
        ("stall-once", "codex", 2, True),
        ("stall-once", "pi", 2, True),
        ("reset-once", "codex", 1, False),
        ("reset-once", "pi", 3, True),
        ("stall-always", "codex", 2, False),
        ("stall-always", "pi", 3, False),
    ):
        campaign.run(judgement(scenario, agent), _faulty(paid, answers=answers))
    campaign.run(judgement("plain", "pi"), plain_run)
    return campaign


def _said(campaign: Campaign) -> list[str]:
    return shares(table(load(campaign.folder)))


def test_transient_faults_count_answers_and_permanent_ones_count_paid_calls(compared: Campaign):
    """Only the turn with the fault counts; the next one fails in all runs."""
    assert _said(compared) == [ANSWERED, PAID]


def test_without_the_tags_nothing_is_said(campaign: Campaign):
    """A user's own scenario, or a campaign of an older release."""
    campaign.run(judgement("stall-once", "codex"), _faulty(2, answers=True))
    assert _said(campaign) == []
    campaign.describe(tags="nonsense")
    assert _said(campaign) == []


def test_a_run_in_which_no_fault_fired_counts_in_neither(campaign: Campaign):
    """A skipped or inconclusive run, or one that was not played, says nothing about the agent."""
    campaign.describe(tags=TAGS)
    campaign.run(judgement("stall-once", "codex", "nothing", skipped="the agent does not stream"))
    campaign.run(judgement("reset-once", "codex", "error", says="its control run failed"))
    campaign.run(judgement("stall-always", "codex", "inconclusive"), plain_run)
    assert _said(campaign) == []


def test_an_agent_whose_answers_can_not_be_told_has_no_share(campaign: Campaign):
    """`0 of 0` would read like a failure."""
    campaign.describe(tags=TAGS)
    campaign.run(judgement("stall-once", "codex"), _faulty(2, answers=False, carries_nonces=False))
    campaign.run(judgement("stall-once", "pi"), _faulty(2, answers=True))
    assert _said(campaign) == ["answered under transient faults: pi 1 of 1"]


def test_a_turn_that_its_user_stopped_owes_no_answer(campaign: Campaign):
    """An abort is a fault too."""

    def tell(telling: Telling) -> None:
        telling.start("told", "told")
        telling.message(1)
        telling.stalled(telling.request(1), 1.0)
        telling.history.add(AbortSent(turn=1))
        telling.end(1, ended="aborted", exit_code=130)

    campaign.describe(tags={"stall-once": ["transient"]})
    campaign.run(judgement("stall-once", "codex"), tell)
    assert _said(campaign) == []


@pytest.mark.parametrize("verdict", ["inconclusive", "error"])
def test_a_run_of_which_nothing_can_be_said_counts_in_neither(campaign: Campaign, verdict: str):
    """The fault may have fired on another request than that of the message."""
    campaign.describe(tags=TAGS)
    for name in (PASSES[0], STAYS[0]):
        campaign.run(judgement(name, "codex", verdict), _faulty(2, answers=True))
    assert _said(campaign) == []


def test_cells_of_a_fix_matrix_are_left_out(campaign: Campaign):
    """They do not count."""
    campaign.describe(tags=TAGS)
    campaign.run(judgement("stall-once", "only-wrapper", matrix_only=True), _faulty(2, answers=True))
    assert _said(campaign) == []


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        (("pass", "fail", "pass"), ["flaky: stall-once, codex passed 2 of 3 repeats"]),
        (("fail", "pass", "inconclusive"), ["flaky: stall-once, codex passed 1 of 3 repeats"]),
        (("fail", "fail"), []),
        (("pass", "inconclusive"), []),
    ],
)
def test_a_cell_whose_repeats_do_not_agree_is_flaky(campaign: Campaign, verdicts: tuple[str, ...], said: list[str]):
    """Another agent with one verdict of its own does not count for it."""
    for repeat, verdict in enumerate(verdicts, start=1):
        campaign.run(judgement("stall-once", "codex", verdict, repeat=repeat), plain_run)
    campaign.run(judgement("stall-once", "pi", "fail"), plain_run)
    assert _said(campaign) == said


def test_every_report_shows_them(compared: Campaign):
    """The page, the Markdown and the terminal."""
    write_folder(compared.folder)
    assert all(line in (compared.folder / "report.html").read_text() for line in (ANSWERED, PAID))
    assert f"- {ANSWERED}\n- {PAID}\n" in (compared.folder / "summary.md").read_text()
    shown = io.StringIO()
    print_campaign(load(compared.folder), Console(file=shown, width=120))
    assert f"{ANSWERED}\n{PAID}\n" in shown.getvalue()


def test_a_short_report_names_what_is_flaky_too(campaign: Campaign):
    """It needs attention; the shares do not."""
    campaign.describe(tags=TAGS)
    for repeat, verdict in enumerate(("pass", "fail"), start=1):
        campaign.run(judgement("stall-once", "codex", verdict, repeat=repeat), _faulty(2, answers=True))
    shown = io.StringIO()
    print_campaign(load(campaign.folder), Console(file=shown, width=120), quiet=True)
    assert "\nflaky: stall-once, codex passed 1 of 2 repeats\n" in shown.getvalue()
    assert "answered under" not in shown.getvalue()


def test_the_page_tells_an_error_that_was_seen_from_an_answer(compared: Campaign):
    """Both pass. Three of the six runs with a fault ended in an error; a run without a fault has no such remark."""
    write_folder(compared.folder)
    assert (compared.folder / "report.html").read_text().count("the user saw an error") == 3


def test_the_page_does_not_list_the_tags_among_its_facts(compared: Campaign):
    """They are data for the tables."""
    write_folder(compared.folder)
    assert "transient&#" not in (page := (compared.folder / "report.html").read_text()) and "<dt>tags</dt>" not in page


def test_programs_read_why_and_what_became_of_it(campaign: Campaign):
    """The rows as JSON: sentence, reason of a skip, tags, and whether the turn with the fault was answered."""
    campaign.describe(tags=TAGS)
    campaign.run(judgement("reset-once", "codex", "fail", says="it said nothing"), _faulty(1, answers=False))
    skipped = {"says": "skipped: it does not stream", "skipped": "it does not stream"}
    campaign.run(judgement("stall-once", "codex", "nothing", **skipped))
    played, unplayed = json.loads(as_json(table(load(campaign.folder))))
    wanted = ("says", "skipped", "tags", "harmed_answered")
    assert [played[key] for key in wanted] == ["it said nothing", "", "stall;transient", False]
    assert [unplayed[key] for key in wanted] == [*skipped.values(), "stall;transient", None]
