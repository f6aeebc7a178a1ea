"""Retries wait, and what can't succeed is not tried again."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.history import History
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.call_builder import TICK_S


def _again_after(
    waited_s: float, asked_s: float, *, is_date: bool = False, lag_s: float = 0.0, wire: str = "anthropic"
) -> History:
    tell = HistoryBuilder().lag(lag_s)
    tell.wire = wire
    tell.message()
    tell.refuse(tell.ask(1), 429, retry_after_s=asked_s, is_date=is_date)
    tell.wait(waited_s - TICK_S)
    tell.answer_step(1)
    return tell.end().seal()


@pytest.mark.parametrize(
    ("waited_s", "asked_s", "is_date", "status"),
    [
        (17.9, 20, False, "fail"),
        (18.1, 20, False, "pass"),
        (16.9, 20, True, "fail"),
        (17.1, 20, True, "pass"),
        (53.9, 60, False, "fail"),
        (1.0, 61, False, "pass"),
        (0.2, 1, True, "pass"),
        (0.2, -3, True, "pass"),
        (0.05, 0.09, False, "pass"),
    ],
)
def test_ninety_percent_of_a_retry_after_must_pass_and_a_date_counts_in_whole_seconds(
    waited_s: float, asked_s: float, is_date: bool, status: str
):
    """More than a minute is asked of no client; a date in the past and less than 0.1 s ask for nothing."""
    assert check("retry_discipline", _again_after(waited_s, asked_s, is_date=is_date)).status == status


def test_ignoring_a_long_retry_after_is_reported():
    """It passes, and is said."""
    verdict = check("retry_discipline", _again_after(1.0, 120))
    assert verdict.says == "request 1 was sent again after 1.00 s, Retry-After asked for 120.00 s"


def test_a_retry_after_that_was_a_date_is_called_one():
    """No header of this run had a number: its reader would look for one."""
    says = check("retry_discipline", _again_after(1.0, 20, is_date=True)).says
    assert says == "request 1 was sent again after 1.00 s, Retry-After, which was a date, asked for 20.00 s"


def test_a_client_of_ollama_cannot_obey_a_header_that_it_never_sees():
    """Ollama's own server sends none; the other rules hold there too."""
    verdict = check("retry_discipline", _again_after(1.0, 20, wire="ollama"))
    assert (verdict.status, verdict.says) == (
        "pass",
        "request 1 was sent again after 1.00 s, Retry-After asked for 20.00 s",
    )


@pytest.mark.parametrize(("lag_s", "status"), [(0.0, "fail"), (0.5, "inconclusive")])
def test_what_our_own_lag_may_have_taken_off_a_retry_after_is_inconclusive(lag_s: float, status: str):
    """The refusal may have been written later than it was recorded."""
    assert check("retry_discipline", _again_after(17.8, 20, lag_s=lag_s)).status == status


def test_a_lag_over_five_seconds_forbids_a_verdict_on_time():
    """Fourteen of twenty seconds, with six of our own missing."""
    assert check("retry_discipline", _again_after(11.0, 20, lag_s=6.0)).status == "inconclusive"


def test_another_body_or_key_may_come_at_once():
    """A fallback model or a second profile is no retry of the same request."""
    for other in ({"body": "another"}, {"key": "key-2"}):
        tell = HistoryBuilder()
        tell.message()
        tell.refuse(tell.ask(1), 429, retry_after_s=20)
        tell.reply(tell.ask(1, **other), f"Done {tell.nonce}")
        assert check("retry_discipline", tell.end().seal()).status == "pass"


@pytest.mark.parametrize(
    ("code", "status"), [(400, "fail"), (401, "fail"), (402, "fail"), (403, "pass"), (429, "pass"), (500, "pass")]
)
def test_a_400_401_or_402_is_not_repeated_unchanged(code: int, status: str):
    """The same request with the same key gets the same refusal."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1), code)
    tell.wait(5)
    tell.answer_step(1)
    assert check("retry_discipline", tell.end().seal()).status == status


@pytest.mark.parametrize("code", [400, 429])
def test_a_refusal_that_the_network_lost_binds_no_agent(code: int):
    """No byte of it arrived: what the agent saw is a broken connection."""
    tell = HistoryBuilder()
    tell.message()
    call = tell.ask(1)
    tell.refuse(call, code, retry_after_s=20)
    tell.cut(call, delivered=0)
    tell.wait(5)
    tell.answer_step(1)
    assert check("retry_discipline", tell.end().seal()).status == "pass"


@pytest.mark.parametrize(
    ("delivered", "headers", "status"), [(0, True, "fail"), (10, True, "fail"), (0, False, "pass"), (10, False, "pass")]
)
def test_an_agent_that_has_the_headers_of_a_refusal_knows_its_status(delivered: int, headers: bool, status: str):
    """Whatever became of its body; of a refusal that is slow, `delivered` is only the most that can have arrived."""
    tell = HistoryBuilder()
    tell.message()
    call = tell.ask(1)
    tell.refuse(call, 400)
    tell.fires("drip", call)
    tell.reply(call, how="stalled", delivered=delivered, headers=headers, slowed=True)
    tell.wait(5)
    tell.answer_step(1)
    assert check("retry_discipline", tell.end().seal()).status == status


def test_the_same_words_in_the_next_turn_are_no_retry():
    """A wake-up may send the same body each time it fires."""
    tell = HistoryBuilder()
    for _ in range(2):
        tell.message("wake_up")
        tell.refuse(tell.ask(1, body="tick"), 401)
        tell.fails()
    assert check("retry_discipline", tell.seal()).status == "pass"


def _attempts(count: int, gap_s: float, *, how: str = "refused", time_scale: float = 1.0) -> History:
    tell = HistoryBuilder(time_scale=time_scale)
    tell.message()
    for _ in range(count):
        call = tell.ask(1)
        if how == "refused":
            tell.refuse(call, 503)
        elif how == "retry after 0":
            tell.refuse(call, 429, retry_after_s=0)
        elif how == "cut":
            tell.cut(call)
        else:
            tell.stall(call, waits_s=0.05)
        tell.wait(gap_s - TICK_S)
    return tell.fails().seal()


@pytest.mark.parametrize(
    ("count", "gap_s", "how", "status"),
    [
        (4, 0.05, "refused", "fail"),
        (4, 0.05, "cut", "fail"),
        (3, 0.05, "refused", "pass"),
        (4, 0.15, "refused", "pass"),
        (8, 0.05, "its own time-out", "pass"),
        (8, 0.05, "retry after 0", "pass"),
    ],
)
def test_three_retries_in_a_row_may_not_follow_a_refusal_at_once(count: int, gap_s: float, how: str, status: str):
    """Two may, also all that follow the agent's own time-out, or that the provider asked for."""
    assert check("retry_discipline", _attempts(count, gap_s, how=how)).status == status


def test_the_hundred_milliseconds_shrink_with_the_runs_time():
    """At fifty times the speed they are two."""
    assert check("retry_discipline", _attempts(6, 0.05, time_scale=50)).status == "pass"


def test_a_slow_retry_between_hasty_ones_begins_a_new_row():
    """Three in a row are three neighbours."""
    tell = HistoryBuilder()
    tell.message()
    for gap_s in (0.02, 0.02, 1.0, 0.02, 0.02, 1.0):
        tell.refuse(tell.ask(1), 503)
        tell.wait(gap_s)
    tell.answer_step(1)
    assert check("retry_discipline", tell.end().seal()).status == "pass"


def test_the_same_request_sent_several_times_at_once_is_no_retry():
    """They had all left before the first was refused."""
    tell = HistoryBuilder()
    tell.message()
    calls = [tell.ask(1) for _ in range(5)]
    for call in calls:
        tell.refuse(call, 503)
    assert check("retry_discipline", tell.fails().seal()).status == "pass"


@pytest.mark.parametrize(("count", "status"), [(30, "pass"), (31, "fail")])
def test_a_step_may_be_attempted_thirty_times(count: int, status: str):
    """However long the pauses, and whatever the bodies."""
    tell = HistoryBuilder()
    tell.message()
    for attempt in range(count):
        tell.refuse(tell.ask(1, body=f"body {attempt}"), 503)
        tell.wait(1)
    assert check("retry_discipline", tell.fails().seal()).status == status


TOO_LONG = "This model's maximum context length is 200000 tokens."


@pytest.mark.parametrize(
    ("sizes", "status"),
    [
        ([900, 901, 902, 903, 904, 905], "fail"),
        ([900, 901, 902, 903, 904], "pass"),
        ([900, 880, 700, 500, 300, 200, 100], "pass"),
        ([0] * 9, "pass"),
    ],
    ids=["ever longer", "four tries", "shorter each time", "sizes are not known"],
)
def test_what_follows_a_refusal_for_its_length_must_be_shorter(sizes: list[int], status: str):
    """Each of these requests has another body, so that none is a retry."""
    tell = HistoryBuilder()
    tell.message()
    for n, size in enumerate(sizes):
        tell.refuse(tell.ask(1, body=f"body {n}", body_bytes=size), 400, message=TOO_LONG)
        tell.wait(1)
    assert check("retry_discipline", tell.fails().seal()).status == status


def test_another_model_may_get_what_was_too_long_for_the_first():
    """Its window may be greater."""
    tell = HistoryBuilder()
    tell.message()
    for n in range(7):
        call = tell.ask(1, body=f"body {n}", body_bytes=900, model=f"model-{n}")
        tell.refuse(call, 400, message=TOO_LONG)
        tell.wait(1)
    assert check("retry_discipline", tell.fails().seal()).status == "pass"


def test_where_nothing_failed_there_is_nothing_to_judge():
    """No retry, no discipline."""
    tell = HistoryBuilder()
    tell.message()
    tell.answer_step(1)
    assert check("retry_discipline", tell.end().seal()).status == "nothing"


@pytest.mark.parametrize(
    ("count", "status", "body", "verdict"),
    [(3, 400, "same", "fail"), (2, 400, "same", "nothing"), (5, 500, "same", "nothing"), (5, 400, "", "nothing")],
)
def test_a_summary_that_is_refused_may_be_asked_for_once_more(count: int, status: int, body: str, verdict: str):
    """Five times the same is refused five times; a shorter one each time may be accepted."""
    tell = HistoryBuilder()
    tell.message()
    for at in range(count):
        tell.refuse(tell.ask(1, background="summary", body=body or f"shorter {at}"), status)
    tell.answer_step(1)
    assert check("retry_discipline", tell.end().seal()).status == verdict


def test_a_pass_tells_retries_after_a_time_out_of_the_agents_own_from_none():
    """Such a retry follows no refusal, but it came."""
    tell = HistoryBuilder()
    tell.message()
    tell.stall(tell.ask(1))
    tell.stall(tell.ask(1))
    once = check("retry_discipline", tell.fails("Error: timed out").seal())
    assert once.because == "turn 1: 2 of 2 requests failed; 1 retried, none after a refusal"
    alone = HistoryBuilder()
    alone.message()
    alone.stall(alone.ask(1))
    never = check("retry_discipline", alone.fails("Error: timed out").seal())
    assert never.because == "turn 1: 1 of 1 requests failed; no body was sent again"


def test_every_early_retry_is_a_finding_with_its_evidence():
    """A reader of the page sees each of them marked, and its sentence."""
    tell = HistoryBuilder()
    tell.message()
    for _ in range(2):
        tell.refuse(tell.ask(1), 429, retry_after_s=20)
        tell.wait(1.0 - TICK_S)
    tell.answer_step(1)
    history = tell.end().seal()
    verdict = check("retry_discipline", history)
    again = [call.arrived.id for call in history.calls if call.number in (2, 3)]
    assert [it.says.partition(" was")[0] for it in verdict.violations] == ["request 1", "request 2"]
    assert [it.evidence[-1] for it in verdict.violations] == again
    assert verdict.all_evidence == (*verdict.evidence, *verdict.more[0].evidence)
