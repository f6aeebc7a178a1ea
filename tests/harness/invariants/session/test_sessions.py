"""Two sessions of one agent: each is judged by itself, and neither gets the other's words or waits for it."""

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.service import ChatAsked
from wedgehog.harness.record.events.turn import AgentKilled
from wedgehog.harness.record.history import History
from wedgehog.harness.testing.history_builder import HistoryBuilder, result


def stalled(call: int, *, whole_link: bool) -> FaultFired:
    """A fault that fired in turn 1."""
    words = {"fault": 0, "name": "stall", "link": "llm", "turn": 1, "step": 1, "attempt": 1, "proof": "it did"}
    return FaultFired(**words, call=call, whole_link=whole_link)


def in_turn(sees_of_b: tuple[int, ...] = (2,), sees_later: tuple[int, ...] = (1, 3)) -> HistoryBuilder:
    """A message to A, one to B, then one more to A."""
    tell = HistoryBuilder(resumes=True)
    tell.message(session="A")
    tell.answer_step(1)
    tell.end()
    tell.message(session="B")
    tell.reply(tell.ask(sees=sees_of_b))
    tell.end()
    tell.message(session="A")
    tell.reply(tell.ask(sees=sees_later))
    return tell.end()


def test_each_session_is_judged_by_itself():
    """B's first request carries nothing of A, and that is right; A's second one must carry A's first turn."""
    assert check("history_kept", in_turn().seal()).status == "pass"
    found = check("history_kept", in_turn(sees_later=(3,)).seal())
    assert (found.status, found.says) == (
        "fail",
        "session A: turn 3: request 3 carries nothing of the turn that was answered before",
    )


def test_each_violation_of_a_session_names_it():
    """Two early retries in each session are four violations, and many alike are counted for each session apart."""
    tell = HistoryBuilder()
    for session in ("A", "B"):
        tell.message(session=session)
        for _ in range(6):
            tell.refuse(tell.ask(1), 429, retry_after_s=20)
            tell.wait(1.0)
        tell.answer_step(1)
        tell.end()
    found = check("retry_discipline", tell.seal())
    said = [it.says.partition(" was")[0] for it in found.violations]
    more = "and 3 more like it"
    assert said == [
        *(f"session A: request {number}" for number in (1, 2, 3)),
        f"session A: {more}",
        *(f"session B: request {number}" for number in (8, 9, 10)),
        f"session B: {more}",
    ]


def test_words_of_another_session_are_named():
    """In a request as a message or a result, and in an answer; one session alone has nothing to judge."""
    assert check("sessions_apart", in_turn().seal()).status == "pass"
    found = check("sessions_apart", in_turn(sees_of_b=(1, 2)).seal())
    assert found.says == "request 2, of turn 2 of session B, has words of session A (turn 1)"
    tell = HistoryBuilder()
    tell.message(session="A")
    tell.answer_step(1)
    tell.end()
    tell.message(session="B")
    tell.reply(tell.ask(results=[result("1.1.1")]))
    assert "words of session A (turn 1)" in check("sessions_apart", tell.end().seal()).says
    tell = HistoryBuilder()
    tell.message(session="A")
    tell.answer_step(1)
    theirs = tell.nonce
    tell.end()
    tell.message(session="B")
    tell.answer_step(1)
    tell.end(f"Here you are: {theirs}")
    found = check("sessions_apart", tell.seal())
    assert found.says == "turn 2 of session B got the answer to turn 1 of session A"
    alone = HistoryBuilder()
    alone.message()
    alone.answer_step(1)
    assert check("sessions_apart", alone.end().seal()).status == "nothing"


def test_an_answer_in_another_conversation_of_the_same_user_is_a_stray():
    """Also where it stood there before the message of that conversation."""
    tell = HistoryBuilder()
    tell.message(session="A")
    tell.answer_step(1)
    theirs = tell.nonce
    tell.end()
    tell.message(session="B")
    tell.answer_step(1)
    found = check("sessions_apart", tell.end(stood_before=f"Here you are: {theirs}").seal())
    assert found.says == "before turn 2 of session B its page showed the answer to turn 1 of session A"


def in_two_chats(answer_goes_to: str) -> History:
    """The answer to A's message is sent when B's turn is over."""
    tell = HistoryBuilder()
    tell.message(session="A")
    nonce = tell.nonce
    tell.message(session="B")
    tell.answer_step(2)
    tell.end()
    tell.goes_on(1).reply(tell.ask())
    tell.add(ChatAsked(what="send", text=f"Here you are: {nonce}", session=answer_goes_to))
    tell.add(ChatAsked(what="refused", text="message is too long", session="A"))
    tell.end()
    return tell.seal()


def test_an_answer_in_the_chat_of_another_user_is_named():
    """The user reads it, also when no turn is open there."""
    assert check("sessions_apart", in_two_chats("A")).status == "pass"
    found = check("sessions_apart", in_two_chats("B"))
    assert found.says == "the chat of session B got the answer to turn 1 of session A"


def test_what_happens_in_a_chat_belongs_to_its_session():
    """A refusal in one chat is no reason for a missing answer in the other one."""
    sessions = in_two_chats("A").sessions
    assert [len(list(sessions[name].of(ChatAsked))) for name in ("A", "B")] == [2, 0]


def at_once(waits_s: float, *, whole_link: bool = False, answer: str | None = None) -> History:
    """A's call is stalled until it hangs up; B gets its message meanwhile, and asks the model after `waits_s`."""
    tell = HistoryBuilder()
    tell.message(session="A")
    tell.add(stalled(tell.ask(), whole_link=whole_link))
    tell.message(session="B")
    if waits_s < 4:
        tell.wait(waits_s)
        tell.reply(tell.ask())
        tell.end(answer)
        tell.goes_on(1).wait(4)
        tell.fails()
    else:
        tell.goes_on(1).wait(waits_s)
        tell.fails()
        tell.goes_on(2).reply(tell.ask())
        tell.end(answer)
    return tell.seal()


def test_a_session_that_waits_for_a_stalled_one_is_named():
    """B asks only when A's turn is over: a lock, a queue. B that is slow by itself, or a dead link, is not that."""
    assert check("session_unharmed", at_once(0.2)).status == "pass"
    assert check("session_unharmed", at_once(3.9)).status == "pass"
    found = check("session_unharmed", at_once(6))
    assert found.status == "fail"
    assert found.says.startswith("session B, which no fault struck: turn 2 waited 5.5 s with its first request")
    assert found.says.endswith("until turn 1 of session A let it go on")
    assert check("session_unharmed", at_once(6, whole_link=True)).status == "nothing"


def test_a_session_that_no_fault_struck_is_answered():
    """An error is not enough there; in the session of the fault it is."""
    found = check("session_unharmed", at_once(0.2, answer="Error: locked"))
    assert found.status == "fail" and "turn 2 was not answered" in found.says


def test_a_session_that_never_comes_to_its_first_request_is_named():
    """A lock that a dead session has left; the session has no request before that would prove that it can ask."""
    tell = HistoryBuilder()
    tell.message(session="A")
    tell.add(stalled(tell.ask(), whole_link=False))
    tell.fails()
    tell.message(session="B")
    tell.start_missed()
    found = check("session_unharmed", tell.end("", exit_code=-9).seal())
    assert found.status == "fail"
    assert "session B, which no fault struck: turn 2 was not answered: it sent no request" in found.says


def test_a_kill_of_one_session_is_none_of_the_other():
    """Its results are looked for in its own next request, not in the other's; its turn alone is killed."""
    tell = HistoryBuilder()
    tell.message(session="A")
    tell.reply(tell.ask(), tools=[True])
    ran = tell.runs("1.1.1")
    tell.ask(2, results=[ran])
    tell.kill(saved=["1.1.1"])
    tell.message(session="B")
    tell.reply(tell.ask())
    tell.end()
    tell.message(session="A")
    tell.reply(tell.ask(results=[ran]))
    history = tell.end().seal()
    assert check("result_durable", history).status == "pass"
    assert list(history.sessions) == ["A", "B"]
    assert [len(list(it.of(AgentKilled))) for it in history.sessions.values()] == [1, 0]


def beside(second_sees: tuple[int, ...], third_sees: tuple[int, ...]) -> str:
    """A second message is answered while the tool of turn 1 runs, and a third one comes when both have ended."""
    tell = HistoryBuilder(resumes=True)
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.starts(token)
    tell.message()
    tell.reply(tell.ask(1, sees=second_sees), "Done {nonce}")
    tell.end().goes_on(1).done(token)
    tell.reply(tell.ask(2, results=[result(token)], sees=[1]), "Done {nonce}")
    tell.end()
    tell.message()
    tell.reply(tell.ask(1, sees=third_sees), "Done {nonce}")
    return check("history_kept", tell.end().seal()).status


def test_a_turn_that_was_not_answered_yet_need_not_be_in_another_one():
    """An agent may work on two messages at once; later both are answered turns."""
    assert beside((2,), (1, 2, 3)) == "pass"
    assert beside((2,), (3,)) == "fail"
