"""How long a run used the database, and the share of the turns' time."""

import io
from typing import Any

import pytest
from rich.console import Console

from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.service import StoreAsked
from wedgehog.harness.record.events.turn import StimulusGiven, TurnEnded
from wedgehog.harness.record.history import History
from wedgehog.reports.campaign_folder import load
from wedgehog.reports.cost import worst
from wedgehog.reports.database_use import database
from wedgehog.reports.page.html import page
from wedgehog.reports.page.run.narrative import narrated
from wedgehog.reports.rows import table
from wedgehog.reports.terminal import print_campaign

from .conftest import Telling, judgement, plain_run


def turn(number: int, start_s: float, end_s: float, stimulus: Any = "user") -> list[Event]:
    """A turn without any request: it begins with its message."""
    return [
        StimulusGiven(at_s=start_s, turn=number, stimulus=stimulus, marker=f"m{number}", nonce="n", text="x"),
        TurnEnded(
            at_s=end_s, turn=number, ended="by itself", answer="n", error="", exit_code=0, status=None, raised=None
        ),
    ]


def query(at_s: float, took_s: float) -> StoreAsked:
    return StoreAsked(at_s=at_s, number=1, verb="INSERT", rows=1, latency_s=took_s)


def told(*events: Event) -> History:
    return History(events=sorted(events, key=lambda event: event.at_s)).seal()


def test_queries_are_counted_and_their_share_of_the_turns_time_is_told():
    """All turns are added up; queries of the recovery message and between turns are left out."""
    turns = [*turn(1, 0, 4), *turn(2, 10, 14), *turn(3, 20, 24, "recovery")]
    history = told(*turns, *(query(at_s, 0.5) for at_s in (1, 2, 11, 12, 5, 21)))
    used = database(history)
    assert used is not None and (used.queries, used.took_s, used.share) == (4, 2.0, 0.25)
    assert "Use of the database: 4 queries, 2.00 s, 25% of the turns' time." in narrated(history)


def test_more_than_the_whole_time_is_the_whole():
    """The times of parallel queries can add up to more than their turn."""
    used = database(told(*turn(1, 0, 1), query(0.5, 0.9), query(0.6, 0.9)))
    assert used is not None and used.share == 1.0


def test_a_run_without_queries_has_none():
    """There is no sentence."""
    history = told(*turn(1, 0, 1))
    assert database(history) is None and not any("database" in sentence for sentence in narrated(history))


def asks_once(telling: Telling) -> None:
    """One query of 0.5 s in a turn of 2 s."""
    telling.start("with", "mine")
    for event in (turn(1, 0, 2)[0], query(1, 0.5), turn(1, 0, 2)[1]):
        telling.history.add(event)


def test_the_table_of_times_holds_the_queries_beside_the_turn(campaign: Any):
    """Empty where there was no database."""
    campaign.run(judgement("with", "mine"), asks_once)
    campaign.run(judgement("without", "mine"), plain_run)
    having, lacking = worst(table(load(campaign.folder)))
    assert (having.queries, having.queries_s, having.queries_share) == (1, 0.5, pytest.approx(0.25))
    assert lacking.queries is None and lacking.queries_share is None


def test_the_terminal_and_the_page_show_the_queries_and_their_share(campaign: Any):
    """One line for a scenario with a database; no line for a scenario without."""
    for agent in ("mine", "yours"):
        campaign.run(judgement("with", agent), asks_once)
    campaign.run(judgement("without", "mine"), plain_run)
    file = io.StringIO()
    print_campaign(load(campaign.folder), Console(file=file, width=200))
    lines = [line for line in file.getvalue().split("\n") if line.startswith("database of")]
    used = "1 query, 25% of the time"
    assert lines == [f"database of with: mine {used}; yours {used}"]
    loaded = load(campaign.folder)
    assert page(loaded, table(loaded)).count(used) == 2
