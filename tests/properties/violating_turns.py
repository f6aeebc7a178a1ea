"""Violations by calls and turns: too many, too expensive or too fast calls; silent, false or lost answers."""

from collections.abc import Mapping

from hypothesis import strategies as st

from tests.properties.valid_runs import RunDraw, Violation
from wedgehog.harness.record.events.run import BadCertificateShown
from wedgehog.harness.record.events.service import ChatSeen
from wedgehog.harness.record.events.turn import DeliveredAgain
from wedgehog.harness.testing.history_builder import CUT_TEXT


def _paid_too_often(play: RunDraw) -> None:
    """One step is paid too often; each attempt delivers a few tokens."""
    play.tell.message()
    for _ in range(play.draw(st.integers(14, 30))):
        play.tell.stall(play.ask(1), delivered=5, waits_s=1)
    play.tell.fails()


def _paid_for_nothing(play: RunDraw) -> None:
    """Paid calls of two steps deliver nothing; each step is within its bound."""
    play.tell.message()
    for attempt in range(play.draw(st.integers(12, 24))):
        play.tell.stall(play.ask(1 + attempt % 2), waits_s=1)
    play.tell.fails()


def _no_progress(play: RunDraw) -> None:
    """More requests without progress than the spec allows, paid or refused."""
    play.tell.message()
    for attempt in range(play.draw(st.integers(12, 14))):
        call = play.ask(1)
        if attempt % 2:
            play.tell.refuse(call)
        else:
            play.tell.stall(call, delivered=5, waits_s=1)
        play.tell.wait(1)
    play.tell.fails()
    play.bounds["calls_without_progress"] = 11


def _too_many_calls(play: RunDraw) -> None:
    """More requests than the spec allows, most of them background calls."""
    play.tell.message()
    for at in range(60):
        play.tell.reply(play.tell.ask(1, background="check", body=f"check {at}"), "ok")
    play.tell.answer_step(1)
    play.tell.end()
    play.bounds["calls_per_turn"] = 60


def _compacts_for_ever(play: RunDraw) -> None:
    """One request for a summary after the other, and none of the conversation."""
    play.tell.message()
    for at in range(31):
        play.tell.reply(play.tell.ask(1, background="summary", body=f"part {at}"), "They spoke of owls.")
    play.tell.answer_step(1)
    play.tell.end()


def _storm_between_turns(play: RunDraw) -> None:
    """Many paid calls without an open turn."""
    play.tell.message()
    play.tell.answer_step(1)
    play.tell.end()
    for _ in range(play.draw(st.integers(14, 40))):
        play.tell.stall(play.tell.ask(1, turn=0), waits_s=1)


def _spend_bound(play: RunDraw) -> None:
    """Six calls with a large input: $3 per million input tokens."""
    play.tell.message()
    for _ in range(5):
        play.tell.stall(play.ask(1), delivered=5, waits_s=1)
    play.tell.reply(play.ask(1), f"Done {play.tell.nonce}", input_tokens=1_000_000)
    play.tell.end()
    play.bounds["usd_per_turn"] = 2.5


def _ignores_retry_after(play: RunDraw) -> None:
    is_date = play.draw(st.booleans())
    play.tell.message()
    play.tell.refuse(play.ask(1), 429, retry_after_s=20, is_date=is_date)
    play.tell.wait(16.5 if is_date else 17.5)
    play.tell.answer_step(1)
    play.tell.end()


def _hopeless_repeat(play: RunDraw) -> None:
    play.tell.message()
    play.tell.refuse(play.ask(1), play.draw(st.sampled_from([400, 401])))
    play.tell.wait(5)
    play.tell.refuse(play.ask(1), 503)
    play.tell.fails()


def _hammering(play: RunDraw) -> None:
    play.tell.message()
    for _ in range(play.draw(st.integers(4, 8))):
        call = play.ask(1)
        if play.draw(st.booleans()):
            play.tell.refuse(call, 503)
        else:
            play.tell.cut(call)
        play.tell.wait(0.02)
    play.tell.fails()


def _endless_attempts(play: RunDraw) -> None:
    play.tell.message()
    for _ in range(play.draw(st.integers(31, 45))):
        play.tell.refuse(play.ask(1), 503)
        play.tell.wait(1)
    play.tell.fails()


def _tool_call_pairing(play: RunDraw) -> None:
    """The provider refuses a request with an unpaired tool call."""
    play.tell.message()
    play.tell.refuse(play.ask(1), 400, pairing=True, scripted=False)
    play.tell.fails()


def _error_surfaced(play: RunDraw) -> None:
    """All calls fail, and the user gets an apology or nothing."""
    play.tell.message()
    for _ in range(play.draw(st.integers(1, 3))):
        play.tell.refuse(play.ask(1), 503)
        play.tell.wait(1)
    play.tell.end(play.draw(st.sampled_from(["", "Sorry, I can't help with that right now."])))


def _system_lost(play: RunDraw) -> None:
    """Old messages are dropped, and the system text is one of them."""
    for size in (80, 80, 0, 0):
        play.tell.message()
        play.tell.reply(play.tell.ask(1, system=size), f"Done {play.tell.nonce}")
        play.tell.end()


def _thoughts_lost(play: RunDraw) -> None:
    """A tool's result is sent without the thoughts that led to its call."""
    play.tell.message()
    words = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`."
    play.tell.refuse(play.ask(1), 400, scripted=False, message=words)
    play.tell.fails()


def _false_cause(play: RunDraw) -> None:
    """The code that should tell the error has failed itself, or it takes one error for another one."""
    play.tell.message()
    play.tell.refuse(play.ask(1), 401, message="invalid x-api-key")
    play.tell.fails(play.draw(st.sampled_from(["'str' object has no attribute 'get'", "Error: too many requests"])))


def _error_forgets(play: RunDraw) -> None:
    """The second message fails, and the third one begins a new conversation."""
    for _ in range(2):
        play.tell.message()
        play.tell.reply(play.tell.ask(1), f"Done {play.tell.nonce}")
        play.tell.end()
    play.tell.message()
    play.tell.refuse(play.ask(1), 500)
    play.tell.fails()
    at = play.tell.message()
    play.tell.reply(play.tell.ask(1, sees=(at,), replies=()), f"Done {play.tell.nonce}")
    play.tell.end()


def _done_again(play: RunDraw) -> None:
    """A message is delivered again, before or after its answer, and is answered again."""
    turn = play.tell.message()
    early = play.draw(st.booleans())
    first = play.tell.ask(1)
    if early:
        play.tell.add(DeliveredAgain(turn=turn))
    play.tell.reply(first, f"Done {play.tell.nonce}")
    if not early:
        play.tell.wait(2).add(DeliveredAgain(turn=turn))
    play.tell.reply(play.tell.ask(1), f"Done {play.tell.nonce}")
    play.tell.end()


def _types_on(play: RunDraw) -> None:
    """A message is answered, or an error is told, and a minute later the chat shows that more comes."""
    for token in play.jobs:
        play.tell.done(token)
    play.tell.message()
    call = play.tell.ask(1)
    if play.draw(st.booleans()):
        play.tell.reply(call, f"Done {play.tell.nonce}")
        play.tell.end()
    else:
        play.tell.refuse(call)
        play.tell.fails()
    play.tell.wait(61).add(ChatSeen(session="main", types=True))


def _a_session_forgets(play: RunDraw) -> None:
    """Two messages are answered, and the third one begins a new conversation."""
    for _ in range(2):
        play.tell.message()
        play.tell.reply(play.tell.ask(1), f"Done {play.tell.nonce}")
        play.tell.end()
    at = play.tell.message()
    play.tell.reply(play.tell.ask(1, sees=(at,), replies=()), f"Done {play.tell.nonce}")
    play.tell.end()


def _a_stop_forgets(play: RunDraw) -> None:
    """The third message is stopped or killed, and the fourth one begins a new conversation."""
    for _ in range(2):
        play.tell.message()
        play.tell.reply(play.tell.ask(1), f"Done {play.tell.nonce}")
        play.tell.end()
    play.tell.message()
    call = play.tell.ask(1)
    if play.draw(st.booleans()):
        play.tell.kill()
    else:
        play.tell.abort()
        play.tell.hangs_up(call)
        play.tell.end("", ended="aborted", exit_code=130)
    at = play.tell.message()
    play.tell.reply(play.tell.ask(1, sees=(at,), replies=()), f"Done {play.tell.nonce}")
    play.tell.end()


def _session_recovers(play: RunDraw) -> None:
    """Each message ends in a surfaced error, with or without a kill before."""
    if play.draw(st.booleans()):
        play.tell.message()
        play.ask(1)
        play.tell.kill()
    for kind in (*play.draw(st.sampled_from([(), ("user", "user", "user")])), "recovery", "recovery"):
        play.tell.message(kind)
        play.tell.refuse(play.ask(1), 503)
        play.tell.fails()


def _killed_at_its_deadline(play: RunDraw) -> None:
    play.tell.message()
    call = play.ask(1)
    play.tell.wait(121.5).deadline(120)
    play.tell.reply(call, how="hung up", delivered=0)
    # Requests after the deadline belong to it: an agent that is being stopped may send any.
    for _ in range(play.draw(st.sampled_from([0, 40]))):
        play.tell.refuse(play.ask(1), 401)
    play.tell.end("", ended="deadline", exit_code=play.draw(st.sampled_from([0, -2])))


def _slow_to_the_end(play: RunDraw) -> None:
    play.tell.message()
    play.tell.reply(play.ask(1), f"Done {play.tell.nonce}", took_s=play.draw(st.sampled_from([122.0, 500.0])))
    play.tell.end()


def _front_end_got_nothing(play: RunDraw) -> None:
    play.tell.message()
    call = play.ask(1)
    play.tell.wait(90).give_up(after_s=90.0)
    play.tell.reply(call, how="hung up", delivered=0)
    play.tell.end("", ended="gave up", exit_code=None)
    play.bounds["turn_s"] = 90


def _never_asks_again(play: RunDraw) -> None:
    play.tell.message()
    play.tell.answer_step(1)
    play.tell.end().message()
    play.tell.wait(62).start_missed(60)
    play.tell.end("", ended="deadline", exit_code=-2)


def _turn_answered(play: RunDraw) -> None:
    """After one stall the turn ends in a surfaced error."""
    play.tell.message()
    play.tell.stall(play.ask(1))
    play.tell.fails("Error: Timeout")


def _no_spend_after_abort(play: RunDraw) -> None:
    """The agent continues after an abort or after its front end gave up."""
    play.tell.message()
    call = play.ask(1)
    by_abort = play.draw(st.booleans())
    if by_abort:
        play.tell.abort()
    else:
        play.tell.wait(30).give_up(after_s=30.0)
    play.tell.reply(call, tools=[True])
    play.tell.wait(play.draw(st.sampled_from([3.0, 60.0])))
    for _ in range(play.draw(st.integers(1, 20))):
        play.tell.reply(play.ask(2), tools=[True])
    play.tell.end("", ended="aborted" if by_abort else "gave up", exit_code=None)


def _no_work_after_abort(play: RunDraw) -> None:
    """A command runs to its end after an abort, or another one begins."""
    play.tell.message()
    first, second = play.tell.reply(play.ask(1), tools=[True, True], traced=True)
    play.tell.starts(first)
    play.tell.abort().wait(play.draw(st.sampled_from([5.0, 30.0])))
    if play.draw(st.booleans()):
        play.tell.done(first, exit_code=play.draw(st.sampled_from([0, 7])))
    else:
        play.tell.starts(second)
    play.tell.end("", ended="aborted", exit_code=130)


def _truncation_noticed(play: RunDraw) -> None:
    """Half of a reply is shown as the answer, with exit code 0."""
    play.tell.message()
    if play.draw(st.booleans()):
        play.tell.cut(play.ask(1), CUT_TEXT)
    else:
        play.tell.reply(play.ask(1), CUT_TEXT, stop="max_tokens")
    play.tell.end(CUT_TEXT)


def _answer_with_a_hole(play: RunDraw) -> None:
    """A faulty stream loses a word, and the rest is shown; another turn shows its reply whole."""
    for fault in ("malformed_json", ""):
        play.tell.message()
        call = play.ask(1)
        play.tell.reply(call, f"hedgehogs sleep {play.tell.nonce}", damaged=bool(fault))
        if fault:
            play.tell.fires(fault, call)
        play.tell.end(f"{'' if fault else 'hedgehogs '}sleep {play.tell.nonce}")


def _never_stops(play: RunDraw) -> None:
    """The user stops the turn, and the agent goes on until it is killed."""
    play.tell.message()
    call = play.ask(1)
    play.tell.abort()
    play.tell.wait(120)
    play.tell.deadline()
    play.tell.hangs_up(call)
    play.tell.end("", ended="aborted", exit_code=-9)


def _added_by_two_places(play: RunDraw) -> None:
    """The message is stored, and then added to what was loaded."""
    number = play.tell.message()
    play.tell.reply(play.tell.ask(1, doubled=[number], repeated=[number]), f"Done {play.tell.nonce}")
    play.tell.end()


def _stored_twice(play: RunDraw) -> None:
    """Two places add the model's answer, or the message of the turn before."""
    number = play.tell.message()
    said = play.ask(1)
    play.tell.reply(said, f"It is all done now {play.tell.nonce}")
    play.tell.end()
    play.tell.message()
    of_its_user = play.draw(st.booleans())
    asked = play.tell.ask(1, doubled=[number]) if of_its_user else play.tell.ask(1, echoed=[said])
    play.tell.reply(asked, f"Done {play.tell.nonce}")
    play.tell.end()


def _answered_twice(play: RunDraw) -> None:
    """The pieces of a stream, which was slow, are sent, and then the whole text."""
    play.tell.message()
    call, words = play.ask(1), f"It is all done now {play.tell.nonce}"
    play.tell.fires("slow", call)  # else `truncation_noticed` knows from this turn that the agent shows replies whole
    play.tell.reply(call, words)
    play.tell.end(f"{words}{play.draw(st.sampled_from(['', ' ', chr(10)]))}{words}", appends=True)


def _certificate_checked(play: RunDraw) -> None:
    """A request follows on a connection whose certificate is bad."""
    play.tell.message()
    play.tell.add(BadCertificateShown(host="api.example.com", flaw="expired", accepted=True))
    play.tell.answer_step(1)
    play.tell.end()


CALLS_AND_TURNS: Mapping[str, tuple[Violation, ...]] = {
    "certificate_checked": (_certificate_checked,),
    "paid_call_bound": (
        _paid_too_often,
        _paid_for_nothing,
        _no_progress,
        _too_many_calls,
        _compacts_for_ever,
        _storm_between_turns,
    ),
    "retry_discipline": (_ignores_retry_after, _hopeless_repeat, _hammering, _endless_attempts),
    "spend_bound": (_spend_bound,),
    "tool_call_pairing": (_tool_call_pairing,),
    "error_surfaced": (_error_surfaced,),
    "no_spend_after_abort": (_no_spend_after_abort,),
    "no_work_after_abort": (_no_work_after_abort,),
    "session_recovers": (_session_recovers,),
    "answered_once": (_answered_twice,),
    "handled_once": (_done_again,),
    "typing_ends": (_types_on,),
    "session_remembers": (_a_session_forgets,),
    "stop_forgets_nothing": (_a_stop_forgets,),
    "stored_once": (_added_by_two_places, _stored_twice),
    "no_false_cause": (_false_cause,),
    "error_forgets_nothing": (_error_forgets,),
    "system_kept": (_system_lost,),
    "thoughts_kept": (_thoughts_lost,),
    "truncation_noticed": (_truncation_noticed, _answer_with_a_hole),
    "turn_answered": (_turn_answered,),
    "turn_deadline": (
        _killed_at_its_deadline,
        _slow_to_the_end,
        _front_end_got_nothing,
        _never_asks_again,
        _never_stops,
    ),
}
