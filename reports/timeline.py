"""A run as a list of lines, one for each event that a reader wants to know, in the order of time."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from wedgehog.harness.record import event as e
from wedgehog.harness.record.history import History
from wedgehog.reports.words import one_line

LONG = 100
"""Longer texts are cut to this many characters."""


def timeline(history: History, also: Collection[int] = ()) -> Iterator[tuple[float, str, int]]:
    """Seconds since the first message, a sentence, and the number of the event; `also`: events of any kind to show."""
    first = history.first(e.StimulusGiven)
    zero_s = first.at_s if first else 0.0
    for event in history.events:
        said = _WORDS.get(type(event))
        if said is not None:
            yield event.at_s - zero_s, one_line(said(event), LONG), event.id
        elif event.id in also:
            yield event.at_s - zero_s, event.kind.replace("_", " "), event.id


def _request(event: e.RequestArrived) -> str:
    again = f", attempt {event.attempt}" if event.attempt > 1 else ""
    if event.side:
        return f"call {event.call}: request of {event.side}, step {event.step}{again}"
    if event.background:
        return f"call {event.call}: a background request ({event.background})"
    return f"call {event.call}: request of turn {event.turn}, step {event.step}{again}"


def _reply(event: e.ReplyEnded) -> str:
    return f"call {event.call}: the reply ended: {event.how}, {event.bytes_delivered:,} bytes delivered"


def _command(event: e.BeaconSeen) -> str:
    code = "" if event.exit_code is None else f" with exit code {event.exit_code}"
    return f"tool {event.token}: {'began' if event.phase == 'started' else 'ended'}{code}"


def _pipe_closed(event: e.PipeClosed) -> str:
    got = "" if event.stdout_bytes is None else f", {event.stdout_bytes:,} bytes of its output reached the agent"
    code = "" if event.exit_code is None else f" with exit code {event.exit_code}"
    return f"pipe {event.name}: closed{code}{got}"


def _turn_ended(event: e.TurnEnded) -> str:
    said = event.error or event.answer
    return f"turn {event.turn} ended: {event.ended}" + (f": {said}" if said else "")


_WORDS: Mapping[type[e.Event], Callable[[Any], str]] = {
    e.StimulusGiven: lambda event: f"turn {event.turn}: {event.stimulus}: {event.text}",
    e.RequestArrived: _request,
    e.RequestRefused: lambda event: f"call {event.call}: refused with {event.status}: {event.message}",
    e.ReplyStarted: lambda event: f"call {event.call}: accepted",
    e.ReplyEnded: _reply,
    e.HungUp: lambda event: f"call {event.call}: the agent hung up",
    e.CallUnscripted: lambda event: f"call {event.call}: no reply in the script: {event.why}",
    e.FaultArmed: lambda event: f"fault {event.name} on {event.link}: armed",
    e.FaultFired: lambda event: f"fault {event.name}: {event.proof}",
    e.FaultUnproven: lambda event: f"fault {event.name}: nothing proves it",
    e.FaultHealed: lambda event: f"fault {event.name}: removed",
    e.BeaconSeen: _command,
    e.ToolAsked: lambda event: f"tool {event.tool} of the tool host was called",
    e.StoreAsked: lambda event: f"query {event.number}: {event.verb}, {event.rows:,} rows, {event.latency_s:.3f} s",
    e.PipeOpened: lambda event: f"pipe {event.name}: opened",
    e.PipeClosed: _pipe_closed,
    e.ChatAsked: lambda event: f"chat {event.what}: {event.text}",
    e.PageAsked: lambda event: f"page {event.path}: {event.status}",
    e.AbortSent: lambda event: f"turn {event.turn}: the user stopped it",
    e.GaveUp: lambda event: f"turn {event.turn}: the front end gave up",
    e.AgentKilled: lambda event: f"{event.signal} to {event.whom}",
    e.Frozen: lambda event: f"{event.whom} stands still for {event.for_s:g} s",
    e.Thawed: lambda event: f"{event.whom} goes on after {event.after_s:.2f} s",
    e.SessionPlanted: lambda event: f"{event.lines} lines were written to {event.path}",
    e.SessionSaved: lambda event: f"session file {event.path} was copied after the kill",
    e.HangSeen: lambda event: f"turn {event.turn}: {event.says}",
    e.HostRefused: lambda event: f"host {event.host} was refused: {event.why}",
    e.DeadlineHit: lambda event: f"turn {event.turn}: no end within {event.bound_s:g} s",
    e.StartMissed: lambda event: f"turn {event.turn}: no request within {event.bound_s:g} s",
    e.TurnEnded: _turn_ended,
    e.Trouble: lambda event: f"error of the harness: {event.what}",
}
