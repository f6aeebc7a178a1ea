"""What of a run happened in one of its sessions: the events of its turns, and those that concern all sessions."""

from collections.abc import Collection, Iterator

from wedgehog.harness.record.event_log import EventLog
from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.call import RequestArrived
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.run import CpuWaitSeen
from wedgehog.harness.record.events.service import ChatAsked, ChatSeen
from wedgehog.harness.record.events.turn import AgentKilled, Frozen, StimulusGiven, Thawed, TurnEnded

AGENT_LINK = "agent"
SIDE_CALLS = 1000
"""In a token, the turn of a side conversation is higher by a multiple of this."""


def events_of(log: EventLog, session: str) -> Iterator[Event]:
    """The events of one session, with their ids of the whole run."""
    turns = {given.turn for given in log.of(StimulusGiven) if given.session == session}
    calls = {arrived.call for arrived in log.of(RequestArrived) if arrived.turn in turns or not arrived.turn}
    return (event for event in log.events if _concerns(log, event, session, turns, calls))


def strikes_all(fired: FaultFired) -> bool:
    """Whether a fault met all sessions: a link or a server that was gone, not one reply or one process."""
    return fired.whole_link or (fired.call is None and fired.link != AGENT_LINK)


def _concerns(log: EventLog, event: Event, session: str, turns: Collection[int], calls: Collection[int]) -> bool:
    if isinstance(event, AgentKilled):
        return event.turn in turns or _ended_one(log, event, turns)
    # While a process stands still, no bound of any session runs.
    if isinstance(event, CpuWaitSeen | Frozen | Thawed) or (isinstance(event, FaultFired) and strikes_all(event)):
        return True
    turn, call, token = (getattr(event, name, None) for name in ("turn", "call", "token"))
    if isinstance(turn, int):
        return turn in turns or turn == 0
    if isinstance(call, int):
        return call in calls
    if isinstance(token, str) and token:
        return turn_of(token) in turns
    return not isinstance(event, ChatAsked | ChatSeen) or event.session in ("", session)


def turn_of(token: str) -> int:
    """The turn in which the model made a tool call, by its token (`turn.step.call`)."""
    return int(token.partition(".")[0]) % SIDE_CALLS


def _ended_one(log: EventLog, kill: AgentKilled, turns: Collection[int]) -> bool:
    """Whether the kill ended a turn of the session, as one does that ends a process of several sessions."""
    given = {it.turn: it.id for it in log.of(StimulusGiven)}
    ended = (it for it in log.of(TurnEnded) if it.turn in turns and it.ended == "killed")
    return any(given[it.turn] < kill.id < it.id for it in ended)
