"""Violations by tools: too slow, too often, half a call, run twice, or results lost."""

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import strategies as st

from tests.properties.valid_runs import RunDraw, Violation
from wedgehog.fake_llm.script.misformed_calls import INVENTED_ANSWER
from wedgehog.harness.record.events.call import ToolResult
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.service import StoreAsked, TokenAsked, ToolRefused
from wedgehog.harness.record.events.turn import PermissionAsked
from wedgehog.harness.testing.history_builder import result


def _tool_deadline(play: RunDraw) -> None:
    """A tool takes longer than `tool_s`, with or without a beacon."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    if play.draw(st.booleans()):
        carried = play.tell.runs(token, for_s=40)
    else:
        play.tell.wait(40)
        carried = result(token)
    play.tell.answer_step(2, [carried])
    play.tell.end()
    play.bounds["tool_s"] = 35


def _tool_round_bound(play: RunDraw) -> None:
    """The model asks for a tool in each reply, and the agent runs it."""
    bound = play.draw(st.sampled_from([10, 50]))
    play.tell.message()
    results: list[ToolResult] = []
    for step in range(1, bound + play.draw(st.integers(2, 5))):
        (token,) = play.tell.reply(play.ask(step, results), tools=[True])
        results.append(play.tell.runs(token, for_s=0.01))
    play.tell.answer_step(len(results) + 1, results)
    play.tell.end()
    if bound != 50:
        play.bounds["tool_rounds"] = bound


def _tool_result_bound(play: RunDraw) -> None:
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    play.tell.runs(token)
    play.tell.answer_step(2, [result(token, chars=4101)])
    play.tell.end()
    play.bounds["tool_result_chars"] = 4000


def _no_invented_result(play: RunDraw) -> None:
    """The model goes on behind its call, and that is the answer."""
    play.tell.message()
    call = play.ask(1)
    play.tell.fires("text_call", call, invents=INVENTED_ANSWER)
    play.tell.reply(call, INVENTED_ANSWER)
    play.tell.end(play.draw(st.sampled_from(["", "Well. "])) + INVENTED_ANSWER)


def _no_half_calls(play: RunDraw) -> None:
    """The arguments are cut, but the command runs."""
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


def _broke_in_the_shell(play: RunDraw) -> None:
    """The shell gets half a command, and says so."""
    play.tell.message()
    (token,) = play.tell.cut(play.ask(1), tools=[False])
    said = replace(result(token, printed=False), broken_off="Syntax error: Unterminated quoted string")
    play.tell.answer_step(2, [said])
    play.tell.end()


def _work_kept(play: RunDraw) -> None:
    """One of two tools fails, and the result of the other is lost."""
    play.tell.message()
    fast, slow = play.tell.reply(play.ask(1), tools=[True, True])
    play.tell.runs(fast)
    play.tell.starts(slow)
    play.tell.wait(3)
    if play.draw(st.booleans()):
        play.tell.answer_step(2, [result(slow, is_error=True)])
        play.tell.end()
    else:
        play.tell.fails("Error: timed out")
        play.bounds["asked"] = True


def _ran_for_the_cut_reply_too(play: RunDraw) -> None:
    """A whole call arrives before the reply is cut; it runs, and runs again after the retry."""
    play.tell.message()
    (token,) = play.tell.cut(play.ask(1), tools=[True])
    play.tell.runs(token, for_s=play.draw(st.sampled_from([0.1, 5.0])))
    play.tell.reply(play.ask(1), tools=[True])
    play.tell.answer_step(2, [play.tell.runs(token)])
    play.tell.end()


def _ran_again_after_a_kill(play: RunDraw) -> None:
    """The restarted agent runs the call in its session again."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    play.tell.starts(token)
    if play.draw(st.booleans()):
        play.tell.done(token)
    play.tell.kill(play.draw(st.sampled_from(["tree", "leader"]))).message()
    play.tell.answer_step(1, [play.tell.runs(token)])
    play.tell.end()


def _ran_until_it_worked(play: RunDraw) -> None:
    """A tool that fails is run again."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    for _ in range(play.draw(st.integers(1, 4))):
        play.tell.starts(token)
        play.tell.done(token, exit_code=1)
    play.tell.answer_step(2, [play.tell.runs(token)])
    play.tell.end()


def _background_returns(play: RunDraw) -> None:
    """The tool waits until the job ends, or until its own timeout."""
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


def _output_read(play: RunDraw) -> None:
    """A command that only prints is stopped at a limit."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    play.tell.starts(token)
    play.tell.wait(play.draw(st.floats(6, 40)))
    play.tell.answer_step(2, [result(token, is_error=True)])
    play.tell.end()


def _result_durable(play: RunDraw) -> None:
    """A result that was sent or saved is missing after the kill, or reported as lost."""
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


def _tool_dead_after_healing(play: RunDraw) -> None:
    """The recovery message is answered, but a tool that it needs is gone, does not run, or gives an error."""
    play.tell.message("recovery")
    broken = play.draw(st.sampled_from(["shell gone", "shell dead", "host gone", "host refuses", "output dropped"]))
    results: tuple[ToolResult, ...] = ()
    if broken != "shell gone":
        (token,) = play.tell.reply(play.ask(1), tools=[True])
        lost = result(token, is_error=True, printed=False)
        results = (lost if broken == "shell dead" else play.tell.runs(token),)
    if broken in ("host refuses", "output dropped"):
        (token,) = play.tell.reply(play.ask(2, results), tools=[True])
        if broken == "output dropped":
            play.tell.runs(token)
        results += (result(token, is_error=True, printed=False),)
    play.tell.answer_step(len(results) + 1, results)
    play.tell.end()
    play.recovered = True


def _output_dropped(play: RunDraw) -> None:
    """A command ends well, and the next request carries an error, no text or nothing as its result."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    play.tell.starts(token)
    play.tell.done(token, exit_code=0)
    dropped = (
        result(token, is_error=True, printed=False),
        result(token, chars=11, printed=False),
        result(token, chars=40, printed=False, signs=["bare"]),
    )
    play.tell.answer_step(2, play.draw(st.sampled_from([(), *((it,) for it in dropped)])))
    play.tell.end()


def _token_request_bound(play: RunDraw) -> None:
    """After an expired token the endpoint is asked once more than is allowed."""
    allowed = play.draw(st.integers(1, 5))
    play.tell.message()
    for _request in range(allowed + 1):
        play.tell.add(TokenAsked(turn=play.tell.turn, grant="refresh_token", status=400, error="invalid_grant"))
    play.tell.answer_step(1)
    play.tell.end()
    play.bounds["token_requests"] = allowed


def _server_start_bound(play: RunDraw) -> None:
    """A server that a fault killed is started once more than is allowed."""
    allowed = play.draw(st.integers(1, 20))
    play.tell.message()
    struck = {"fault": 0, "name": "cut", "link": "ipc:mcp", "step": 1, "call": None, "proof": "built"}
    for attempt in range(1, allowed + 2):
        play.tell.add(FaultFired(turn=play.tell.turn, attempt=attempt, **struck))
    play.tell.answer_step(1)
    play.tell.end()
    play.bounds["starts_in_20_s"] = allowed


def _tool_refusal_bound(play: RunDraw) -> None:
    """An agent connects once more than is allowed to a tool host that refuses it."""
    allowed = play.draw(st.integers(1, 20))
    play.tell.message()
    for _request in range(allowed + 1):
        play.tell.add(ToolRefused(turn=play.tell.turn, status=401, server=1))
    play.tell.answer_step(1)
    play.tell.end()
    play.bounds["refused_requests"] = allowed


def _rows_bound(play: RunDraw) -> None:
    """A second message adds the same rows again; reads and updates add none."""
    rows = play.draw(st.integers(1, 5))
    for _message in range(2):
        play.tell.message()
        (token,) = play.tell.reply(play.ask(1), tools=[True])
        for _row in range(rows):
            for number, (verb, count) in enumerate([("INSERT", 1), ("SELECT", 7), ("UPDATE", 9)], start=1):
                play.tell.add(StoreAsked(number=number, verb=verb, rows=count, latency_s=0.05))
        play.tell.answer_step(2, [play.tell.runs(token)])
        play.tell.end()
    play.bounds["rows"] = rows


def _memory_loss_told(play: RunDraw) -> None:
    """The database fails in a turn, which is answered as if it were the first; the next one has its memory again."""
    for lost in (False, True, False):
        number = play.tell.message()
        if lost:
            fired = FaultFired(
                fault=0, name="cut", link="tcp:db", turn=number, step=None, attempt=None, call=None, proof="x"
            )
            play.tell.add(fired)
        play.tell.reply(play.tell.ask(1, sees=[number] if lost else None), f"Done {play.tell.nonce}")
        play.tell.end()


def _side_call_bound(play: RunDraw) -> None:
    """The parent runs a subagent with the same prompt again and again; each run fails, or brings nothing."""
    bound = play.draw(st.sampled_from([3, 12]))
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    stalls = play.draw(st.booleans())
    for _ in range(bound + 2 if stalls else 31):
        call = play.tell.ask(1, side="subagent 1")
        if stalls:
            play.tell.stall(call, waits_s=1.0)
        else:
            play.tell.refuse(call, 529)
        play.tell.wait(1.0)
    play.tell.answer_step(2, [result(token, is_error=True)])
    play.tell.end()
    if bound != 12:
        play.bounds["per_step"] = bound


def _subagent_kept(play: RunDraw) -> None:
    """The result of a subagent is lost; those before it were passed on."""
    play.tell.message()
    first, second = play.tell.reply(play.ask(1), tools=[True, True])
    calls = [play.tell.ask(1, side=f"subagent {number}") for number in (1, 2)]
    for call in calls:
        play.tell.reply(call, "The task is done.")
    kept = play.draw(st.sampled_from(calls))
    call = play.tell.ask(2, results=[result(first), result(second)], quotes=[kept])
    play.tell.reply(call, f"Done {play.tell.nonce}")
    play.tell.end()


def _subagent_failure_told(play: RunDraw) -> None:
    """The parent reads an empty result for a subagent that failed."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True], name="task")
    play.tell.refuse(play.tell.ask(1, side="subagent 1", background="subagent"), 529)
    play.tell.reply(play.tell.ask(2, results=[result(token, chars=0, printed=False)]), f"Done {play.tell.nonce}")
    play.tell.end()


def begins_in_the_background(play: RunDraw) -> int:
    """A turn that is over before its subagent has ended; returns the number of the subagent's call."""
    turn = play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True], name="task")
    told = result(token, chars=30, printed=False, signs=("elsewhere",))
    play.tell.reply(play.tell.ask(2, results=[told]), f"Done {play.tell.nonce}")
    play.tell.end()
    return play.tell.ask(1, side="subagent 1", turn=turn)


def _subagent_returns(play: RunDraw) -> None:
    """A subagent ends well after its parent's turn, and the next message does not bring what it said."""
    call = begins_in_the_background(play)
    play.tell.reply(call, "The task is done.")
    play.tell.wait(play.draw(st.floats(1.5, 30)))
    play.tell.message()
    play.tell.answer_step(1)
    play.tell.end()


def _subagent_stops(play: RunDraw) -> None:
    """The model stops a subagent and is told so, and the subagent asks on."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True], name="task")
    begun = result(token, chars=30, printed=False, signs=("elsewhere",))
    (stop,) = play.tell.reply(play.tell.ask(2, results=[begun]), tools=[True], name="stop_agent")
    stopped = result(stop, chars=30, printed=False, signs=("stopped",))
    play.tell.reply(play.tell.ask(3, results=[begun, stopped]), f"Done {play.tell.nonce}")
    for step in range(1, play.draw(st.integers(2, 5)) + 1):
        play.tell.wait(3)
        play.tell.reply(play.tell.ask(step, side="subagent 1"), tools=[True])
    play.tell.end()


def _missing_tool_told(play: RunDraw) -> None:
    """The model calls `shell`, which is not offered, and the result is empty."""
    play.tell.message()
    (token,) = play.tell.reply(play.tell.ask(1, tools=["bash"]), tools=[True])
    play.tell.answer_step(2, [result(token, chars=0, printed=False)])
    play.tell.end()


def _no_denied_calls(play: RunDraw) -> None:
    """The user denies the call or does not answer, and it runs."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    chosen = play.draw(st.sampled_from(["reject_once", ""]))
    play.tell.add(PermissionAsked(turn=1, offered=("allow_once", "reject_once"), chosen=chosen, tokens=(token,)))
    play.tell.answer_step(2, [play.tell.runs(token)])
    play.tell.end()


def _whole_call_does_not_run(play: RunDraw) -> None:
    """The half arguments of the broken try stand before the whole ones, and the model reads that they are wrong."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    carried = [play.tell.runs(token)]
    play.tell.cut(play.ask(2, carried), tools=[False])
    play.tell.wait(1)
    (again,) = play.tell.reply(play.ask(2, carried), tools=[True])
    play.tell.answer_step(3, [*carried, result(again, is_error=True, printed=False)])
    play.tell.end()


TOOLS: Mapping[str, tuple[Violation, ...]] = {
    "at_most_once_tools": (_ran_for_the_cut_reply_too, _ran_again_after_a_kill, _ran_until_it_worked),
    "background_returns": (_background_returns,),
    "missing_tool_told": (_missing_tool_told,),
    "subagent_failure_told": (_subagent_failure_told,),
    "memory_loss_told": (_memory_loss_told,),
    "no_denied_calls": (_no_denied_calls,),
    "no_invented_result": (_no_invented_result,),
    "no_half_calls": (_no_half_calls, _broke_in_the_shell),
    "output_read": (_output_read,),
    "result_durable": (_result_durable,),
    "rows_bound": (_rows_bound,),
    "token_request_bound": (_token_request_bound,),
    "side_call_bound": (_side_call_bound,),
    "subagent_kept": (_subagent_kept,),
    "subagent_returns": (_subagent_returns,),
    "subagent_stops": (_subagent_stops,),
    "tools_alive": (_tool_dead_after_healing, _output_dropped),
    "tool_deadline": (_tool_deadline,),
    "server_start_bound": (_server_start_bound,),
    "tool_refusal_bound": (_tool_refusal_bound,),
    "tool_result_bound": (_tool_result_bound,),
    "tool_round_bound": (_tool_round_bound,),
    "whole_call_runs": (_whole_call_does_not_run,),
    "work_kept": (_work_kept,),
}
