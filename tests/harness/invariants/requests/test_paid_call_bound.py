"""How often a turn may be paid for, on both sides of each bound."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.history import History
from wedgehog.harness.testing import HistoryBuilder


def _stalls(count: int, *, delivered: int = 0, steps: int = 1) -> HistoryBuilder:
    tell = HistoryBuilder()
    tell.message()
    for attempt in range(count):
        tell.stall(tell.ask(1 + attempt % steps), delivered=delivered)
    return tell


@pytest.mark.parametrize(("count", "status"), [(13, "pass"), (14, "fail")])
def test_a_step_may_be_paid_twelve_times_beyond_the_first(count: int, status: str):
    """Ten retries is the largest common default."""
    verdict = check("paid_call_bound", _stalls(count, delivered=5).fails().seal())
    assert verdict.status == status
    if status == "fail":
        assert verdict.says == "step 1 of turn 1 was paid 14 times, 13 allowed"
        assert len(verdict.evidence) == 1  # the call beyond the bound


@pytest.mark.parametrize(("count", "status"), [(11, "pass"), (12, "fail")])
def test_eleven_paid_calls_in_a_row_may_bring_nothing(count: int, status: str):
    """The streak runs on across steps."""
    assert check("paid_call_bound", _stalls(count, steps=2).fails().seal()).status == status


def test_one_token_ends_a_zero_output_streak():
    """Consecutive, the incident's report says: four stalls, a tool call, four stalls are no storm."""
    tell = _stalls(8)
    (token,) = tell.reply(tell.ask(1), tools=[True])
    carried = tell.runs(token)
    for _ in range(8):
        tell.stall(tell.ask(2, results=[carried]))
    tell.answer_step(2, [carried])
    assert check("paid_call_bound", tell.end().seal()).status == "pass"


def test_refused_calls_are_not_paid_and_do_not_end_a_streak():
    """A 429 between two stalls brings nothing either."""
    tell = HistoryBuilder()
    tell.message()
    for _ in range(12):
        tell.stall(tell.ask(1))
        tell.refuse(tell.ask(1), 429)
    verdict = check("paid_call_bound", tell.fails().seal())
    assert verdict.says == "turn 1: 12 paid calls in a row delivered nothing, 11 allowed"
    tell = HistoryBuilder()
    tell.message()
    for _ in range(25):
        tell.refuse(tell.ask(1), 429)
    assert check("paid_call_bound", tell.fails().seal()).status == "pass"


def test_background_calls_are_not_attempts_at_a_step():
    """A title or a loop check is no retry; only `calls_per_turn` counts it."""
    tell = HistoryBuilder()
    tell.message()
    for _ in range(20):
        tell.stall(tell.ask(1, background="title"))
    tell.answer_step(1)
    history = tell.end().seal()
    assert check("paid_call_bound", history).status == "pass"
    assert check("paid_call_bound", history, calls_per_turn=21).status == "pass"
    verdict = check("paid_call_bound", history, calls_per_turn=20)
    assert verdict.says == "turn 1: 21 model requests, 20 allowed"


def _six_dribbles_then_the_answer() -> History:
    tell = HistoryBuilder()
    tell.message()
    for attempt in range(6):
        call = tell.ask(1)
        if attempt % 2:
            tell.refuse(call)
        else:
            tell.stall(call, delivered=200)
    tell.answer_step(1)
    return tell.end().seal()


def test_tokens_without_completed_progress_are_reported_and_bounded_only_on_demand():
    """Six attempts of some tokens, then the answer: no breaker by the stock bounds."""
    history = _six_dribbles_then_the_answer()
    verdict = check("paid_call_bound", history)
    assert (verdict.status, verdict.says) == ("pass", "turn 1: 6 requests in a row completed nothing")
    assert check("paid_call_bound", history, calls_without_progress=6).status == "pass"
    assert check("paid_call_bound", history, calls_without_progress=5).status == "fail"


def test_calls_that_no_stimulus_asked_for_are_one_more_turn():
    """A paid call belongs to a stimulus; the others are listed and judged all the same."""
    tell = HistoryBuilder()
    tell.message()
    tell.answer_step(1)
    tell.end()
    for _ in range(14):
        tell.stall(tell.ask(1, turn=0))
    verdict = check("paid_call_bound", tell.seal())
    assert (verdict.status, verdict.says) == ("fail", "step 1 outside any turn was paid 14 times, 13 allowed")


def test_calls_after_a_deadline_are_not_counted():
    """What follows a deadline is told under it, be it in the turn or after its end."""
    tell = HistoryBuilder()
    tell.message()
    call = tell.ask(1)
    tell.wait(121).deadline()
    tell.reply(call, how="hung up", delivered=0)
    for _ in range(20):
        tell.stall(tell.ask(1))
    tell.end("", ended="deadline", exit_code=None)
    for _ in range(20):
        tell.stall(tell.ask(1, turn=0))
    history = tell.seal()
    assert check("paid_call_bound", history).status == "pass"
    assert check("turn_deadline", history).status == "fail"


def test_a_refusal_by_the_provider_is_not_paid_but_a_cut_reply_is():
    """Paid means accepted, whatever the client then received."""
    tell = HistoryBuilder()
    tell.message()
    for _ in range(14):
        tell.cut(tell.ask(1), delivered=5)
        tell.wait(1)
    assert check("paid_call_bound", tell.fails().seal()).status == "fail"


def test_a_runaway_whose_history_grows_is_seen_by_a_specs_limit_and_by_its_rounds():
    """Forty requests with forty different bodies are one turn's spending, not forty first attempts."""
    tell = HistoryBuilder()
    tell.message()
    results = []
    for step in range(1, 41):
        (token,) = tell.reply(tell.ask(step, results=results), tools=[True])
        results.append(tell.runs(token, for_s=0.01))
    tell.answer_step(41, results)
    history = tell.end().seal()
    assert check("paid_call_bound", history, calls_per_turn=30).says == "turn 1: 41 model requests, 30 allowed"
    verdict = check("tool_round_bound", history, tool_rounds=25)
    assert (verdict.status, verdict.says) == ("fail", "turn 1 had 40 rounds of tool calls, 25 allowed")
    assert check("tool_round_bound", history).status == "pass"


@pytest.mark.parametrize(
    ("count", "kind", "between", "status"),
    [
        (31, "summary", False, "fail"),
        (31, "compact", False, "fail"),
        (30, "summary", False, "pass"),
        (40, "title", False, "pass"),
        (40, "summary", True, "pass"),
    ],
)
def test_thirty_requests_for_a_summary_may_follow_each_other(count: int, kind: str, between: bool, status: str):
    """A conversation may be summed up in parts, and again in each round; a title is none of it."""
    tell = HistoryBuilder()
    tell.message()
    for at in range(count):
        tell.reply(tell.ask(1, background=kind, body=f"part {at}"), "They spoke of owls.")
        if between and at % 10 == 9:
            tell.reply(tell.ask(1 + at // 10), "I go on.")
    tell.answer_step(9)
    verdict = check("paid_call_bound", tell.end().seal())
    assert verdict.status == status
    assert status == "pass" or verdict.says == f"turn 1: {count} requests for a summary in a row, 30 allowed"


@pytest.mark.parametrize(("tries", "status"), [(50, "pass"), (51, "fail")])
def test_replies_that_miss_the_agents_form_count_as_its_rounds(tries: int, status: str):
    """Frameworks allow fifteen to twenty-five of them; a spec's own bound of a step holds all the same."""
    tell = HistoryBuilder()
    tell.message()
    for _ in range(tries):
        call = tell.ask(1)
        tell.fires("plain_answer", call, of_form=True)
        tell.reply(call, "It is open.")
    history = tell.fails().seal()
    assert check("paid_call_bound", history).status == status
    assert check("paid_call_bound", history, per_step=5).status == "fail"
