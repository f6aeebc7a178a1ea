"""What the page says in one place does not contradict what it says in another."""

import re
from html import unescape
from typing import get_args

from wedgehog.harness.record.events.call import HungUp, ToolCallOffered, ToolResult
from wedgehog.harness.record.events.service import PageAsked
from wedgehog.harness.record.events.turn import AbortSent, AgentKilled, DeadlineHit, GaveUp
from wedgehog.harness.record.history import read
from wedgehog.harness.record.turn_outcome import OutcomeKind
from wedgehog.harness.record.verdict import nothing, passed
from wedgehog.reports import write_folder
from wedgehog.reports.lanes import lanes
from wedgehog.reports.page.all_runs import MEANINGS
from wedgehog.reports.words import seconds

from .conftest import NONCE, Campaign, Tell, Telling, judgement, plain_run, storm


def page_of(campaign: Campaign, tell: Tell, **judged: object) -> str:
    """The page of one run as text."""
    campaign.run(judgement("s", "a", **judged), tell)
    write_folder(campaign.folder)
    page = (campaign.folder / "report.html").read_text(encoding="utf-8")
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def late(telling: Telling) -> None:
    """A turn of which the harness waits for 9 s where 3.75 s are allowed; then an answered recovery."""
    telling.start("s", "a", time_scale=40.0)
    telling.message(1)
    call = telling.later(0.3).request(1)
    telling.accept(call)
    telling.later(9.0).history.add(DeadlineHit(turn=1, bound_s=3.75))
    telling.history.add(HungUp(call=call))
    telling.end(1, ended="deadline")
    telling.answered(2, "recovery")


def test_an_invariant_that_did_not_judge_a_turn_says_so(campaign: Campaign):
    """A pass for the recovery message is no word about a turn without an answer and without an error."""
    said = page_of(campaign, late, verdicts=(passed().named("error_surfaced"), passed().named("tools_alive")))
    why = "turn 1 was silent, which turn_deadline judges"
    assert f"Passed : error_surfaced (judged in 1 of 2 turns: {why}); tools_alive." in said


def test_nothing_to_judge_names_the_turns_of_which_it_says_nothing(campaign: Campaign):
    """After a kill each message may stay without an answer and without an error."""

    def tell(telling: Telling) -> None:
        telling.start("s", "a")
        telling.message(1)
        telling.history.add(AgentKilled(turn=1, signal="SIGKILL", whom="tree", pids=(4711,)))
        telling.end(1, ended="killed")
        for turn in (2, 3):
            telling.message(turn)
            telling.later(9.0).history.add(DeadlineHit(turn=turn, bound_s=3.0))
            telling.end(turn, ended="deadline")

    said = page_of(campaign, tell, verdicts=(nothing().named("error_surfaced"),))
    killed, silent = (
        "turn 1 was killed, so it needs no error",
        "turn 2 to turn 3 were silent, which turn_deadline judges",
    )
    assert f"error_surfaced (judged in 0 of 3 turns: {killed}; {silent})." in said


def test_where_each_turn_was_judged_nothing_is_added(campaign: Campaign):
    assert "Passed : error_surfaced." in page_of(campaign, plain_run, verdicts=(passed().named("error_surfaced"),))


def test_a_deadline_later_than_its_bound_is_explained(campaign: Campaign):
    """The verdict names the bound, and the event stands later."""
    said = page_of(campaign, late)
    assert "The harness stopped turn 1 9.00 s after its first request: the bound is 3.75 s, the rest is" in said
    assert "times are real unless marked as the scenario's." in said and "all times shown" not in said


def test_equal_times_are_rounded_alike():
    """A table rounds to four decimals before."""
    assert seconds(0.00745001) == seconds(round(0.00745001, 4)) == seconds(round(0.007450009, 4))
    assert seconds(0.0074996) == seconds(0.0075)


def test_a_timer_that_ended_the_turn_is_a_limit_of_the_agents_own(campaign: Campaign):
    """Also where its words name no limit."""
    fired = "turn 1: its timer 'idle' (90 s; here 2 s) fired: it ended the turn after 2.11 s"
    unfired = "no sign that its timer 'exec' (30 s; here 3 s) fired in this run"
    said = page_of(campaign, storm(1, "a"), remarks=(fired, unfired))
    assert f"name no breaker and no limit of attempts, rounds or cost. A timer of its spec: {fired}." in said
    assert "No timer of its spec is known" not in said


def test_words_about_the_users_own_stop_are_no_first_error_but_are_quoted(campaign: Campaign):
    def tell(telling: Telling) -> None:
        telling.start("s", "a")
        telling.message(1)
        telling.history.add(AbortSent(turn=1))
        telling.end(1, error="UserAbortError: the user stopped the turn", exit_code=130, ended="aborted")
        telling.answered(2)

    said = page_of(campaign, tell)
    stop = "none but what it said of its user's stop, at the end of turn 1"
    assert f"First error: {stop}: “UserAbortError: the user stopped the turn”." in said


def test_pages_that_a_tool_asked_for_stand_beside_calls_without_a_reported_run(campaign: Campaign):
    def tell(telling: Telling) -> None:
        telling.start("s", "a")
        telling.message(1)
        call = telling.request(1)
        telling.accept(call)
        offered = tuple(ToolCallOffered(f"1.1.{n}", "web_fetch", True) for n in (1, 2))
        telling.whole(call, stop="tool", tool_calls=offered)
        for path in ("/one", "/two"):
            telling.history.add(PageAsked(path=path, status=200))
        results = tuple(ToolResult(f"id{n}", 100, token=f"1.1.{n}") for n in (1, 2))
        call = telling.request(1, 2, results=results)
        telling.accept(call)
        telling.whole(call, "Done")
        telling.end(1, "Done")

    said = page_of(campaign, tell)
    assert (
        "Later requests carry a result of 2 of them. The agent was started once. "
        "Its tools asked our page server for /one, /two, once each." in said
    )


def test_a_rate_of_less_than_a_minute_is_a_pace(campaign: Campaign):
    """No minute with so many calls was measured."""
    said = page_of(campaign, storm(4, "a"))
    assert "24 calls/min (4 calls in 0.29 s, counted as 10 s)" in said and "peak" not in said.partition("Invariants")[0]


def works_on(after_s: float) -> Tell:
    """A service that asks for tools, also after its front end gave up, and a recording that ends so long after it."""

    def tell(telling: Telling) -> None:
        telling.start("s", "a")
        telling.message(1)
        for step in range(1, 6):
            call = telling.later(0.2).request(1, step)
            telling.accept(call)
            telling.whole(call, stop="tool", tool_calls=(ToolCallOffered(f"1.{step}.1", "work", True),))
            if step == 3:
                telling.history.add(GaveUp(turn=1, after_s=0.6))
                telling.end(1, ended="gave up")
        telling.later(after_s).message(2, kind="recovery")
        telling.end(2, f"Yes {NONCE}2")

    return tell


def test_a_service_that_still_asked_when_the_recording_ended_has_only_a_floor_of_calls_and_cost(campaign: Campaign):
    """And the page says what ended its loop."""
    said = page_of(campaign, works_on(0.1))
    assert "After its front end gave up, turn 1 went on with 2 more calls. The last reply, to call 5, asked" in said
    assert "asked for a tool again 0.10 s before the recording ended, and its pauses lasted up to 0.20 s" in said
    assert "≥ $" in said and "calls, tokens and cost are lower bounds" in said
    assert "paid calls ≥ 5" in said and "anthropic: at least 5 paid calls" in said
    assert "By our count: at least 5 paid calls" in said
    assert "at work on turn 1, also after its front end gave up" in said


def test_a_service_that_was_quiet_for_longer_came_to_an_end(campaign: Campaign):
    said = page_of(campaign, works_on(3.0))
    assert "went on with 2 more calls, the last one call 5." in said and "≥ $" not in said


def test_the_agents_lane_reaches_to_the_last_call_of_a_service_that_works_on(campaign: Campaign):
    folder = campaign.run(judgement("s", "a"), works_on(0.1))
    history = read(folder / "history.jsonl")
    agent = next(lane for lane in lanes(history) if lane.name == "agent")
    assert agent.items[0].end_s == history.calls[-1].ended.at_s > history.turns[0].end.at_s


def test_each_outcome_of_a_turn_stands_in_the_legend(campaign: Campaign):
    """The page's own words, folded; what explains itself is left out."""
    said = page_of(campaign, plain_run)
    assert "What the words mean answered the user got the whole answer." in said
    plain_words = {"stopped at its limit", "killed", "unfinished"}
    assert set(get_args(OutcomeKind)) - plain_words <= set(MEANINGS)
