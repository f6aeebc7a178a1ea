"""Tools that go wrong: too slow, too often, half a call, twice, or their results lost."""

from collections.abc import Mapping

from hypothesis import strategies as st

from wedgehog.harness.record.event import ToolResult
from wedgehog.harness.testing.breaking import BoundValue, Violation, pick
from wedgehog.harness.testing.history_builder import result
from wedgehog.harness.testing.valid_runs import RunDraw


def _tool_deadline(play: RunDraw) -> Mapping[str, BoundValue]:
    """A tool takes longer than promised, with or without a word of its own."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    if play.draw(st.booleans()):
        carried = play.tell.runs(token, for_s=40)
    else:
        play.tell.wait(40)
        carried = result(token)
    play.tell.answer_step(2, [carried])
    play.tell.end()
    return {"tool_s": 35}


def _tool_round_bound(play: RunDraw) -> Mapping[str, BoundValue]:
    """The model always wants one more tool, and gets it; the history grows."""
    bound = play.draw(st.sampled_from([10, 50]))
    play.tell.message()
    results: list[ToolResult] = []
    for step in range(1, bound + play.draw(st.integers(2, 5))):
        (token,) = play.tell.reply(play.ask(step, results), tools=[True])
        results.append(play.tell.runs(token, for_s=0.01))
    play.tell.answer_step(len(results) + 1, results)
    play.tell.end()
    return {} if bound == 50 else {"tool_rounds": bound}


def _tool_result_bound(play: RunDraw) -> Mapping[str, BoundValue]:
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    play.tell.runs(token)
    play.tell.answer_step(2, [result(token, chars=4101)])
    play.tell.end()
    return {"tool_result_chars": 4000}


def _no_half_calls(play: RunDraw) -> Mapping[str, BoundValue]:
    """The arguments are cut, and the command runs all the same."""
    play.tell.message()
    (token,) = play.tell.cut(play.ask(1), tools=[False])
    play.tell.starts(token)
    play.tell.wait(1)
    if play.draw(st.booleans()):
        play.tell.done(token)
        play.tell.answer_step(2, [result(token)])
        play.tell.end()
    else:
        play.tell.fails()
    return {}


def _work_kept(play: RunDraw) -> Mapping[str, BoundValue]:
    """One of two tools fails, and what the other had done is gone."""
    play.tell.message()
    fast, slow = play.tell.reply(play.ask(1), tools=[True, True])
    play.tell.runs(fast)
    play.tell.starts(slow)
    play.tell.wait(3)
    if play.draw(st.booleans()):
        play.tell.answer_step(2, [result(slow, is_error=True)])
        play.tell.end()
        return {}
    play.tell.fails("Error: timed out")
    return {"asked": True}


def _ran_for_the_cut_reply_too(play: RunDraw) -> Mapping[str, BoundValue]:
    """The call had come whole when the reply was cut; the retry's is the same, and runs as well."""
    play.tell.message()
    (token,) = play.tell.cut(play.ask(1), tools=[True])
    play.tell.runs(token, for_s=play.draw(st.sampled_from([0.1, 5.0])))
    play.tell.reply(play.ask(1), tools=[True])
    play.tell.answer_step(2, [play.tell.runs(token)])
    play.tell.end()
    return {}


def _ran_again_after_a_kill(play: RunDraw) -> Mapping[str, BoundValue]:
    """The restarted agent finds the call in its session, and does it again."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    play.tell.starts(token)
    if play.draw(st.booleans()):
        play.tell.done(token)
    play.tell.kill(play.draw(st.sampled_from(["tree", "leader"]))).message()
    play.tell.answer_step(1, [play.tell.runs(token)])
    play.tell.end()
    return {}


def _ran_until_it_worked(play: RunDraw) -> Mapping[str, BoundValue]:
    """A tool that fails is simply run again."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    for _ in range(play.draw(st.integers(1, 4))):
        play.tell.starts(token)
        play.tell.done(token, exit_code=1)
    play.tell.answer_step(2, [play.tell.runs(token)])
    play.tell.end()
    return {}


def _at_most_once_tools(play: RunDraw) -> Mapping[str, BoundValue]:
    return pick(play, _ran_for_the_cut_reply_too, _ran_again_after_a_kill, _ran_until_it_worked)


def _background_returns(play: RunDraw) -> Mapping[str, BoundValue]:
    """The tool waits for the job, until it ends, or until its own patience does."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    play.tell.starts(token, background=True)
    play.tell.wait(play.draw(st.sampled_from([3.1, 30.0, 60.0])))
    if play.draw(st.booleans()):
        play.tell.done(token)
        play.tell.answer_step(2, [result(token)])
        play.tell.end()
    elif play.draw(st.booleans()):
        play.tell.answer_step(2, [result(token, is_error=True)])
        play.tell.end()
    else:
        play.tell.fails("Error: the tool timed out")
    return {}


def _result_durable(play: RunDraw) -> Mapping[str, BoundValue]:
    """The result had been sent, or saved, and after the kill it is gone, or only called lost."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    carried = play.tell.runs(token)
    sent = play.draw(st.booleans())
    if sent:
        play.ask(2, [carried])
    play.tell.kill(saved=[] if sent else [token]).message()
    left = play.draw(st.sampled_from([[], [result(token, is_error=True, printed=False)]]))
    play.tell.answer_step(1, left)
    play.tell.end()
    return {}


def _rows_bound(play: RunDraw) -> Mapping[str, BoundValue]:
    """The same rows are added for a second message; what is only read, or changed, adds none."""
    rows = play.draw(st.integers(1, 5))
    for _message in range(2):
        play.tell.message()
        (token,) = play.tell.reply(play.ask(1), tools=[True])
        for _row in range(rows):
            play.tell.stores(1).stores(7, "SELECT").stores(9, "UPDATE")
        play.tell.answer_step(2, [play.tell.runs(token)])
        play.tell.end()
    return {"rows": rows}


TOOLS: Mapping[str, Violation] = {
    "at_most_once_tools": _at_most_once_tools,
    "background_returns": _background_returns,
    "no_half_calls": _no_half_calls,
    "result_durable": _result_durable,
    "rows_bound": _rows_bound,
    "tool_deadline": _tool_deadline,
    "tool_result_bound": _tool_result_bound,
    "tool_round_bound": _tool_round_bound,
    "work_kept": _work_kept,
}
