"""Nothing that is said in one session reaches another one."""

from collections.abc import Iterable, Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import ends
from wedgehog.harness.record.by_session import turn_of
from wedgehog.harness.record.events.call import RequestArrived
from wedgehog.harness.record.events.service import ChatAsked
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import answers, says_answer
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Turn


@invariant("sessions_apart", across=True)
def sessions_apart(history: History) -> Iterator[Verdict]:
    """Where an agent has two sessions, no request and no answer of one has words of the other.

    Judged on the messages of users, the results of tools, and the answers, also on one that is sent to the chat of
    another session, or stands in another conversation of the same user. Requests beside the conversation, such as a
    title, count too. An agent that shares its memory between sessions on purpose is red here: switch this invariant
    off for it.

    Fix: Keep the messages of a session under its own id, in a file or a variable of its own. Do not read "the last
    session", and do not keep the current session in a global variable or in one file of HOME. Send an answer to the
    chat that its message came from.
    """
    if len(history.sessions) < 2:
        return
    session_of = {turn.number: turn.session for turn in history.turns}
    for turn in history.turns:
        others = {number for number, session in session_of.items() if session != turn.session}
        yield from _requests(turn, others, session_of)
        for other in history.turns:
            if other.number in others and turn.end is not None and answers(other, turn):
                yield fail(f"{turn.in_session} got the answer to {other.in_session}", (turn.end,))
        yield from _strays(turn, [it for it in history.turns if it.number in others])
    yield from _chats(history)


def _strays(turn: Turn, others: Iterable[Turn]) -> Iterator[Verdict]:
    """What stood in a conversation of the same user before the message of this turn."""
    stood = turn.end.stood_before if turn.end is not None else None
    for other in others:
        if stood and says_answer(other, stood):
            yield fail(f"before {turn.in_session} its page showed the answer to {other.in_session}", ends(turn))


def _chats(history: History) -> Iterator[Verdict]:
    """What an agent in a chat sends to another chat, also when no turn is open there."""
    for sent in history.of(ChatAsked):
        told = sent.what == "send" and sent.session
        for turn in history.turns if told else ():
            if turn.session != sent.session and says_answer(turn, sent.text):
                yield fail(f"the chat of session {sent.session} got the answer to {turn.in_session}", (sent,))


def _requests(turn: Turn, others: set[int], session_of: dict[int, str]) -> Iterator[Verdict]:
    for call in turn.calls:
        foreign = sorted(others & _turns_in(call.arrived))
        if foreign:
            whose = f"session {session_of[foreign[0]]} (turn {foreign[0]})"
            yield fail(f"request {call.number}, of {turn.in_session}, has words of {whose}", (call.arrived,))
        else:
            yield passed(because=f"the requests of {turn.in_session} have no words of another session")


def _turns_in(arrived: RequestArrived) -> set[int]:
    """The turns whose message, or the result of whose tool, a request has."""
    return {*arrived.turns_seen, *(turn_of(result.token) for result in arrived.results if result.token)}
