"""What a history tells by itself."""

from dataclasses import dataclass

import pytest

from wedgehog.harness.record import event as e
from wedgehog.harness.record.history import History
from wedgehog.reports.narrative import facts

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
    return Told(facts(history.seal()))


def started(tell: Tell) -> Tell:
    def whole(telling: Telling) -> None:
        telling.start("plain", "mine")
        telling.message(1)
        tell(telling)
        telling.end(1)

    return whole


def test_a_run_in_which_nothing_went_wrong_says_nothing():
    """No sentence for its own sake."""
    assert told(plain_run).sentences == []


def test_a_stalled_continuation_names_step_sizes_and_time():
    """Which step it was, what went up with how many tool results, what came down, how long it took."""

    @started
    def tell(telling):
        results = tuple(e.ToolResult(f"t{n}", 1_000) for n in range(3))
        call = telling.request(1, 2, body_bytes=85_000, results=results)
        telling.accept(call)
        telling.stalled(call, 60.0)

    said = told(tell)
    assert said.says(
        "Call 1.2.1 to /v1/messages: 85,000 bytes with 3 tool results up, 0 bytes of the reply's body arrived; "
        "stalled, the agent hung up after 60.0 s (stall struck)."
    )
    assert said.says("The continuation 1.2 carried 4 messages and 3 tool results of 3,000 characters.")


def test_a_storm_is_one_sentence_each_for_calls_retries_and_streak():
    """160 equal calls are told once; so is what a prepaid balance would have done."""
    said = told(storm(160, "buggy"))
    assert said.says("Step 1.1 was tried 160 times, 160 of them paid.")
    assert said.says("160 paid calls in a row delivered no output token (1.1.1 to 1.1.160).")
    assert said.says("At its dearest minute ($3.94) a prepaid $10.00 would last 2.5 min.")
    assert len(said.sentences) == 5


def test_tokens_without_progress_are_told_from_no_tokens():
    """Tokens that never complete a block break only the second streak."""

    @started
    def tell(telling):
        for _ in range(4):
            call = telling.request(1)
            telling.accept(call)
            telling.stalled(call, 1.0, tokens_delivered=200, bytes_delivered=500)

    said = told(tell)
    assert said.says("4 paid calls in a row completed no text block or tool call")
    assert not said.says("delivered no output token")


def test_a_dangling_call_is_told_with_what_became_of_it():
    """Which calls have no result, whether their command ran, and the provider's refusal."""
    said = told(dangling)
    assert said.says(
        "No later request carried a result of tool call 1.1.1 shell (it ran to its end), "
        "1.1.2 shell (it started, and never ended)."
    )
    assert said.says("1 call refused with 400 because tool calls and results did not pair")


def test_calls_after_an_abort_are_counted():
    """Requests that start after the stop, in the turn or outside of any, and how many of them were paid."""

    @started
    def tell(telling):
        telling.accept(telling.later(1).request(1))
        telling.history.add(e.AbortSent(turn=1))
        telling.accept(telling.later(5).request(1))
        telling.accept(telling.later(5).request(0))

    said = told(tell)
    assert said.says("After the abort at 1.00 s 2 requests came, 2 of them paid.")
    assert said.says("1 request came while no message was under way.")


def test_a_reply_cut_at_max_tokens_is_named():
    """With the tokens it took."""

    @started
    def tell(telling):
        call = telling.request(1)
        telling.accept(call)
        telling.whole(call, stop="max_tokens", output_tokens=2_048)

    assert told(tell).says("The reply to 1.1.1 stopped at max_tokens after 2,048 output tokens.")


def test_an_answer_that_came_with_a_later_message_is_late():
    """A message is answered where its own word stands, and a second time is said too."""

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
    """Recovered, context lost."""

    def tell(telling):
        telling.start("plain", "mine")
        telling.answered(1)
        telling.message(2, kind="recovery")
        call = telling.request(2, turns_seen=(2,))
        telling.accept(call)
        telling.whole(call, "heron-violet-48212")
        telling.end(2, "heron-violet-48212")

    assert told(tell).says("The recovery's request no longer held turn 1: context was lost.")


def test_a_command_that_ran_twice_is_told():
    """Side effects repeated after a restart."""

    @started
    def tell(telling):
        call = telling.request(1)
        telling.accept(call)
        telling.whole(call, stop="tool", tool_calls=(e.ToolCallOffered("1.1.1", "shell", True),))
        for _ in range(2):
            telling.history.add(e.BeaconSeen(token="1.1.1", phase="started"))

    assert told(tell).says("Tool call 1.1.1 ran 2 times.")


@pytest.mark.parametrize(
    ("model", "price_as", "part"),
    [
        ("my-own-7b", "claude-sonnet-4-6", "my-own-7b is not in the price table: billed as claude-sonnet-4-6."),
        ("my-own-7b", "nor-me-either", "my-own-7b has no known price: what it costs is unknown."),
    ],
)
def test_a_borrowed_or_missing_price_is_said(model, price_as, part):
    """Nobody should take a borrowed price for the model's own."""

    def tell(telling):
        telling.model = model
        telling.start("plain", "mine", price_as=price_as)
        telling.answered(1)

    assert told(tell).says(part)


def test_what_an_agent_over_its_time_was_seen_to_wait_for_is_told():
    """Also where nobody judges its time."""

    @started
    def tell(telling):
        telling.history.add(e.HangSeen(turn=1, says="it waited for the reply to call 2 on llm, open since 61 s"))

    assert told(tell).says("Over its time in turn 1, it waited for the reply to call 2 on llm, open since 61 s.")
