"""What a history tells by itself."""

from dataclasses import dataclass

import pytest

from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.call import HungUp, ToolCallOffered, ToolResult
from wedgehog.harness.record.events.run import LagSeen
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.events.turn import AbortSent, AgentKilled, DeadlineHit, GaveUp, HangSeen, StartMissed
from wedgehog.harness.record.history import History
from wedgehog.reports.page.run.narrative import narrated

from .conftest import HandClock, Tell, Telling, dangling, plain_run, storm


@dataclass
class Told:
    """The sentences of a run."""

    sentences: list[str]

    def says(self, part: str) -> bool:
        return any(part in sentence for sentence in self.sentences)


def told(tell: Tell) -> Told:
    clock = HandClock()
    history = History(clock)
    tell(Telling(history, clock))
    if history.first(LagSeen) is None:
        history.add(LagSeen(worst_s=0.0))
    return Told(narrated(history.seal()))


def started(tell: Tell) -> Tell:
    def whole(telling: Telling) -> None:
        telling.start("plain", "mine")
        telling.message(1)
        tell(telling)
        telling.end(1)

    return whole


def test_a_run_without_a_failure_has_no_sentences():
    """A plain run with one answer and one recovery."""
    assert told(plain_run).sentences == []


def test_a_stalled_continuation_names_step_sizes_and_time():
    """The step, the bytes and tool results of the request, the bytes of the reply, and the time."""

    @started
    def tell(telling):
        results = tuple(ToolResult(f"t{n}", 1_000) for n in range(3))
        call = telling.request(1, 2, body_bytes=85_000, results=results)
        telling.accept(call)
        telling.stalled(call, 60.0)

    said = told(tell)
    assert said.says(
        "Call 1.2.1 to /v1/messages: 85,000 bytes with 3 tool results sent, 0 bytes of the reply's body arrived; "
        "stalled, the agent hung up after 60.0 s (fault: stall)."
    )
    assert said.says(
        "The continuation in step 2 of turn 1 carried 4 messages (with any system prompt) and 3 tool results of "
        "3,000 characters."
    )


def test_a_storm_is_one_sentence_each_for_calls_retries_and_streak():
    """160 equal calls share one sentence; another says how long a prepaid balance lasts."""
    said = told(storm(160, "buggy"))
    assert said.says("Step 1 of turn 1 had 160 attempts, 160 of them paid.")
    assert said.says("160 paid calls in a row delivered no output token (1.1.1 to 1.1.160).")
    rate = "160 paid calls in 12.6 s: simulated cost $18.72 per minute"
    assert said.says(f"{rate}; a prepaid $10.00 would last 0.5 min at this rate.")
    assert len(said.sentences) == 5


def test_tokens_without_progress_are_no_zero_output_streak():
    """Tokens that complete no block end only the streak of calls without tokens."""

    @started
    def tell(telling):
        for _ in range(4):
            call = telling.request(1)
            telling.accept(call)
            telling.stalled(call, 1.0, tokens_delivered=200, bytes_delivered=500)

    said = told(tell)
    assert said.says("4 paid calls in a row completed no text block or tool call")
    assert not said.says("delivered no output token")


def test_a_dangling_call_is_named_with_its_command_and_its_refusal():
    """The calls without a result, whether their command ran, and the refusal of the provider."""
    said = told(dangling)
    assert said.says(
        "No later request carried a result of tool call 1.1.1 shell (it ran to the end), "
        "1.1.2 shell (it started and did not end)."
    )
    assert said.says("1 call of the recovery refused with 400 because tool calls and results did not pair")


def _asks_after(stop: Event) -> Told:
    @started
    def tell(telling):
        telling.accept(telling.later(1).request(1))
        telling.history.add(stop)
        telling.accept(telling.later(5).request(1))
        telling.accept(telling.later(5).request(0))

    return told(tell)


def test_calls_after_a_deadline_are_counted():
    """Requests that start after the stop, in its turn or in none, and how many of them are paid."""
    said = _asks_after(DeadlineHit(turn=1, bound_s=1))
    assert said.says("After the deadline at 1.00 s 1 more request of turn 1 came, 1 of them paid.")
    assert said.says("1 request came while no turn was open.")


def test_requests_of_the_next_message_are_not_those_after_the_stop():
    """The agent was stopped, and works on its next message as it should."""

    @started
    def tell(telling):
        telling.history.add(DeadlineHit(turn=1, bound_s=1))
        telling.message(2)
        telling.accept(telling.later(5).request(2))
        telling.end(2)

    assert told(tell).says("After the deadline at 0 s no more request of turn 1 came.")


def test_calls_after_an_abort_are_left_to_the_invariant_that_counts_them():
    """`no_spend_after_abort` says how many; a second number beside it would differ."""
    assert not _asks_after(AbortSent(turn=1)).says("After the")
    assert not _asks_after(GaveUp(turn=1)).says("After the")


def test_numbers_are_lower_bounds_if_recording_ended_before_the_agent():
    """A deadline ends the recording, and the agent still makes calls."""
    bound = "The agent was stopped, or recording ended, before its work was done: calls, tokens"
    assert _asks_after(DeadlineHit(turn=1, bound_s=1)).says(bound)
    assert not told(storm(5, "buggy")).says(bound)


def test_tokens_that_the_script_sets_are_said_beside_what_was_sent():
    """8,000 input tokens for a request of 547 bytes are the scenario's number."""

    @started
    def tell(telling):
        for scripted in (True, False):
            call = telling.request(1, body_bytes=547)
            telling.accept(call, scripted=scripted)
            telling.whole(call)

    assert told(tell).says(
        "The script sets the tokens of 1 of 2 paid calls (8,000 input tokens for a request of 547 bytes): "
        "the cost follows from the script, not from what was sent."
    )


def test_paid_calls_by_model_leave_out_the_recovery_message_as_the_headline_does():
    """Two models have three calls; the fourth call is the recovery."""

    def tell(telling):
        telling.start("plain", "mine")
        telling.message(1)
        for model in ("claude-sonnet-4-6", "claude-haiku-4-5", "claude-haiku-4-5"):
            call = telling.request(1, model=model)
            telling.accept(call)
            telling.whole(call)
        telling.end(1)
        telling.answered(2, "recovery")

    said = "Paid calls by model: claude-haiku-4-5 (anthropic) 2, claude-sonnet-4-6 (anthropic) 1."
    assert told(tell).says(said)


@pytest.mark.parametrize(
    ("scale", "seconds", "says"),
    [
        (1.0, 0.15, "160 paid calls in 24.0 s: simulated cost $9.84 per minute; a prepaid $10.00 would last 1.0 min"),
        (60.0, 0.15, "160 paid calls in 24.0 s: simulated cost $9.84 per minute; this is real time, and the scenario"),
        (1.0, 0.01, "160 paid calls in 1.60 s, counted as 10 s: simulated cost $23.62 per minute; a prepaid $10.00"),
        (1.0, 1.0, "In the most expensive 60 s: simulated cost $1.48 per minute; a prepaid $10.00 would last 6.8 min"),
    ],
)
def test_a_rate_says_in_which_time_it_was_spent_and_by_which_clock(scale: float, seconds: float, says: str):
    """With a time scale the sentence names it instead of a prepaid balance."""

    def tell(telling):
        telling.start("plain", "mine", time_scale=scale)
        telling.message(1)
        for _ in range(160):
            call = telling.request(1)
            telling.accept(call)
            telling.later(seconds).whole(call)
        telling.end(1)

    assert told(tell).says(says)


@pytest.mark.parametrize(
    ("stop", "says"),
    [
        (None, "the agent hung up"),
        (AgentKilled(turn=1, signal="SIGKILL", whom="tree", pids=(1,)), "ended by our SIGKILL"),
        (DeadlineHit(turn=1, bound_s=1), "ended by our stop at the deadline"),
    ],
)
def test_a_call_that_we_ended_is_not_the_agents_hang_up(stop: Event | None, says: str):
    """The harness closed the connection."""

    @started
    def tell(telling):
        call = telling.request(1)
        telling.accept(call)
        if stop is not None:
            telling.history.add(stop)
        telling.whole(call, how="hung up")
        telling.history.add(HungUp(call=call))

    assert told(tell).says(f"900 bytes of the reply's body arrived; {says} after")


def test_a_reply_cut_at_max_tokens_is_named():
    """With the number of its tokens."""

    @started
    def tell(telling):
        call = telling.request(1)
        telling.accept(call)
        telling.whole(call, stop="max_tokens", output_tokens=2_048)

    assert told(tell).says("The reply to 1.1.1 stopped at max_tokens after 2,048 output tokens.")


def test_an_answer_that_came_with_a_later_message_is_late():
    """The nonce of a message says in which turns it was answered."""

    def tell(telling):
        telling.start("plain", "mine")
        telling.answered(1)
        telling.answered(2, said="heron-violet-48211 ")
        telling.message(3)
        telling.end(3, "hm")
        telling.answered(4, "recovery", said="heron-violet-48213 ")

    said = told(tell)
    assert said.says("The message of turn 1 was answered 2 times: in turn 1, turn 2.")
    assert said.says("The message of turn 3 was answered late, in the recovery message.")


def test_a_recovery_that_forgot_the_earlier_turns_says_so():
    """The recovery is answered, but its request lacks an earlier turn."""

    def tell(telling):
        telling.start("plain", "mine")
        telling.answered(1)
        telling.message(2, kind="recovery")
        call = telling.request(2, turns_seen=(2,))
        telling.accept(call)
        telling.whole(call, "heron-violet-48212")
        telling.end(2, "heron-violet-48212")

    assert told(tell).says("The recovery request does not contain turn 1: context was lost.")


def test_a_command_that_ran_twice_is_told():
    """The same tool call has two `started` beacons."""

    @started
    def tell(telling):
        call = telling.request(1)
        telling.accept(call)
        telling.whole(call, stop="tool", tool_calls=(ToolCallOffered("1.1.1", "shell", True),))
        for _ in range(2):
            telling.history.add(BeaconSeen(token="1.1.1", phase="started"))

    assert told(tell).says("Tool call 1.1.1 ran 2 times.")


def test_the_report_says_what_an_agent_waited_for_at_its_deadline():
    """Also where no invariant judges the time."""

    @started
    def tell(telling):
        telling.history.add(HangSeen(turn=1, says="it waited for the reply to call 2 on llm, open since 61 s"))

    assert told(tell).says("At the deadline of turn 1, it waited for the reply to call 2 on llm, open since 61 s.")


@pytest.mark.parametrize(
    ("waits_s", "span"), [((4.2, 5.0), "4.20 s to 5.00 s after the message, in 2 turns"), ((3.0,), "")]
)
def test_how_long_was_waited_beyond_the_bound_for_a_first_request_is_told(waits_s: tuple[float, ...], span: str):
    """The verdict names the bound, and the event stands later: what is granted on top explains the difference."""

    def tell(telling: Telling) -> None:
        telling.start("plain", "mine")
        for turn, wait_s in enumerate(waits_s, 1):
            telling.message(turn)
            telling.later(wait_s).history.add(StartMissed(turn=turn, bound_s=3.0))
            telling.end(turn, ended="deadline")

    said = told(tell)
    assert said.says("stopped waiting for a first request") is bool(span)
    assert not span or said.says(f"{span}: the bound is 3 s, the rest is for delays")
