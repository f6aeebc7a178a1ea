"""Runs with one thing wrong: good turns around a single break, which one invariant must call red and no other may."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hypothesis import strategies as st

from wedgehog.harness.event import ToolResult
from wedgehog.harness.history import History
from wedgehog.harness.strategies.good import Draw, Play, begin, recovery, some_turns
from wedgehog.harness.strategies.telling import CUT_TEXT, result

Number = int | float | bool


@dataclass(frozen=True, slots=True)
class Broken:
    """A history, the invariant that it violates, and the bounds under which it does."""

    history: History
    invariant: str
    parameters: Mapping[str, Number] = field(default_factory=dict)


@st.composite
def broken(draw: Draw, invariant: str) -> Broken:
    """Runs that violate `invariant` and nothing else."""
    play = begin(draw)
    some_turns(play, least=0)
    parameters = BREAKS[invariant](play)
    if invariant != "session_recovers":
        recovery(play)
    return Broken(play.tell.seal(), invariant, parameters)


Break = Callable[[Play], Mapping[str, Number]]


def _pick(play: Play, *ways: Break) -> Mapping[str, Number]:
    chosen: Break = play.draw(st.sampled_from(ways))
    return chosen(play)


def _tool_call_pairing(play: Play) -> Mapping[str, Number]:
    """The history holds a call without its result."""
    play.tell.message()
    play.tell.refuse(play.ask(1), 400, pairing=True, scripted=False)
    play.tell.fails()
    return {}


def _paid_too_often(play: Play) -> Mapping[str, Number]:
    """One step is paid for again and again, and each attempt brings a little."""
    play.tell.message()
    for _ in range(play.draw(st.integers(14, 30))):
        play.tell.stall(play.ask(1), delivered=5, waits_s=1)
    play.tell.fails()
    return {}


def _paid_for_nothing(play: Play) -> Mapping[str, Number]:
    """Across two steps nothing arrives: each step is within its bound."""
    play.tell.message()
    for attempt in range(play.draw(st.integers(12, 24))):
        play.tell.stall(play.ask(1 + attempt % 2), waits_s=1)
    play.tell.fails()
    return {}


def _no_progress(play: Play) -> Mapping[str, Number]:
    """More requests than the spec allows come to nothing, paid or refused."""
    play.tell.message()
    for attempt in range(play.draw(st.integers(12, 14))):
        call = play.ask(1)
        if attempt % 2:
            play.tell.refuse(call)
        else:
            play.tell.stall(call, delivered=5, waits_s=1)
        play.tell.wait(1)
    play.tell.fails()
    return {"calls_without_progress": 11}


def _too_many_calls(play: Play) -> Mapping[str, Number]:
    """More requests than the spec allows, background ones among them."""
    play.tell.message()
    for _ in range(60):
        play.tell.reply(play.tell.ask(1, background="check"), "ok")
    play.tell.answer_step(1)
    play.tell.end()
    return {"calls_per_turn": 60}


def _storm_between_turns(play: Play) -> Mapping[str, Number]:
    """A storm of paid calls that no stimulus asked for."""
    play.tell.message()
    play.tell.answer_step(1)
    play.tell.end()
    for _ in range(play.draw(st.integers(14, 40))):
        play.tell.stall(play.tell.ask(1, turn=0), waits_s=1)
    return {}


def _paid_call_bound(play: Play) -> Mapping[str, Number]:
    return _pick(play, _paid_too_often, _paid_for_nothing, _no_progress, _too_many_calls, _storm_between_turns)


def _spend_bound(play: Play) -> Mapping[str, Number]:
    """A huge context, again and again: $3 per million input tokens."""
    play.tell.message()
    for _ in range(5):
        play.tell.stall(play.ask(1), delivered=5, waits_s=1)
    play.tell.reply(play.ask(1), f"Done {play.tell.nonce}", input_tokens=1_000_000)
    play.tell.end()
    return {"usd_per_turn": 2.5}


def _error_surfaced(play: Play) -> Mapping[str, Number]:
    """The provider stays down, and the user gets an apology or nothing at all."""
    play.tell.message()
    for _ in range(play.draw(st.integers(1, 3))):
        play.tell.refuse(play.ask(1), 503)
        play.tell.wait(1)
    play.tell.end(play.draw(st.sampled_from(["", "Sorry, I can't help with that right now."])))
    return {}


def _session_recovers(play: Play) -> Mapping[str, Number]:
    """No message is answered any more; each ends in an honest error."""
    for _ in range(2):
        play.tell.message("recovery")
        play.tell.refuse(play.ask(1), 503)
        play.tell.fails()
    return {}


def _killed_at_its_deadline(play: Play) -> Mapping[str, Number]:
    play.tell.message()
    call = play.ask(1)
    play.tell.wait(121.5).deadline(120)
    play.tell.reply(call, how="hung up", delivered=0)
    # What follows is told under the deadline: an agent that is being stopped may do anything.
    for _ in range(play.draw(st.sampled_from([0, 40]))):
        play.tell.refuse(play.ask(1), 401)
    play.tell.end("", ended="deadline", exit_code=play.draw(st.sampled_from([0, -2])))
    return {}


def _slow_to_the_end(play: Play) -> Mapping[str, Number]:
    play.tell.message()
    play.tell.reply(play.ask(1), f"Done {play.tell.nonce}", took_s=play.draw(st.sampled_from([122.0, 500.0])))
    play.tell.end()
    return {}


def _front_end_waited_in_vain(play: Play) -> Mapping[str, Number]:
    play.tell.message()
    call = play.ask(1)
    play.tell.wait(90).give_up(after_s=90.0)
    play.tell.reply(call, how="hung up", delivered=0)
    play.tell.end("", ended="gave up", exit_code=None)
    return {"turn_s": 90}


def _never_asks_again(play: Play) -> Mapping[str, Number]:
    play.tell.message()
    play.tell.answer_step(1)
    play.tell.end().message()
    play.tell.wait(62).start_missed(60)
    play.tell.end("", ended="deadline", exit_code=-2)
    return {}


def _turn_deadline(play: Play) -> Mapping[str, Number]:
    return _pick(play, _killed_at_its_deadline, _slow_to_the_end, _front_end_waited_in_vain, _never_asks_again)


def _tool_deadline(play: Play) -> Mapping[str, Number]:
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


def _turn_answered(play: Play) -> Mapping[str, Number]:
    """One stall, and the turn is lost, if with an honest error."""
    play.tell.message()
    play.tell.stall(play.ask(1))
    play.tell.fails("Error: Timeout")
    return {}


def _tool_round_bound(play: Play) -> Mapping[str, Number]:
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


def _tool_result_bound(play: Play) -> Mapping[str, Number]:
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    play.tell.runs(token)
    play.tell.answer_step(2, [result(token, chars=4101)])
    play.tell.end()
    return {"tool_result_chars": 4000}


def _no_spend_after_abort(play: Play) -> Mapping[str, Number]:
    """The user or the front end has gone, and the loop goes on."""
    play.tell.message()
    call = play.ask(1)
    by_abort = play.draw(st.booleans())
    if by_abort:
        play.tell.abort()
    else:
        play.tell.wait(30).give_up(after_s=30.0)
    play.tell.reply(call, tools=[True])
    play.tell.wait(play.draw(st.sampled_from([2.0, 60.0])))
    for _ in range(play.draw(st.integers(1, 20))):
        play.tell.reply(play.ask(2), tools=[True])
    play.tell.end("", ended="aborted" if by_abort else "gave up", exit_code=None)
    return {}


def _deaf_to_retry_after(play: Play) -> Mapping[str, Number]:
    is_date = play.draw(st.booleans())
    play.tell.message()
    play.tell.refuse(play.ask(1), 429, retry_after_s=20, is_date=is_date)
    play.tell.wait(16.5 if is_date else 17.5)
    play.tell.answer_step(1)
    play.tell.end()
    return {}


def _hopeless_repeat(play: Play) -> Mapping[str, Number]:
    play.tell.message()
    play.tell.refuse(play.ask(1), play.draw(st.sampled_from([400, 401])))
    play.tell.wait(5)
    play.tell.refuse(play.ask(1), 503)
    play.tell.fails()
    return {}


def _hammering(play: Play) -> Mapping[str, Number]:
    play.tell.message()
    for _ in range(play.draw(st.integers(4, 8))):
        call = play.ask(1)
        if play.draw(st.booleans()):
            play.tell.refuse(call, 503)
        else:
            play.tell.cut(call)
        play.tell.wait(0.02)
    play.tell.fails()
    return {}


def _endless_attempts(play: Play) -> Mapping[str, Number]:
    play.tell.message()
    for _ in range(play.draw(st.integers(31, 45))):
        play.tell.refuse(play.ask(1), 503)
        play.tell.wait(1)
    play.tell.fails()
    return {}


def _retry_discipline(play: Play) -> Mapping[str, Number]:
    return _pick(play, _deaf_to_retry_after, _hopeless_repeat, _hammering, _endless_attempts)


def _no_half_calls(play: Play) -> Mapping[str, Number]:
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


def _truncation_noticed(play: Play) -> Mapping[str, Number]:
    """Half a reply is the answer, and the exit code is 0."""
    play.tell.message()
    if play.draw(st.booleans()):
        play.tell.cut(play.ask(1), CUT_TEXT)
    else:
        play.tell.reply(play.ask(1), CUT_TEXT, stop="max_tokens")
    play.tell.end(CUT_TEXT)
    return {}


def _work_kept(play: Play) -> Mapping[str, Number]:
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


BREAKS: Mapping[str, Break] = {
    "error_surfaced": _error_surfaced,
    "no_half_calls": _no_half_calls,
    "no_spend_after_abort": _no_spend_after_abort,
    "paid_call_bound": _paid_call_bound,
    "retry_discipline": _retry_discipline,
    "session_recovers": _session_recovers,
    "spend_bound": _spend_bound,
    "tool_call_pairing": _tool_call_pairing,
    "tool_deadline": _tool_deadline,
    "tool_result_bound": _tool_result_bound,
    "tool_round_bound": _tool_round_bound,
    "truncation_noticed": _truncation_noticed,
    "turn_answered": _turn_answered,
    "turn_deadline": _turn_deadline,
    "work_kept": _work_kept,
}
"""How each invariant is broken, each way with the bounds that it needs."""
