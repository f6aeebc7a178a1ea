"""A stop or a kill ends a turn, and not the conversation before it."""

from collections.abc import Iterator
from functools import partial

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import disk_was_full, main_calls_of, over, requests
from wedgehog.harness.invariants.session.sequels import Sequel, judge, sequels, started_again
from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.run import SessionPlanted
from wedgehog.harness.record.events.turn import SessionSaved
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail
from wedgehog.harness.record.views import Call, Turn


@invariant("stop_forgets_nothing")
def stop_forgets_nothing(history: History) -> Iterator[Verdict]:
    """After a turn that was stopped or killed, the next one does not begin a new conversation without a word.

    An agent may lose the turn that was stopped, but not what was said and stored before it. Judged where a turn was
    answered, a later one was stopped or killed whose request carried that turn, and a further message follows. A kill
    is judged only where the process of the answered turn had ended by itself before: what was said then is in a file,
    and not in the memory of the process that was killed. A request that carries anything from before its own message
    is enough. Not judged where a service's connection was only closed, where the process of an agent that stays was
    started again, where the kill tore a session file, with a full disk, where a summary may have been made, after a
    long turn (`session_remembers`), and where the agent says that it begins anew.

    Fix: Load the stored conversation also where the turn before has not ended well. A lock, or a mark of an open turn,
    that an earlier process left is no reason to begin anew. Write a session to a new file, and rename it then.
    """
    for it in sequels(history):
        if _is_owed(history, it.bad, it.answered):
            yield from judge(history, it, partial(_forgotten, it))


def _is_owed(history: History, stopped: Turn, answered: Turn) -> bool:
    """Whether its agent had the answered turn stored, or in a process that lives on, when the turn was stopped."""
    if not any(answered.number in call.arrived.turns_seen for call in main_calls_of(stopped)):
        return False
    if history.beside(stopped) or disk_was_full(history, stopped):
        return False
    if any(it.turn > answered.number for it in history.of(SessionPlanted)):
        return False
    in_a_file = answered.end is not None and answered.end.exit_code is not None
    if stopped.killed is not None and over(stopped) is stopped.killed:
        return in_a_file and not any(it.torn for it in history.of(SessionSaved))
    aborted = stopped.aborted
    if aborted is None or aborted.hangs_up or over(stopped) is not aborted:
        return False
    return in_a_file or not started_again(history, stopped)


def _forgotten(it: Sequel, first: Call) -> Verdict:
    stopped = it.bad
    how = "killed" if over(stopped) is stopped.killed else "stopped"
    says = f"{stopped} was {how}, and request {first.number} carries nothing of what was said before it"
    return fail(says, (*_stop(stopped), *requests(_last_that_knew(stopped, it.answered)), *requests([first])))


def _stop(stopped: Turn) -> tuple[Event, ...]:
    event = over(stopped)
    return () if event is None else (event,)


def _last_that_knew(stopped: Turn, answered: Turn) -> list[Call]:
    return [call for call in main_calls_of(stopped) if answered.number in call.arrived.turns_seen][-1:]
