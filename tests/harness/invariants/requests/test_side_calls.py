"""Subagents: their calls are bounded, and their words reach the parent."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.invariants.requests.side_call_bound import within
from wedgehog.harness.invariants.scope import together
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result


@pytest.fixture
def tell() -> HistoryBuilder:
    """The model has called two subagents."""
    builder = HistoryBuilder()
    builder.message()
    builder.reply(builder.ask(1), tools=[True, True], name="task")
    return builder


def ended(tell: HistoryBuilder, quotes: list[int], name: str = "subagent_kept") -> Verdict:
    call = tell.ask(2, results=[result("1.1.1"), result("1.1.2")], quotes=quotes)
    tell.reply(call, f"Done {tell.nonce}")
    return check(name, tell.end().seal())


def subagent(tell: HistoryBuilder, number: int) -> int:
    call = tell.ask(1, side=f"subagent {number}")
    tell.reply(call, "The task is done.")
    return call


def test_the_words_of_both_subagents_are_in_the_next_request(tell: HistoryBuilder):
    assert ended(tell, [subagent(tell, 1), subagent(tell, 2)]).status == "pass"


def test_a_lost_result_is_named_with_its_subagent(tell: HistoryBuilder):
    first, _ = subagent(tell, 1), subagent(tell, 2)
    verdict = ended(tell, [first])
    assert (verdict.status, verdict.says) == (
        "fail",
        "subagent 2 ended well in call 3, and no later main request of turn 1 carries its words",
    )


def test_an_agent_that_rewrites_all_results_is_not_judged(tell: HistoryBuilder):
    """Its words are its own, so nothing shows what they hold."""
    subagent(tell, 1)
    verdict = ended(tell, [])
    assert verdict.status == "nothing" and "passes no subagent's words on as they are" in verdict.says


def test_a_subagent_that_failed_has_no_words_to_keep(tell: HistoryBuilder):
    first = subagent(tell, 1)
    tell.refuse(tell.ask(1, side="subagent 2"), 529)
    assert ended(tell, [first]).status == "pass"


def test_a_subagent_that_ends_when_its_parent_has_gone_on_is_not_judged(tell: HistoryBuilder):
    """The parent stopped waiting for it, and said so in its result."""
    first, late = subagent(tell, 1), tell.ask(1, side="subagent 2")
    tell.reply(tell.ask(2, results=[result("1.1.1")], quotes=[first]), tools=[True])
    tell.reply(late, "The task is done.")
    tell.reply(tell.ask(3, quotes=[first]), f"Done {tell.nonce}")
    assert check("subagent_kept", tell.end().seal()).status == "pass"


def test_the_words_of_a_subagent_in_the_background_may_come_later(tell: HistoryBuilder):
    """Its call had a result before it asked: a later message brings its words, and `subagent_returns` judges that."""
    first = subagent(tell, 1)
    launched = [result("1.1.1"), result("1.1.2", printed=False, signs=("elsewhere",))]
    tell.reply(tell.ask(2, results=launched, quotes=[first]), tools=[True])
    subagent(tell, 2)
    tell.reply(tell.ask(3, results=launched, quotes=[first]), f"Done {tell.nonce}")
    assert check("subagent_kept", tell.end().seal()).status == "pass"


@pytest.mark.parametrize(
    ("exit_code", "goes_on", "status"), [(7, False, "fail"), (7, True, "nothing"), (0, False, "nothing")]
)
def test_a_failed_command_does_not_end_its_subagent(tell: HistoryBuilder, exit_code: int, goes_on: bool, status: str):
    """Judged where the parent waits for the subagent, and where nothing but the exit code can have ended it."""
    (token,) = tell.reply(tell.ask(1, side="subagent 1"), tools=[True])
    tell.starts(token)
    if goes_on:
        tell.reply(tell.ask(2), tools=[True])
    tell.done(token, exit_code=exit_code)
    assert ended(tell, []).status == status


@pytest.mark.parametrize(("times", "status"), [(30, "pass"), (31, "fail")])
def test_refused_attempts_of_one_step_are_bounded(tell: HistoryBuilder, times: int, status: str):
    for _ in range(times):
        tell.refuse(tell.wait(1).ask(1, side="subagent 1"), 529)
    assert ended(tell, [], "side_call_bound").status == status


@pytest.mark.parametrize(("times", "status"), [(13, "pass"), (14, "fail")])
def test_paid_attempts_of_one_step_are_bounded(tell: HistoryBuilder, times: int, status: str):
    for _ in range(times):
        tell.stall(tell.ask(1, side="subagent 1"), waits_s=1.0)
    assert ended(tell, [], "side_call_bound").status == status


def test_many_subagents_are_many_conversations(tell: HistoryBuilder):
    """Each has its own steps, so that forty of them are no forty attempts."""
    quotes = [subagent(tell, number) for number in range(1, 41)]
    assert ended(tell, quotes, "side_call_bound").status == "pass"


@pytest.mark.parametrize(
    ("bounds", "says"),
    [
        ((2, None), "subagent 1 was paid 3 times, 2 allowed"),
        ((None, 2), "step 1 of subagent 1 was asked 3 times, 2 allowed"),
        ((3, 3), ""),
    ],
)
def test_a_scenario_may_bound_a_conversation_of_its_own(tell: HistoryBuilder, bounds: tuple[int, int], says: str):
    for _ in range(3):
        subagent(tell, 1)
    verdict = together(within(tell.end().seal(), "subagent", *bounds))
    assert (verdict.status, verdict.says) == ("fail" if says else "pass", says)


@pytest.mark.parametrize(("times", "body", "status"), [(31, "same", "fail"), (30, "same", "pass"), (31, None, "pass")])
def test_an_equal_call_beside_the_conversation_is_not_made_for_ever(times: int, body: str | None, status: str):
    """A plan that cannot be read, for example; calls that differ are not counted together."""
    tell = HistoryBuilder()
    tell.message()
    for number in range(times):
        tell.reply(tell.ask(1, background="structured", body=body or f"{number}"), "no JSON")
    tell.answer_step(1)
    verdict = check("side_call_bound", tell.end().seal())
    assert verdict.status == (status if status == "fail" else "nothing")
    if status == "fail":
        assert verdict.says == "turn 1: one structured call was asked 31 times, 30 allowed"


@pytest.mark.parametrize(("depth", "status"), [(32, "pass"), (33, "fail")])
def test_subagents_that_hand_their_task_on_are_bounded(tell: HistoryBuilder, depth: int, status: str):
    """Each waits for the next one; the main conversation called two itself."""
    for number in range(1, depth + 2):
        tell.reply(tell.ask(1, side=f"subagent {number}"), tools=[True])
    verdict = check("side_call_bound", tell.end().seal())
    assert verdict.status == status
    if status == "fail":
        assert verdict.says == "turn 1: subagent 34 began while 33 others waited for their tools, 32 allowed"


def test_many_subagents_one_after_the_other_are_not_nested(tell: HistoryBuilder):
    """Each has ended, or sent its tool's result, before the next one begins."""
    for number in range(1, 60):
        (token,) = tell.reply(tell.ask(1, side=f"subagent {number}"), tools=[True])
        tell.reply(tell.ask(2, side=f"subagent {number}", results=[result(token)]), "The task is done.")
    assert check("side_call_bound", tell.end().seal()).status == "pass"


@pytest.mark.parametrize(("number", "status"), [(40, "pass"), (41, "fail")])
def test_subagents_in_the_background_that_start_others_are_bounded(tell: HistoryBuilder, number: int, status: str):
    """None waits for the one that it started; a try again offers the same call, and counts once."""
    for place in range(1, number + 1):
        (token,) = tell.reply(tell.ask(1, side=f"subagent {place}"), tools=[True], name="spawn_agent")
        tell.reply(tell.ask(2, side=f"subagent {place}", results=[result(token)]), "It is begun.")
    verdict = check("side_call_bound", tell.end().seal())
    assert verdict.status == status
    if status == "fail":
        assert verdict.says == "turn 1: subagents called further subagents 41 times, 40 allowed"
