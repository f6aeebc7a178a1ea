"""The events of a run as sentences, one for each that a reader wants to know, in the order of time."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.call import (
    CallUnscripted,
    HungUp,
    ReplyEnded,
    ReplyStarted,
    RequestArrived,
    RequestRefused,
)
from wedgehog.harness.record.events.fault import FaultArmed, FaultFired, FaultHealed, FaultUnproven
from wedgehog.harness.record.events.files import FileSeen, FilesSeen
from wedgehog.harness.record.events.run import BadCertificateShown, HostRefused, SessionPlanted, Trouble
from wedgehog.harness.record.events.service import (
    BackendClosed,
    BackendOpened,
    BeaconSeen,
    ChatAsked,
    PageAsked,
    PipeClosed,
    PipeOpened,
    StoreAsked,
    TokenAsked,
    ToolAsked,
    ToolRefused,
)
from wedgehog.harness.record.events.turn import (
    AbortSent,
    AgentKilled,
    DeadlineHit,
    Frozen,
    GaveUp,
    HangSeen,
    PermissionAsked,
    SessionSaved,
    StartMissed,
    StimulusGiven,
    Thawed,
    TurnEnded,
)
from wedgehog.harness.record.history import History
from wedgehog.reports.words import one_line

LONG = 100
"""Longer texts are cut to this many characters."""


def event_lines(history: History, also: Collection[int] = ()) -> Iterator[tuple[float, str, int]]:
    """Seconds since the first message, a sentence, and the number of the event; `also`: events of any kind to show."""
    first = history.first(StimulusGiven)
    zero_s = first.at_s if first else 0.0
    for event in history.events:
        said = _WORDS.get(type(event))
        if said is not None:
            yield event.at_s - zero_s, one_line(said(event), LONG), event.id
        elif event.id in also:
            yield event.at_s - zero_s, event.kind.replace("_", " "), event.id


def _request(event: RequestArrived) -> str:
    again = f", attempt {event.attempt}" if event.attempt > 1 else ""
    if event.side:
        return f"call {event.call}: request of {event.side}, step {event.step}{again}"
    if event.background:
        return f"call {event.call}: a background request ({event.background})"
    return f"call {event.call}: request of turn {event.turn}, step {event.step}{again}"


def _reply(event: ReplyEnded) -> str:
    files = "".join(f", {it.file.role} {it.file.path}" for it in event.tool_calls if it.file is not None)
    return f"call {event.call}: the reply ended: {event.how}, {event.bytes_delivered:,} bytes delivered{files}"


def _command(event: BeaconSeen) -> str:
    code = "" if event.exit_code is None else f" with exit code {event.exit_code}"
    return f"tool {event.token}: {'began' if event.phase == 'started' else 'ended'}{code}"


def _pipe_closed(event: PipeClosed) -> str:
    got = "" if event.stdout_bytes is None else f", {event.stdout_bytes:,} bytes of its output reached the agent"
    code = "" if event.exit_code is None else f" with exit code {event.exit_code}"
    return f"pipe {event.name}: closed{code}{got}"


def _backend_closed(event: BackendClosed) -> str:
    by = {"run": "at the end of the run", "fault": "by a fault"}.get(event.by, f"by the {event.by}")
    under = f" (under {', '.join(event.faults)})" if event.faults else ""
    crossed = f"{event.bytes_up:,} bytes up, {event.bytes_down:,} bytes down"
    return f"{event.link}: connection {event.connection} closed {by}{under}: {crossed}"


def files_in_words(event: FilesSeen) -> str:
    """`notes.txt 40 bytes, today.txt is not there`; of files that the user wrote, these alone."""
    shown = [it for it in event.files if it.path in event.by_user or not event.by_user]
    return ", ".join(f"{it.path} {_state(it)}" for it in shown)


def _state(file: FileSeen) -> str:
    if file.kind == "missing":
        return "is not there"
    return f"{file.size:,} bytes" if file.kind == "file" else "is no regular file"


def _turn_ended(event: TurnEnded) -> str:
    said = event.error or event.answer
    return f"turn {event.turn} ended: {event.ended}" + (f": {said}" if said else "")


_WORDS: Mapping[type[Event], Callable[[Any], str]] = {
    StimulusGiven: lambda event: f"turn {event.turn}: {event.stimulus}: {event.text}",
    RequestArrived: _request,
    RequestRefused: lambda event: f"call {event.call}: refused with {event.status}: {event.message}",
    ReplyStarted: lambda event: f"call {event.call}: accepted",
    ReplyEnded: _reply,
    HungUp: lambda event: f"call {event.call}: the agent hung up",
    CallUnscripted: lambda event: f"call {event.call}: no reply in the script: {event.why}",
    FaultArmed: lambda event: f"fault {event.name} on {event.link}: armed",
    FaultFired: lambda event: f"fault {event.name}: {event.proof}",
    FaultUnproven: lambda event: f"fault {event.name}: nothing proves it",
    FaultHealed: lambda event: f"fault {event.name}: removed",
    BeaconSeen: _command,
    FilesSeen: lambda event: f"{'the user wrote' if event.by_user else 'files'}: {files_in_words(event)}",
    ToolAsked: lambda event: f"tool {event.tool} of the tool host was called",
    ToolRefused: lambda event: f"the tool host refused a request with {event.status}",
    TokenAsked: lambda event: (
        f"token request ({event.grant}): {event.status or 'never answered'} {event.error}".rstrip()
    ),
    StoreAsked: lambda event: f"query {event.number}: {event.verb}, {event.rows:,} rows, {event.latency_s:.3f} s",
    PipeOpened: lambda event: f"pipe {event.name}: opened",
    PipeClosed: _pipe_closed,
    BackendOpened: lambda event: f"{event.link}: connection {event.connection} opened",
    BackendClosed: _backend_closed,
    ChatAsked: lambda event: f"chat {event.what}: {event.text}",
    PageAsked: lambda event: f"page {event.path}: {event.status}",
    AbortSent: lambda event: f"turn {event.turn}: the user stopped it",
    GaveUp: lambda event: f"turn {event.turn}: the front end gave up",
    AgentKilled: lambda event: f"{event.signal} to {event.whom}",
    Frozen: lambda event: f"{event.whom} stands still for {event.for_s:g} s",
    Thawed: lambda event: f"{event.whom} goes on after {event.after_s:.2f} s",
    SessionPlanted: lambda event: f"{event.lines} lines were written to {event.path}",
    SessionSaved: lambda event: f"session file {event.path} was copied after the kill",
    HangSeen: lambda event: f"turn {event.turn}: {event.says}",
    BadCertificateShown: lambda event: (
        f"host {event.host} showed a bad certificate ({event.flaw.replace('_', ' ')}): "
        f"the agent {'accepted' if event.accepted else 'refused'} it"
    ),
    HostRefused: lambda event: f"host {event.host} was refused: {event.why}",
    PermissionAsked: lambda event: f"the agent asks for permission: {event.chosen or 'no answer'}",
    DeadlineHit: lambda event: f"turn {event.turn}: no end within {event.too_many or f'{event.bound_s:g} s'}",
    StartMissed: lambda event: f"turn {event.turn}: no request within {event.bound_s:g} s",
    TurnEnded: _turn_ended,
    Trouble: lambda event: f"error of the harness: {event.what}",
}
