"""A session goes on with the next message, also where nothing has failed."""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Final

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import (
    REFUSES_THE_REQUEST,
    disk_was_full,
    main_calls_of,
    of_a_subagent,
    over,
    requests,
)
from wedgehog.harness.invariants.session.history_kept import carries
from wedgehog.harness.invariants.session.sequels import Sequel, judge, started_again
from wedgehog.harness.record.events.run import SessionPlanted
from wedgehog.harness.record.events.turn import AGENT_ITSELF, AgentKilled, SessionSaved
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import Verdict, fail
from wedgehog.harness.record.views import Call, Turn

KEEPS_THE_SESSION: Final = (*AGENT_ITSELF, "worker")
"""The processes whose death may cost what was said."""
IDLE_S: Final = 300.0
"""Some agents begin a new conversation after their user was away for long; none does so sooner."""


@invariant("session_remembers")
def session_remembers(history: History) -> Iterator[Verdict]:
    """The message after an answered one does not begin a new conversation without a word.

    Judged where two messages of one session follow each other, the first was answered, and no stop, kill or restart of
    the agent comes between them. The agent must have carried a turn before, in this run or in its control run, or its
    spec must promise a session: a `resume` of its own, `acp`, or `{session}` in `command` or `http`. A request that
    carries anything from before its own message is enough. Not judged where the provider did not accept what one of
    the two said (400, 413, 422; a refusal of a subagent's request does not count), with a full disk, where a kill tore
    a session file, where the user was away for five minutes or chose another model, where a summary may have been made,
    where a turn was so long that a window of six messages or 2,000 characters cannot hold it, where the program ended
    with an error beside its answer, or a service told of one (it may roll that turn back), and where the agent says
    that it begins anew.

    Fix: Store each answered message with its answer under the session's id, and load them for the next message. Find a
    session by the id that the user gave, also after a restart. A memory that is searched may find nothing: send the
    last messages too.
    """
    for session in {turn.session: None for turn in history.turns}:
        for before, turn in pairwise(it for it in history.turns if it.session == session):
            if _may_be_judged(history, before, turn):
                yield from judge(history, Sequel(before, before, turn), partial(_forgotten, before, turn))


def _may_be_judged(history: History, before: Turn, turn: Turn) -> bool:
    """Whether the first of two messages was answered and accepted, and the agent can know of it at the second."""
    if outcome_of(before, history).kind != "answered" or not carries(history, until=turn):
        return False
    if _told_of_an_error(history, before):
        return False
    if not any(call.paid and before.number in call.arrived.turns_seen for call in main_calls_of(before)):
        return False
    reasons = any(_is_harmed(history, it) for it in (before, turn)) or _was_away(before, turn)
    return not reasons and _model_of(before) == _model_of(turn)


def _told_of_an_error(history: History, turn: Turn) -> bool:
    """Whether a program, by its exit code, or a service, where its spec says, told of an error beside the answer."""
    end = turn.end
    if end is None or not end.error.strip():
        return False
    return end.exit_code not in (None, 0) or (end.exit_code is None and history.run.error_at_path)


def _is_harmed(history: History, turn: Turn) -> bool:
    """Whether something of a turn is a reason to know nothing: a kill, a refusal, a file that is no longer whole."""
    killed = any(it.turn == turn.number and it.whom in KEEPS_THE_SESSION for it in history.of(AgentKilled))
    heard = [it.refused for it in turn.calls if not of_a_subagent(it)]
    refused = any(it is not None and it.status in REFUSES_THE_REQUEST for it in heard)
    torn = any(it.turn == turn.number and it.torn for it in history.of(SessionSaved))
    planted = any(it.turn == turn.number for it in history.of(SessionPlanted))
    ended = killed or over(turn) is not None or started_again(history, turn)
    return ended or refused or torn or planted or disk_was_full(history, turn) or bool(history.beside(turn))


def _was_away(before: Turn, turn: Turn) -> bool:
    ended_s = before.end.at_s if before.end is not None else 0.0
    return turn.stimulus is None or turn.stimulus.at_s - ended_s > IDLE_S


def _model_of(turn: Turn) -> str:
    """The model that a turn asked first; some agents begin a new conversation with another one."""
    return next((call.arrived.model for call in main_calls_of(turn)), "")


def _forgotten(before: Turn, turn: Turn, first: Call) -> Verdict:
    says = f"{turn}: {before} was answered, and request {first.number} carries nothing of what was said before"
    return fail(says, requests([*main_calls_of(before)[-1:], first]))
