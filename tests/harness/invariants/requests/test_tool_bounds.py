"""Rounds of tool calls, and the size of their results."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.history import History
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result


def _rounds(count: int) -> History:
    tell = HistoryBuilder()
    tell.message()
    results = []
    for step in range(1, count + 1):
        (token,) = tell.reply(tell.ask(step, results=results), tools=[True])
        results.append(tell.runs(token, for_s=0.01))
    tell.answer_step(count + 1, results)
    return tell.end().seal()


@pytest.mark.parametrize(("rounds", "status"), [(50, "pass"), (51, "fail")])
def test_a_turn_may_have_fifty_rounds(rounds: int, status: str):
    """Above the limits that agents commonly set themselves."""
    assert check("tool_round_bound", _rounds(rounds)).status == status


@pytest.mark.parametrize(("bound", "status"), [(5, "pass"), (4, "fail")])
def test_a_specs_limit_tightens_it(bound: int, status: str):
    """Five rounds and a last call without tools are five rounds."""
    assert check("tool_round_bound", _rounds(5), tool_rounds=bound).status == status


def _rounds_of_subagents(*counts: int) -> History:
    """Each subagent sends the results of so many rounds, and then answers."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True], name="task")
    for number, count in enumerate(counts, 1):
        for step in range(1, count + 2):
            tell.reply(tell.ask(step, side=f"subagent {number}"), "I look." if step <= count else "It is empty.")
    tell.reply(tell.ask(2, results=[result(token)]), f"Done {tell.nonce}")
    return tell.end().seal()


@pytest.mark.parametrize(("counts", "status"), [((50, 50), "pass"), ((3, 51), "fail")])
def test_a_subagent_may_have_fifty_rounds_too(counts: tuple[int, ...], status: str):
    """Each of them, whatever its siblings had."""
    verdict = check("tool_round_bound", _rounds_of_subagents(*counts))
    assert verdict.status == status
    if status == "fail":
        assert verdict.says == "subagent 2 of turn 1 had 51 rounds of tool calls, 50 allowed"
        assert len(verdict.evidence) == 1, "the one too many"


@pytest.mark.parametrize(("rounds", "bound", "status"), [(20, 5, "pass"), (70, 80, "pass"), (81, 80, "fail")])
def test_only_a_higher_limit_is_one_of_subagents_too(rounds: int, bound: int, status: str):
    """What a spec says of its turns need not be so of its subagents, which may do more than their parent."""
    assert check("tool_round_bound", _rounds_of_subagents(rounds), tool_rounds=bound).status == status


def _run_and_never_sent(rounds: int) -> HistoryBuilder:
    """The tools of the last round run, and the agent stops instead of asking with their results."""
    tell = HistoryBuilder()
    tell.message()
    results = []
    for step in range(1, rounds + 1):
        (token,) = tell.reply(tell.ask(step, results=results), tools=[True])
        results.append(tell.runs(token, for_s=0.01))
    return tell.end("Stopped after so many rounds.")


@pytest.mark.parametrize(("bound", "status"), [(5, "pass"), (4, "fail")])
def test_a_round_whose_results_were_never_sent_was_run_all_the_same(bound: int, status: str):
    """Five rounds ran, and only four were told to the model: its limit is five."""
    verdict = check("tool_round_bound", _run_and_never_sent(5).seal(), tool_rounds=bound)
    assert (verdict.status, verdict.says.startswith("turn 1 had 5 rounds of tool calls")) == (status, True)
    assert status == "pass" or verdict.evidence, "what shows the fifth one"


def test_a_round_that_the_agent_refused_to_run_is_none():
    """The model asked for a sixth, and nothing of it was run."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.reply(tell.ask(2, results=[tell.runs(token)]), tools=[True])
    assert check("tool_round_bound", tell.end("Enough.").seal(), tool_rounds=1).status == "pass"


def test_a_tool_that_starts_behind_the_stop_is_told_elsewhere():
    """The call was there before its user stopped it: that it runs all the same is `no_spend_after_abort`'s."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    (later,) = tell.reply(tell.ask(2, results=[tell.runs(token)]), tools=[True])
    tell.abort().starts(later)
    history = tell.end("", ended="aborted", exit_code=130).seal()
    assert check("tool_round_bound", history, tool_rounds=1).status == "pass"


def test_retries_of_a_step_are_no_rounds():
    """The same round is tried again."""
    tell = HistoryBuilder()
    tell.message()
    for _ in range(8):
        tell.stall(tell.ask(1))
    tell.answer_step(1)
    assert check("tool_round_bound", tell.end().seal(), tool_rounds=2).status == "nothing"


def test_rounds_after_the_front_end_gave_up_are_told_elsewhere():
    """They are `no_spend_after_abort`'s."""
    tell = HistoryBuilder()
    tell.message()
    for step in range(1, 9):
        if step == 4:
            tell.give_up(after_s=30)
        tell.reply(tell.ask(step), tools=[True])
    tell.end("", ended="gave up", exit_code=None)
    history = tell.seal()
    assert check("tool_round_bound", history, tool_rounds=2).status == "pass"
    assert check("tool_round_bound", history, tool_rounds=1).status == "fail"


@pytest.mark.parametrize(("chars", "status"), [(4100, "pass"), (4101, "fail")])
def test_a_result_may_be_a_mark_longer_than_its_bound(chars: int, status: str):
    """A hundred characters say where it was cut."""
    tell = HistoryBuilder()
    tell.message()
    tell.answer_step(2, [result("1.1.1", chars=10), result("1.1.2", chars=chars)])
    history = tell.end().seal()
    assert check("tool_result_bound", history, tool_result_chars=4000).status == status
    verdict = check("tool_result_bound", history)
    assert (verdict.status, verdict.says) == ("pass", f"the longest tool result had {chars} characters")
