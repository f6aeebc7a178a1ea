"""Violations at level strict: lost turns, text shown twice, work after an abort, stacks, hidden causes, exit codes."""

from collections.abc import Mapping

from hypothesis import strategies as st

from tests.properties.valid_runs import RunDraw, Violation
from tests.properties.violating_tools import begins_in_the_background
from wedgehog.harness.record.events.call import ToolResult
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.turn import PermissionAsked, ToldUsage
from wedgehog.harness.testing.history_builder import CUT_TEXT, result

TRACE = 'Traceback (most recent call last):\n  File "agent.py", line 7, in ask\nValueError: the reply is no JSON'


def _history_kept(play: RunDraw) -> None:
    """The third message starts a new conversation."""
    for carried in (True, True, False):
        number = play.tell.message()
        call = play.tell.ask(1, sees=None if carried else (number,))
        play.tell.reply(call, f"Done {play.tell.nonce}")
        play.tell.end()


def _stopped_turn_forgotten(play: RunDraw) -> None:
    """The user stops a turn in which words had come, and the next request has nothing of it."""
    play.tell.message()
    play.tell.answer_step(1)
    play.tell.end()
    play.tell.message()
    call = play.ask(1)
    play.tell.abort()
    play.tell.reply(call, CUT_TEXT, how="hung up")
    play.tell.end("", ended="aborted", exit_code=130)
    number = play.tell.message()
    play.tell.reply(play.tell.ask(1, sees=(number - 2, number), replies=()), f"Done {play.tell.nonce}")
    play.tell.end()


def _output_once(play: RunDraw) -> None:
    """A broken reply stays on the screen, and the next try starts it again."""
    play.tell.message()
    play.tell.cut(play.ask(1), CUT_TEXT)
    play.tell.answer_step(1)
    play.tell.end(f"{CUT_TEXT}{CUT_TEXT} gulls. {play.tell.nonce}")


def _runs_on(play: RunDraw) -> None:
    """A command ends by itself, long after the abort."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    play.tell.starts(token)
    play.tell.abort()
    play.tell.wait(20)
    play.tell.done(token)
    play.tell.end("", ended="aborted", exit_code=130)


def _reads_on(play: RunDraw) -> None:
    """A reply is read to its end after the abort."""
    play.tell.message()
    call = play.ask(1)
    play.tell.abort()
    play.tell.wait(20)
    play.tell.reply(call, "Nobody reads this.")
    play.tell.end("", ended="aborted", exit_code=130)


def _goes_on_with_its_result(play: RunDraw) -> None:
    """The stop counts as a failure of the tool, and the model is asked on."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    play.tell.starts(token)
    play.tell.abort()
    play.tell.reply(play.tell.ask(2, results=[result(token, printed=False, is_error=True)]), "So be it.")
    play.tell.end("", ended="aborted", exit_code=130)


def _begun_told(play: RunDraw) -> None:
    """A command had begun when it was stopped, and the model reads that it did not run."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    play.tell.starts(token)
    play.tell.abort()
    play.tell.end("", ended="aborted", exit_code=130)
    play.tell.message()
    told = result(token, printed=False, is_error=True, signs=("failed", "never_ran"))
    play.tell.reply(play.tell.ask(1, results=[told]), f"Done {play.tell.nonce}")
    play.tell.end()


def _rounds_of_a_failed_turn(play: RunDraw) -> None:
    """The provider fails behind a tool, and the next request has the message of that turn alone."""
    play.tell.message()
    (token,) = play.tell.reply(play.tell.ask(1), tools=[True])
    play.tell.refuse(play.tell.ask(2, results=[play.tell.runs(token)]))
    play.tell.fails()
    play.tell.message()
    play.tell.reply(play.tell.ask(1), f"Done {play.tell.nonce}")
    play.tell.end()


def _ends_late(play: RunDraw) -> None:
    """Nothing goes on after the abort, and the turn ends half a minute later."""
    play.tell.message()
    play.tell.hangs_up(play.ask(1))
    play.tell.abort()
    play.tell.wait(30)
    play.tell.end("", ended="aborted", exit_code=130)


def _no_traceback(play: RunDraw) -> None:
    """The user reads a stack."""
    play.tell.message()
    play.tell.refuse(play.ask(1))
    play.tell.fails(TRACE)


def _exit_code_tells(play: RunDraw) -> None:
    """A person reads an error, a script reads 0."""
    play.tell.message()
    play.tell.refuse(play.ask(1))
    play.tell.fails("Error: the provider is overloaded", exit_code=0)


def _instructions_kept(play: RunDraw) -> None:
    """The rules of the project are in the first request, and in none after that."""
    for rules in (True, False, False):
        play.tell.message()
        play.tell.reply(play.tell.ask(1, rules=rules), f"Done {play.tell.nonce}")
        play.tell.end()


def _kept_without_summary(play: RunDraw) -> None:
    """The model gives no words for a summary, and the first message is gone."""
    play.tell.message()
    play.tell.reply(play.tell.ask(1, loss_notices=()), f"Done {play.tell.nonce}")
    play.tell.end()
    number = play.tell.message()
    play.tell.reply(play.tell.ask(1, background="compact"), "")
    play.tell.reply(play.tell.ask(1, sees=(number,), loss_notices=()), f"Done {play.tell.nonce}")
    play.tell.end()


def _summed_up_once(play: RunDraw) -> None:
    """Each request is preceded by a new summary of all that was said."""
    for _ in range(4):
        play.tell.message()
        summary = play.tell.ask(1, background="summary", replies=[])
        play.tell.reply(summary, "They spoke of owls.")
        play.tell.reply(play.tell.ask(1, replies=[summary]), f"Done {play.tell.nonce}")
        play.tell.end()


def _failed_summary_bound(play: RunDraw) -> None:
    """Each message asks for a summary first, and each one fails."""
    for _ in range(play.draw(st.integers(6, 9))):
        play.tell.message()
        play.tell.refuse(play.tell.ask(1, background="compact"), 500)
        play.tell.reply(play.tell.ask(1), f"Done {play.tell.nonce}")
        play.tell.end()


def _session_goes_on(play: RunDraw) -> None:
    """The window is full, and each message is refused as the one before it."""
    play.tell.message()
    play.tell.refuse(play.ask(1), 400, message="prompt is too long: 9 tokens > 8 maximum")
    play.tell.fails()
    play.tell.message("recovery")
    play.tell.refuse(play.ask(1), 400, message="prompt is too long: 9 tokens > 8 maximum")
    play.tell.fails("Error: the conversation is too long")


def _asked_once(play: RunDraw) -> None:
    """The same request is sent a second time, and both replies come."""
    play.tell.message()
    play.tell.reply(play.ask(1), "Done and dusted.")
    play.tell.reply(play.ask(1), f"Done {play.tell.nonce}")
    play.tell.end()


def _said_once(play: RunDraw) -> None:
    """A retry adds the message again."""
    number = play.tell.message()
    play.tell.cut(play.ask(1))
    play.tell.wait(2)
    play.tell.reply(play.tell.ask(1, doubled=[number], repeated=[number]), f"Done {play.tell.nonce}")
    play.tell.end()


def _tools_once(play: RunDraw) -> None:
    """The tools are added once more with the turn."""
    play.tell.message()
    play.tell.reply(play.tell.ask(1, tools=["bash", "look", "bash"]), f"Done {play.tell.nonce}")
    play.tell.end()


def _behind_its_tools(play: RunDraw) -> None:
    """The message stands once more behind the results of tools, which an agent may do on purpose."""
    number = play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    play.tell.reply(play.tell.ask(2, results=[play.tell.runs(token)], doubled=[number]), f"Done {play.tell.nonce}")
    play.tell.end()


def _failure_told(play: RunDraw) -> None:
    """The model reads that the tool failed, and not why."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    play.tell.starts(token)
    play.tell.done(token, exit_code=7)
    result = ToolResult("call", 22, is_error=True, token=token, printed=False)
    play.tell.reply(play.tell.ask(2, results=[result]), f"Done {play.tell.nonce}")
    play.tell.end()


def _fails_silently(play: RunDraw) -> None:
    """The model reads what the command printed, and not that it failed."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    play.tell.starts(token)
    play.tell.done(token, exit_code=7)
    play.tell.reply(play.tell.ask(2, results=[result(token, signs=())]), f"Done {play.tell.nonce}")
    play.tell.end()


def _output_lost_at_a_stop(play: RunDraw) -> None:
    """The agent stops a command, and drops what it had printed."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    play.tell.starts(token)
    play.tell.wait(8)
    told = result(token, printed=False, signs=("stopped",), prints_first=False)
    play.tell.reply(play.tell.ask(2, results=[told]), f"Done {play.tell.nonce}")
    play.tell.end()


def _subagent_fails_silently(play: RunDraw) -> None:
    """The parent reads "(nothing)" for a subagent that failed."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True], name="task")
    play.tell.refuse(play.tell.ask(1, side="subagent 1", background="subagent"), 529)
    told = result(token, chars=9, printed=False, signs=("part",))
    play.tell.reply(play.tell.ask(2, results=[told]), f"Done {play.tell.nonce}")
    play.tell.end()


def _subagent_hears_nothing(play: RunDraw) -> None:
    """The model says nothing to a subagent, and the parent reads an empty result."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True], name="task")
    play.tell.reply(play.tell.ask(1, side="subagent 1", background="subagent"), "")
    play.tell.reply(play.tell.ask(2, results=[result(token, chars=0, printed=False)]), f"Done {play.tell.nonce}")
    play.tell.end()


def _subagent_ends_in_canned_words(play: RunDraw) -> None:
    """A subagent is ended at its limit, and the parent reads that the task is completed."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True], name="task")
    for step in range(1, 7):
        play.tell.reply(play.tell.ask(step, side="subagent 1", background="subagent"), tools=[True])
    told = result(token, chars=51, printed=False, signs=("success",))
    play.tell.reply(play.tell.ask(2, results=[told]), f"Done {play.tell.nonce}")
    play.tell.end()


def _subagent_end_told(play: RunDraw) -> None:
    """A subagent fails after its parent's turn, and the next message does not bring word of that."""
    play.tell.refuse(begins_in_the_background(play), 403)
    play.tell.wait(5)
    play.tell.message()
    play.tell.answer_step(1)
    play.tell.end()


def _subagent_words_told(play: RunDraw) -> None:
    """The next message brings word that a subagent has ended, and not what it said."""
    play.tell.reply(begins_in_the_background(play), "The file is empty. wqbcdn3e")
    play.tell.wait(5)
    play.tell.message()
    play.tell.reply(play.tell.ask(1, notices=["a1"], lead=False), f"Done {play.tell.nonce}")
    play.tell.end()


def _subagent_goes_on(play: RunDraw) -> None:
    """A message to a subagent that has ended begins its task anew."""
    call = begins_in_the_background(play)
    play.tell.reply(call, "The file is empty.")
    play.tell.wait(5)
    before = play.tell.message() - 1
    (token,) = play.tell.reply(play.tell.ask(1, notices=["a1"]), tools=[True], name="send_message")
    told = result(token, chars=14, printed=False, signs=("elsewhere",))
    play.tell.reply(play.tell.ask(2, results=[told], notices=["a1"]), f"Done {play.tell.nonce}")
    play.tell.end()
    play.tell.reply(play.tell.ask(1, side="reader 7", turn=before), "The file is empty.")


def _loop_noticed(play: RunDraw) -> None:
    """The model makes one call again and again, with one result."""
    play.tell.message()
    results: list[ToolResult] = []
    for step in range(1, play.draw(st.integers(12, 20))):
        (token,) = play.tell.reply(play.tell.ask(step, results=results), tools=[True], digest="a")
        results = [*results, result(token, chars=9)]
    play.tell.fails()


def _missing_tools_told(play: RunDraw) -> None:
    """A fault keeps the tool server away, and a turn without its tools says nothing of it."""
    turn = play.tell.message()
    play.tell.add(
        FaultFired(fault=0, name="refuse", link="tool:mcp", turn=turn, step=0, attempt=0, call=None, proof="port")
    )
    play.tell.reply(play.tell.ask(1, tools=("bash",), tool_notices=()), f"Done {play.tell.nonce}")
    play.tell.end()
    play.tell.message()
    play.tell.reply(play.tell.ask(1, tools=("bash", "weather"), tool_notices=()), f"Done {play.tell.nonce}")
    play.tell.end()


def _no_invented_answer(play: RunDraw) -> None:
    """The model asks its user, and the result is an answer that no user gave."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True], name="ask_user")
    told = result(token, chars=60, printed=False, signs=("elsewhere", "answered"))
    play.tell.reply(play.tell.ask(2, results=[told]), f"Done {play.tell.nonce}")
    play.tell.end()


def _no_false_error(play: RunDraw) -> None:
    """A turn is stopped, and its user reads a mistake of the program."""
    play.tell.message()
    call = play.ask(1)
    play.tell.abort()
    play.tell.reply(call, CUT_TEXT, how="hung up")
    play.tell.end("", ended="aborted", exit_code=130, stderr="TypeError: undefined is not a function")


def _usage_told(play: RunDraw) -> None:
    """The agent tells its user of a tenth of the input tokens."""
    play.tell.message()
    play.tell.answer_step(1)
    play.tell.end(usage=ToldUsage(input_tokens=100))


def _cut_told(play: RunDraw) -> None:
    """The beginning of the output looks like all of it."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    play.tell.starts(token)
    play.tell.done(token, exit_code=0)
    told = result(token, chars=200, printed=False, signs=("number",), prints_first=True)
    play.tell.reply(play.tell.ask(2, results=[told]), f"Done {play.tell.nonce}")
    play.tell.end()


def _next_command_runs(play: RunDraw) -> None:
    """A command has not ended when the next one is called, which never runs."""
    play.tell.message()
    (first,) = play.tell.reply(play.ask(1), tools=[True])
    play.tell.starts(first)
    told = result(first, printed=False)
    (second,) = play.tell.reply(play.ask(2, results=[told]), tools=[True])
    play.tell.answer_step(3, [told, result(second, printed=False)])
    play.tell.end()


def _output_told(play: RunDraw) -> None:
    """The command worked, and the model reads only that."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    play.tell.starts(token)
    play.tell.done(token, exit_code=0)
    told = result(token, chars=44, printed=False, signs=("failed", "number"), prints_first=False)
    play.tell.reply(play.tell.ask(2, results=[told]), f"Done {play.tell.nonce}")
    play.tell.end()


def _called_stopped(play: RunDraw) -> None:
    """The command worked, and its result says that it was stopped."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    play.tell.starts(token)
    play.tell.done(token, exit_code=0)
    told = result(token, signs=("failed", "stopped", "was_stopped"), prints_first=True)
    play.tell.reply(play.tell.ask(2, results=[told]), f"Done {play.tell.nonce}")
    play.tell.end()


def _not_asked_again(play: RunDraw) -> None:
    """The user allows a command once, and the next one runs without a question."""
    for asks in (True, False):
        number = play.tell.message()
        (token,) = play.tell.reply(play.ask(1), tools=[True])
        if asks:
            offered = ("allow_once", "allow_always", "reject_once")
            play.tell.add(PermissionAsked(turn=number, offered=offered, chosen="allow_once", tokens=(token,)))
        play.tell.answer_step(2, [play.tell.runs(token)])
        play.tell.end()


def _failed_turn_forgotten(play: RunDraw) -> None:
    """A tool ran, the turn failed, and the next one does not know of it."""
    play.tell.message()
    play.tell.answer_step(1)
    play.tell.end()
    number = play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True])
    play.tell.refuse(play.tell.ask(2, results=[play.tell.runs(token)]))
    play.tell.fails()
    play.tell.message()
    call = play.tell.ask(1, sees=[it for it in range(1, number + 2) if it != number], replies=[1])
    play.tell.reply(call, f"Done {play.tell.nonce}")
    play.tell.end()


def _cause_told(play: RunDraw) -> None:
    """The error of a part of the agent takes the place of the provider's."""
    play.tell.message()
    play.tell.refuse(play.ask(1), 429, message="Number of requests exceeds the rate limit")
    play.tell.fails("Error: Failed to select agent")


def _connection_told(play: RunDraw) -> None:
    """No request reaches the model, and the user reads of an error."""
    play.tell.message()
    play.tell.connection_refused()
    play.tell.fails("Error: Failed to select agent")


def _words_before_a_call(play: RunDraw) -> None:
    """The text beside a tool call is not stored."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), "Let me look at it.", tools=[True])
    results = [play.tell.runs(token)]
    play.tell.reply(play.tell.ask(2, results=results, replies=[]), f"Done {play.tell.nonce}")
    play.tell.end()


def _an_answer(play: RunDraw) -> None:
    """Only the messages of the user are stored."""
    for _ in range(2):
        play.tell.message()
        play.tell.reply(play.tell.ask(1, replies=[]), f"Done {play.tell.nonce}")
        play.tell.end()


def _only_its_words(play: RunDraw) -> None:
    """A turn's tool rounds are not stored, its words are."""
    play.tell.message()
    (token,) = play.tell.reply(play.tell.ask(1), tools=[True])
    play.tell.reply(play.tell.ask(2, results=[play.tell.runs(token)]), f"Done {play.tell.nonce}")
    play.tell.end()
    play.tell.message()
    play.tell.reply(play.tell.ask(1), f"Done {play.tell.nonce}")
    play.tell.end()


def _a_lost_call(play: RunDraw) -> None:
    """Of two calls the agent keeps and runs the first."""
    play.tell.message()
    first, _ = play.tell.reply(play.tell.ask(1), tools=[True, True])
    play.tell.reply(play.tell.ask(2, results=[play.tell.runs(first)]), f"Done {play.tell.nonce}")
    play.tell.end()


def _arguments_told(play: RunDraw) -> None:
    """The model reads only that its call was wrong."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[False], misfits=True)
    told = ToolResult("call", 13, is_error=True, token=token, printed=False, names_arguments=False)
    play.tell.reply(play.tell.ask(2, results=[told]), f"Done {play.tell.nonce}")
    play.tell.end()


def _cut_call_told(play: RunDraw) -> None:
    """A call is cut at the token limit, and the model reads that it was wrong."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[False], stop="max_tokens")
    told = ToolResult("call", 13, is_error=True, token=token, printed=False, signs=("failed",))
    play.tell.reply(play.tell.ask(2, results=[told]), f"Done {play.tell.nonce}")
    play.tell.end()


def _words_again(play: RunDraw) -> None:
    """What the model says before a tool call is shown with it, and with the answer once more."""
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), "First I look at the log.", tools=[True])
    play.tell.reply(play.tell.ask(2, results=[play.tell.runs(token)]), f"Done {play.tell.nonce}")
    play.tell.end(f"First I look at the log. First I look at the log. {play.tell.nonce}")


def _page_kept(play: RunDraw) -> None:
    """A page that is opened again is empty."""
    for opened in (None, "How can I help?"):
        play.tell.message()
        play.tell.reply(play.tell.ask(1), f"Done {play.tell.nonce}")
        play.tell.end(opened=opened)


STRICT: Mapping[str, tuple[Violation, ...]] = {
    "arguments_told": (_arguments_told,),
    "cut_call_told": (_cut_call_told,),
    "calls_kept": (_a_lost_call,),
    "cut_told": (_cut_told,),
    "next_command_runs": (_next_command_runs,),
    "asked_each_time": (_not_asked_again,),
    "output_told": (_output_told, _called_stopped),
    "history_kept": (_history_kept, _failed_turn_forgotten, _stopped_turn_forgotten),
    "output_once": (_output_once, _words_again),
    "stops_when_told": (_runs_on, _reads_on, _ends_late, _goes_on_with_its_result),
    "begun_told": (_begun_told,),
    "no_traceback": (_no_traceback,),
    "exit_code_tells": (_exit_code_tells,),
    "instructions_kept": (_instructions_kept,),
    "summed_up_once": (_summed_up_once,),
    "failed_summary_bound": (_failed_summary_bound,),
    "kept_without_summary": (_kept_without_summary,),
    "session_goes_on": (_session_goes_on,),
    "asked_once": (_asked_once,),
    "said_once": (_said_once, _behind_its_tools),
    "tools_once": (_tools_once,),
    "failure_told": (
        _failure_told,
        _fails_silently,
        _output_lost_at_a_stop,
        _subagent_fails_silently,
        _subagent_hears_nothing,
        _subagent_ends_in_canned_words,
    ),
    "cause_told": (_cause_told, _connection_told),
    "rounds_kept": (_only_its_words, _rounds_of_a_failed_turn),
    "subagent_end_told": (_subagent_end_told,),
    "subagent_words_told": (_subagent_words_told,),
    "subagent_goes_on": (_subagent_goes_on,),
    "loop_noticed": (_loop_noticed,),
    "missing_tools_told": (_missing_tools_told,),
    "no_invented_answer": (_no_invented_answer,),
    "usage_told": (_usage_told,),
    "no_false_error": (_no_false_error,),
    "page_kept": (_page_kept,),
    "words_kept": (_words_before_a_call, _an_answer),
}
"""The ways to violate each."""
