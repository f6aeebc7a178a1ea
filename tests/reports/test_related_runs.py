"""What one run cannot tell alone is told by other runs of the same agent on the page, with a link to them."""

import re
from html import unescape
from typing import Any

import pytest

from wedgehog.harness.record.events.call import HungUp, OpenToolCall, ReplyEnded, ToolCallOffered, ToolResult
from wedgehog.harness.record.events.turn import AbortSent, TurnEnded
from wedgehog.reports import write_folder

from .conftest import Campaign, Tell, Telling, judgement


def answers_of(campaign: Campaign, scenario: str, agent: str) -> str:
    """The list of one run of the page, as text; links are kept as `[words](#id)`."""
    write_folder(campaign.folder)
    page = (campaign.folder / "report.html").read_text(encoding="utf-8")
    section = page[page.index(f"<h3>{scenario}, {agent}</h3>") :]
    found = re.search(r"What a reader asks</h4>(.*?)</dl>", section, re.DOTALL)
    assert found is not None
    linked = re.sub(r'<a href="(#[^"]+)">([^<]*)</a>', r"[\2](\1)", found[1])
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", linked)).split())


def silent(scale: float = 30.0) -> Tell:
    """The agent hangs up after 2 s without a byte."""

    def tell(telling: Telling) -> None:
        telling.start("stalls", "a", time_scale=scale)
        telling.message(1)
        call = telling.request(1)
        telling.accept(call)
        telling.stalled(call, 2.0, bytes_delivered=200, body_bytes=416, first_byte_s=0.0)
        telling.end(1, error="Error: Timeout", exit_code=1)

    return tell


def trickle(lived_s: float, quiet_s: float | None, *, hangs_up: bool = False, scale: float = 40.0) -> Tell:
    """Bytes arrive for a time; then the agent hangs up, or the harness stops the turn."""

    def tell(telling: Telling) -> None:
        telling.start("trickles", "a", time_scale=scale)
        telling.message(1)
        call = telling.request(1)
        telling.accept(call)
        telling.later(lived_s)
        ended: dict[str, Any] = {"how": "stalled", "stop": "end", "output_tokens": 24, "tokens_delivered": 0}
        ended |= {"body_bytes": 416, "bytes_delivered": 60, "blocks_delivered": 0, "slowed": True, "quiet_s": quiet_s}
        telling.history.add(ReplyEnded(call=call, first_byte_s=0.0, **ended))
        if hangs_up:
            telling.history.add(HungUp(call=call))
        telling.end(
            1, error="Error: Timeout" if hangs_up else "", exit_code=1, ended="by itself" if hangs_up else "deadline"
        )

    return tell


TOLD = "It is a timer of inactivity, not of the whole call."
UNTOLD = "a timer of the whole call or one of inactivity fits this run"


def test_a_call_that_trickled_for_longer_tells_that_a_hang_up_was_for_inactivity(campaign: Campaign):
    campaign.run(judgement("stalls", "a"), silent())
    campaign.run(judgement("trickles", "a"), trickle(7.4, 0.5))
    said = answers_of(campaign, "stalls", "a")
    assert f"{TOLD} In [trickles](#run-2) (the same agent) call 1.1.1 was open for 7.40 s (of the" in said
    assert (
        "(of the scenario: 296.0 s), longer than the 2.00 s (of the scenario: 60.0 s) here, and the agent did" in said
    )
    assert "its bytes kept arriving (60, no pause above 0.50 s)." in said


def test_a_timer_that_fired_in_this_run_only_is_named(campaign: Campaign):
    """By the judge's remarks on both runs."""
    here = (
        "turn 1: its timer 'idle' (60 s; here 2 s) fired: it hung up on call 1.1.1 after 2.00 s, 2.00 s into the turn"
    )
    there = "no sign that its timer 'idle' (60 s; here 1.5 s) fired in this run"
    campaign.run(judgement("stalls", "a", remarks=(here,)), silent())
    campaign.run(judgement("trickles", "a", remarks=(there,)), trickle(7.4, 0.5))
    assert "Its timer 'idle' fired here, and there is no sign of that there." in answers_of(campaign, "stalls", "a")


@pytest.mark.parametrize(
    ("agent", "other"),
    [
        ("a", trickle(1.0, 0.1)),  # shorter
        ("a", trickle(7.4, None)),  # an older record, or not slow
        ("a", trickle(7.4, 7.0)),  # it came all at once in the end
        ("a", trickle(7.4, 2.5)),  # a silence as long as here
        ("a", trickle(2.6, 0.1, scale=10.0)),  # shorter by the scenario's clock
        ("b", trickle(7.4, 0.5)),  # another agent
    ],
)
def test_what_proves_nothing_is_not_used(campaign: Campaign, agent: str, other: Tell):
    campaign.run(judgement("stalls", "a"), silent())
    campaign.run(judgement("trickles", agent), other)
    said = answers_of(campaign, "stalls", "a")
    assert UNTOLD in said and TOLD not in said


def test_another_program_of_the_same_name_is_not_related(campaign: Campaign):
    """Variants of two incidents are both called `buggy`; the hash of the entry file tells them apart."""

    def renamed(telling: Telling) -> None:
        before = telling.history.add

        def add(event: Any) -> Any:
            fields = {**vars(event), "entry_hash": "ffff"} if event.kind == "agent_started" else None
            return before(event if fields is None else type(event)(**fields))

        telling.history.add = add  # type: ignore[method-assign]
        trickle(7.4, 0.5)(telling)

    campaign.run(judgement("stalls", "a"), silent())
    campaign.run(judgement("trickles", "a"), renamed)
    assert UNTOLD in answers_of(campaign, "stalls", "a")


def test_a_hang_up_while_bytes_arrive_is_of_the_whole_call(campaign: Campaign):
    """The last byte came just before, so nothing is said of a silence."""
    campaign.run(judgement("trickles", "a"), trickle(3.0, 0.4, hangs_up=True))
    said = answers_of(campaign, "trickles", "a")
    assert "hung up on call 1.1.1 3.00 s after the request, while its bytes still arrived (60 so far, no pause" in said
    assert "that is a timer of the whole call, not one of inactivity." in said and UNTOLD not in said
    assert "No timer of its spec is known to have fired, so it may be one that the spec does not name." in said


def exits(scenario: str, end: Tell, **carried: Any) -> Tell:
    """A turn with two tool calls that ends so, and what the next request carries of them."""

    def tell(telling: Telling) -> None:
        telling.start(scenario, "a")
        telling.message(1)
        call = telling.request(1, open_calls=())
        telling.accept(call)
        offered = (ToolCallOffered("1.1.1", "shell", True), ToolCallOffered("1.1.2", "shell", True))
        telling.whole(call, stop="tool", tool_calls=offered)
        end(telling)
        telling.message(2)
        call = telling.request(2, **carried)
        telling.accept(call)
        telling.whole(call, "Yes?")
        telling.end(2, "Yes?")

    return tell


def times_out(telling: Telling) -> None:
    telling.end(1, error="TimeoutError: 90 s are over", exit_code=1)


def is_aborted(telling: Telling) -> None:
    telling.history.add(AbortSent(turn=1))
    telling.end(1, error="stopped", exit_code=130, ended="aborted")


BOTH_OPEN = (OpenToolCall("id1", "1.1.1"), OpenToolCall("id2", "1.1.2"))


def test_two_exits_of_an_agent_that_leave_different_histories_are_compared(campaign: Campaign):
    campaign.run(judgement("timeout", "a"), exits("timeout", times_out, open_calls=BOTH_OPEN))
    campaign.run(judgement("user-abort", "a"), exits("user-abort", is_aborted, open_calls=()))
    said = answers_of(campaign, "timeout", "a")
    assert "Here: turn 1 ended (exit code 1: TimeoutError: 90 s are over), and the next request, 2.1.1, carried" in said
    assert "carried 2 of its 2 tool calls without a result." in said
    assert "In [user-abort](#run-2) (the same agent): turn 1 ended (aborted), and the next request, 2.1.1," in said
    assert (
        "carried neither call nor result of 2 of its 2 tool calls. So the two exits do not leave the same history."
        in said
    )


def test_two_exits_that_leave_the_same_history_are_alike(campaign: Campaign):
    results = (ToolResult("id1", 40, token="1.1.1"), ToolResult("id2", 40, token="1.1.2"))
    for scenario, end in (("timeout", times_out), ("user-abort", is_aborted)):
        campaign.run(judgement(scenario, "a"), exits(scenario, end, results=results, open_calls=()))
    assert "So these exits leave the same history." in answers_of(campaign, "timeout", "a")


def test_without_a_second_exit_or_a_record_of_open_calls_nothing_is_compared(campaign: Campaign):
    campaign.run(judgement("timeout", "a"), exits("timeout", times_out, open_calls=BOTH_OPEN))
    assert "Do its exits" not in answers_of(campaign, "timeout", "a")
    campaign.run(judgement("user-abort", "a"), exits("user-abort", is_aborted))
    assert "Do its exits" not in answers_of(campaign, "timeout", "a")


def fails(agent: str, words: str, exit_code: int = 1) -> Tell:
    def tell(telling: Telling) -> None:
        telling.start("storm", agent)
        telling.message(1)
        call = telling.request(1)
        telling.accept(call)
        telling.stalled(call, 2.0)
        telling.end(1, error=words, exit_code=exit_code)

    return tell


@pytest.mark.parametrize(
    ("exit_code", "tells"),
    [
        (1, "both are exit code 1, so only the words tell the two ends apart."),
        (4, "exit code 1 against exit code 4 tells the two ends apart, and so do the words."),
    ],
)
def test_a_breakers_error_is_compared_with_that_of_a_variant_without_one(
    campaign: Campaign, exit_code: int, tells: str
):
    campaign.run(judgement("storm", "buggy"), fails("buggy", "error: LLM idle timeout"))
    campaign.run(judgement("storm", "fixed"), fails("fixed", "error: breaker open, giving up", exit_code))
    says = (
        "Turn 1 ended here with exit code 1, “error: LLM idle timeout”, and in [fixed](#run-2) (a variant of it) "
        f"with exit code {exit_code}, “error: breaker open, giving up”: {tells}"
    )
    assert says in answers_of(campaign, "storm", "buggy")
    assert "and in [buggy](#run-1) (a variant of it) with exit code 1" in answers_of(campaign, "storm", "fixed")


def over_http(agent: str, status: int, words: str = "", answer: str = "") -> Tell:
    def tell(telling: Telling) -> None:
        telling.start("storm", agent)
        telling.message(1)
        call = telling.request(1)
        telling.accept(call)
        telling.stalled(call, 2.0)
        telling.history.add(
            TurnEnded(turn=1, ended="by itself", answer=answer, error=words, exit_code=None, status=status, raised=None)
        )

    return tell


def test_the_end_of_a_service_is_compared_by_its_status_and_not_by_an_exit_code(campaign: Campaign):
    """A service has no exit code; one that said nothing has no words to quote."""
    campaign.run(judgement("storm", "fixed-report"), over_http("fixed-report", 200))
    campaign.run(judgement("storm", "fixed"), over_http("fixed", 500, "stopped at a limit of my own"))
    campaign.run(judgement("storm", "mild"), over_http("mild", 500, "it broke"))
    said = answers_of(campaign, "storm", "fixed-report")
    assert "Turn 1 ended here with HTTP 200, no words, and in [fixed]" in said
    assert "with HTTP 500, “stopped at a limit of my own”: HTTP 200 against HTTP 500 tells the two ends apart" in said
    assert "both are HTTP 500, so only the words tell" in answers_of(campaign, "storm", "mild")
    assert "exit code" not in said


def test_two_plain_errors_or_the_same_words_are_not_compared(campaign: Campaign):
    campaign.run(judgement("storm", "buggy"), fails("buggy", "error: LLM idle timeout"))
    campaign.run(judgement("storm", "fixed"), fails("fixed", "error: another timeout"))
    assert "a variant of it" not in answers_of(campaign, "storm", "buggy")


def test_a_related_run_whose_record_can_not_be_read_is_left_out(campaign: Campaign):
    """The page is written from what is left."""
    campaign.run(judgement("stalls", "a"), silent())
    other = campaign.run(judgement("trickles", "a"), trickle(7.4, 0.5))
    write_folder(campaign.folder)
    assert TOLD in answers_of(campaign, "stalls", "a")
    (other / "history.jsonl").write_text("broken\n")
    (other / "facts.json").unlink(missing_ok=True)
    assert UNTOLD in answers_of(campaign, "stalls", "a")


def test_each_of_two_timers_is_named_where_it_fired(campaign: Campaign):
    """One of silence here and one of the whole call there are not one timer that is both."""
    silence = "turn 1: its timer 'idle' (60 s; here 2 s) fired: it hung up on call 1.1.1 after 2.00 s"
    whole = "turn 1: its timer 'total' (120 s; here 3 s) fired: it hung up on call 1.1.1 after 3.00 s"
    campaign.run(judgement("stalls", "a", remarks=(silence,)), silent())
    campaign.run(judgement("trickles", "a", remarks=(whole,)), trickle(3.0, 0.4, hangs_up=True))
    here, there = answers_of(campaign, "stalls", "a"), answers_of(campaign, "trickles", "a")
    assert "It is its timer 'idle', a timer of inactivity, not of the whole call." in here
    assert "There its timer 'total' fired, which is another one." in here
    assert "that is its timer 'total', a timer of the whole call, not one of inactivity." in there
    assert "until the agent hung up by another timer, one of the whole call: its bytes" in here
    assert "that the spec does not name" not in there


def test_without_a_timer_that_fired_there_the_reason_of_the_other_hang_up_is_a_guess(campaign: Campaign):
    """That its bytes kept coming says only what it was not."""
    silence = "turn 1: its timer 'idle' (60 s; here 2 s) fired: it hung up on call 1.1.1 after 2.00 s"
    campaign.run(judgement("stalls", "a", remarks=(silence,)), silent())
    campaign.run(judgement("trickles", "a"), trickle(3.0, 0.4, hangs_up=True))
    here = answers_of(campaign, "stalls", "a")
    assert "hung up, so not for inactivity, but perhaps by a timer of the whole call or turn: its bytes" in here
    assert "by another timer" not in here


def test_a_timer_that_fired_in_both_runs_is_not_called_another_one(campaign: Campaign):
    fired = "turn 1: its timer 'idle' (60 s; here 2 s) fired: it hung up on call 1.1.1 after 2.00 s"
    campaign.run(judgement("stalls", "a", remarks=(fired,)), silent())
    campaign.run(judgement("trickles", "a", remarks=(fired,)), trickle(3.0, 0.4, hangs_up=True))
    assert "another" not in answers_of(campaign, "stalls", "a").partition("What did the history keep?")[0]
