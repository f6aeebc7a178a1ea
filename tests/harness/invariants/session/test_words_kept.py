"""What the model said stays in the conversation, in agents of several designs."""

from collections.abc import Sequence

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder

BEFORE = "Let me look at it."


def _rounds(
    replies: Sequence[int] | None,
    *,
    text: str = BEFORE,
    summary: bool = False,
    sees: Sequence[int] | None = None,
    damaged: bool = False,
) -> Verdict:
    """One tool round; the request with its result carries these replies."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), text, tools=[True], damaged=damaged)
    results = [tell.runs(token)]
    if summary:
        tell.reply(tell.ask(1, background="summary"), "They looked.")
    tell.reply(tell.ask(2, results=results, replies=replies, sees=sees), f"Done {tell.nonce}")
    return check("words_kept", tell.end().seal())


def test_words_before_a_tool_call_that_are_not_sent_again_are_red():
    """The model says them a second time."""
    verdict = _rounds([])
    assert verdict.status == "fail"
    assert verdict.says == (
        "the model's words in call 1 (Let me look at it.) are not in the request with the result of its tool call"
    )


def test_words_that_are_sent_again_pass():
    """As the model said them."""
    assert _rounds([1]).status == "pass"


@pytest.mark.parametrize(
    "more",
    [
        {"text": ""},
        {"text": "Ok."},
        {"summary": True},
        {"sees": ()},
        {"damaged": True},
    ],
    ids=["a call alone", "two letters", "a summary between", "a stateful provider keeps the rest", "a harmed reply"],
)
def test_what_other_designs_do_is_not_judged(more: dict[str, object]):
    """Nothing was said, or it may be elsewhere."""
    assert _rounds([], **more).status == "nothing"  # type: ignore[arg-type]


@pytest.mark.parametrize(("replies", "status"), [([], "fail"), ([1], "pass"), (None, "pass")])
def test_an_answer_stands_in_the_next_turn_that_carries_its_message(replies: Sequence[int] | None, status: str):
    """Who stores only what the user said asks the model to answer it all again."""
    tell = HistoryBuilder()
    for carried in ([], replies):
        tell.message()
        tell.reply(tell.ask(1, replies=carried), f"Done {tell.nonce}")
        tell.end()
    assert check("words_kept", tell.seal()).status == status


def test_after_a_refusal_for_its_length_an_agent_may_drop_what_the_model_said():
    """One that still tells what its user had said is not worse than one that drops all of it."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), f"Done {tell.nonce}")
    tell.end().message()
    tell.refuse(tell.ask(1, sees=(1, 2), replies=[1]), 400, message="prompt is too long: 9 tokens > 8 maximum")
    tell.reply(tell.ask(1, sees=(1, 2), replies=[]), f"Done {tell.nonce}")
    assert check("words_kept", tell.end().seal()).status == "nothing"


def test_an_agent_that_begins_anew_with_each_message_is_judged_by_another_invariant():
    """Its request does not carry the earlier message."""
    tell = HistoryBuilder()
    for number in (1, 2):
        tell.message()
        tell.reply(tell.ask(1, sees=(number,), replies=[]), f"Done {tell.nonce}")
        tell.end()
    assert check("words_kept", tell.seal()).status == "nothing"


def test_a_history_that_does_not_tell_it_is_not_judged():
    """It was stored before requests were searched for words."""
    tell = HistoryBuilder()
    for _ in range(2):
        tell.message()
        tell.reply(tell.ask(1), f"Done {tell.nonce}")
        tell.end()
    history = tell.seal()
    for event in history.events:
        if hasattr(event, "replies_seen"):
            object.__setattr__(event, "replies_seen", None)
    assert check("words_kept", history).status == "nothing"


HALF = "A small animal that rolls itself up when"


@pytest.mark.parametrize(
    ("shown", "begun", "status"),
    [(HALF, [], "fail"), (HALF, [1], "pass"), (HALF, None, "nothing"), ("", [], "nothing")],
    ids=["lost", "kept", "not recorded", "not shown"],
)
def test_words_of_a_broken_reply_that_its_user_has_read_stay(shown: str, begun: Sequence[int] | None, status: str):
    """The next message goes on from them."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1), HALF)
    tell.end(shown, error="Error: the connection was closed", exit_code=1)
    tell.message()
    tell.reply(tell.ask(1, begun=begun, replies=[]), f"Done {tell.nonce}")
    verdict = check("words_kept", tell.end().seal())
    assert verdict.status == status
    lost = "the user has read words of call 1, whose reply broke off; request 2 carries the message of the turn without"
    assert status != "fail" or verdict.says == f"{lost} them"


@pytest.mark.parametrize("why", ["another conversation", "a summary", "too long"])
def test_words_of_a_broken_reply_may_be_gone_with_what_was_around_them(why: str):
    """An agent may drop the whole turn, sum it up, or make its conversation shorter."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1), HALF)
    tell.end(HALF, error="Error: the connection was closed", exit_code=1)
    tell.message()
    if why == "a summary":
        tell.reply(tell.ask(1, background="summary"), "They asked.")
    if why == "too long":
        tell.refuse(tell.ask(1, begun=[]), 400, message="prompt is too long: 9 tokens > 8 maximum")
    sees = (2,) if why == "another conversation" else None
    tell.reply(tell.ask(1, begun=[], replies=[], sees=sees), f"Done {tell.nonce}")
    assert check("words_kept", tell.end().seal()).status == "nothing"
