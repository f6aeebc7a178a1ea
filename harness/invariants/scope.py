"""Views of a history that several checks share: a turn's calls before its stop, tool calls, evidence."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from wedgehog.fake_llm.script.main_call import COMPACTING
from wedgehog.fake_llm.script.side_conversations import SIDE
from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.call import RequestArrived, RequestRefused, ToolResult
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.run import SessionPlanted
from wedgehog.harness.record.events.service import TokenAsked, ToolRefused
from wedgehog.harness.record.events.turn import StartMissed
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import NOTHING_TO_JUDGE, Verdict, Violation, nothing, passed, worst
from wedgehog.harness.record.views import Call, ToolUse, Turn

TurnEvent = TypeVar("TurnEvent", TokenAsked, ToolRefused)
UNAUTHORIZED = 401
REFUSED_FOR_CONTENT = 400
REFUSED_FOR_SIZE = 413
_KNOWN = re.compile(r"text content blocks must be non-empty")
"""Refusals of Anthropic that many agents have met."""
REFUSES_THE_REQUEST = (400, 413, 422)
"""After such a refusal an agent may take back what the provider did not accept."""
KINDS_SHOWN = 12
ALIKE_SHOWN = 3
"""Of violations whose sentences differ only in numbers."""
_NUMBER = re.compile(r"\d+([.,]\d+)*")
_OF_SESSION = re.compile(r"session [^:]+: ")
REASONS_SHOWN = 4
"""Of a pass with many parts."""


def over(turn: Turn) -> Event | None:
    """The event after which no call of the turn is judged: its abort, give-up, deadline or kill."""
    stops = [event for event in (turn.aborted, turn.gave_up, turn.deadline, turn.killed) if event is not None]
    return min(stops, key=lambda event: event.id, default=None)


def judged(turn: Turn) -> Turn:
    """The turn with the calls before its stop or deadline."""
    stop = over(turn)
    return turn if stop is None else replace(turn, calls=tuple(it for it in turn.calls if it.arrived.id < stop.id))


def calls_of(turn: Turn) -> tuple[Call, ...]:
    """The turn's model requests, background ones too, before its stop or deadline."""
    return judged(turn).calls


def undisturbed(history: History, turn: Turn, until: int) -> bool:
    """Whether nothing failed in a turn before an event (by its id), and its user gave no reason to begin again.

    A fault of one call counts by what came of that call: a reply that was only slow is whole. One that
    is not in the form in which the agent reads answers or tool calls is a failure.
    """
    stop = over(turn)
    if (stop is not None and stop.id < until) or history.beside(turn):
        return False
    struck = (*turn.kept_away, *turn.held_up, *(it for it in history.of(FaultFired) if it.turn == turn.number))
    if any(fired.id < until and fired.call is None and not fired.slows for fired in struck):
        return False
    if any(fired.of_form and fired.id < until for fired in struck):
        return False
    return all(call.intact for call in turn.calls if call.arrived.id < until)


def reached_out(history: History, missed: StartMissed) -> bool:
    """Whether its session had asked the model before, or a fault had kept its requests away.

    Another agent may be set up wrongly. Of a planted session, the control run had asked.
    """
    asked = any(call.arrived.id < missed.id for call in history.calls)
    kept_away = any(fault.id < missed.id for turn in history.turns for fault in turn.kept_away)
    return asked or kept_away or history.first(SessionPlanted) is not None


def main_calls_of(turn: Turn) -> tuple[Call, ...]:
    """The turn's main calls before its stop or deadline."""
    return judged(turn).main_calls


def stray_calls(history: History) -> tuple[Call, ...]:
    """Calls outside of any turn, except after a turn that was stopped or over its deadline."""
    stopped = {turn.number for turn in history.turns if over(turn) is not None}
    began = [(turn.stimulus.id, turn.number) for turn in history.turns if turn.stimulus is not None]

    def after(call: Call) -> int:
        return max((number for given, number in began if given < call.arrived.id), default=0)

    return tuple(call for call in history.stray.calls if after(call) not in stopped)


def tool_uses_of(turn: Turn) -> tuple[ToolUse, ...]:
    """The turn's tool calls as the agent acted on them: one that a retry repeats counts for its last offer before."""
    stop = over(turn)
    offers: dict[str, list[ToolUse]] = {}
    for use in turn.tool_uses:
        if stop is None or use.reply.id < stop.id:
            offers.setdefault(use.token, []).append(use)
    return tuple(_acted_on(uses) for uses in offers.values())


def _acted_on(uses: Sequence[ToolUse]) -> ToolUse:
    acts = [event.id for event in (*uses[0].started, *uses[0].done, *uses[0].results)]
    before = [use for use in uses if acts and use.reply.id < min(acts)]
    return (before or uses)[-1]


def after_deadline(history: History, event: Event) -> bool:
    """Whether it is between a turn's deadline and its end: an agent that is being stopped may do anything."""
    return any(
        turn.deadline is not None and turn.deadline.id < event.id and (turn.end is None or event.id < turn.end.id)
        for turn in history.turns
    )


def next_message(history: History, event: Event) -> int:
    """The id of the first message after an event; without one, an id above all."""
    given = (turn.stimulus.id for turn in history.turns if turn.stimulus is not None)
    return min((number for number in given if number > event.id), default=history.end_id)


def blocked(history: History, use: ToolUse, end: Event) -> bool:
    """Whether a fault of the model's link may have blocked the request with a tool's result."""
    fired = (fault for fault in history.of(FaultFired) if fault.link == "llm" and fault.call is None)
    return any(use.reply.id < fault.id < end.id for fault in fired)


def disk_was_full(history: History, turn: Turn) -> bool:
    """Whether the disk was full in this turn: what an agent then says and does may not be stored."""
    return turn.number in turns_with_a_full_disk(history)


def turns_with_a_full_disk(history: History) -> frozenset[int]:
    """The turns in which the disk was full."""
    return frozenset(fired.turn for fired in history.of(FaultFired) if fired.of_disk)


def result_in_turn(use: ToolUse) -> tuple[RequestArrived, ToolResult] | None:
    """The first request of its turn with the result of a tool call, and that result."""
    for request in use.results:
        for result in request.results:
            if result.token == use.token and request.turn == use.turn:
                return request, result
    return None


def name_of_call(use: ToolUse) -> str:
    """`tool call 1.1.1 (shell)`."""
    return f"tool call {use.token} ({use.offered.name})"


def requests(calls: Iterable[Call]) -> tuple[Event, ...]:
    """The arrivals of these calls, as evidence."""
    return tuple(call.arrived for call in calls)


def ends(turn: Turn) -> tuple[Event, ...]:
    """How the turn ended, as evidence."""
    return tuple(event for event in (turn.start_missed, turn.deadline, turn.end) if event is not None)


def refused_for_content(call: Call) -> bool:
    """Whether a scripted fault refused what the request says, with 400, as it does for as long as that is sent."""
    return call.refused is not None and call.refused.scripted and call.refused.status == REFUSED_FOR_CONTENT


def refused_as_too_long(refused: RequestRefused) -> bool:
    """Whether the provider refused a request for its length: a full window, or a body that is too large."""
    words = re.search(r"too long|context|maximum", refused.message, re.IGNORECASE)
    return refused.status == REFUSED_FOR_SIZE or (refused.status == REFUSED_FOR_CONTENT and words is not None)


def called_beside(history: History, after: int, before: int) -> bool:
    """Whether a background call, which may have made a summary, arrived between two events (by their ids)."""
    return any(not call.main and after < call.arrived.id < before for call in history.calls)


def compacts(call: Call) -> bool:
    """Whether the request asks for a summary in the place of messages."""
    return call.arrived.background in COMPACTING and not call.arrived.side


def before_stop(turn: Turn, events: Iterable[TurnEvent]) -> list[TurnEvent]:
    """The events of this turn, before its stop or deadline."""
    stop = over(turn)
    return [it for it in events if it.turn == turn.number and (stop is None or it.id < stop.id)]


def last_request(turn: Turn) -> Call | None:
    """The last request of the conversation; of a turn that came no further than a plan or a route, that one."""
    return next(iter((turn.main_calls or turn.calls)[-1:]), None)


def still_refused(turn: Turn) -> bool:
    """Whether a fault that nothing heals refused the last request of a recovery message."""
    last = last_request(turn)
    return turn.recovery and last is not None and refused_for_content(last)


def refused_by_us(calls: Iterable[Call]) -> Call | None:
    """The first request that our validator refused for a reason that may be our mistake."""
    return next((call for call in calls if call.main and call.refused and is_doubtful(call.refused)), None)


def is_doubtful(refused: RequestRefused) -> bool:
    """Whether our validator refused it, and neither for its pairing nor as the provider is known to do."""
    return not refused.scripted and not refused.pairing and _KNOWN.search(refused.message) is None


def together(findings: Iterable[Verdict]) -> Verdict:
    """The first of the worst findings, with the others; of passes one with all remarks; else nothing, with reasons."""
    given = list(findings)
    found = [finding for finding in given if finding.status != "nothing"]
    if not found:
        said = dict.fromkeys(finding.says for finding in given if finding.says != NOTHING_TO_JUDGE)
        return nothing("; ".join(said)) if said else nothing()
    status = worst(found)
    if status == "pass":
        says = dict.fromkeys(finding.says for finding in found if finding.says)
        because = list(dict.fromkeys(finding.because for finding in found if finding.because))
        more = [f"and {len(because) - REASONS_SHOWN} more"] if len(because) > REASONS_SHOWN else []
        return passed("; ".join(says), because="; ".join([*because[:REASONS_SHOWN], *more]))
    first, *others = (finding for finding in found if finding.status == status)
    return replace(first, more=(*first.more, *(it for other in others for it in other.violations)))


def folded(verdict: Verdict) -> Verdict:
    """The verdict with a few violations of each kind. The others of a kind count as one, and so do further kinds."""
    if not verdict.more:
        return verdict
    kinds: dict[tuple[str, str], list[Violation]] = {}
    for violation in verdict.violations:
        session = _session(violation)
        kinds.setdefault((session, _NUMBER.sub("#", violation.says[len(session) :])), []).append(violation)
    shown: list[Violation] = []
    groups = list(kinds.values())
    for alike in groups[:KINDS_SHOWN]:
        shown += alike[:ALIKE_SHOWN]
        shown += _as_one(alike[ALIKE_SHOWN:], f"{_session(alike[0])}and {{}} more like it")
    shown += _as_one([it for alike in groups[KINDS_SHOWN:] for it in alike], "and {} more of other kinds")
    return replace(verdict, more=tuple(shown[1:]))


def _as_one(violations: Sequence[Violation], says: str) -> list[Violation]:
    """One violation in the place of several, with their evidence; none in the place of none."""
    if not violations:
        return []
    evidence = tuple(dict.fromkeys(event for violation in violations for event in violation.evidence))
    return [Violation(says.format(f"{len(violations):,}"), evidence, like=violations[0].says)]


def _session(violation: Violation) -> str:
    found = _OF_SESSION.match(violation.says)
    return found[0] if found else ""


def refused_as_too_long_before(history: History, later: Call) -> bool:
    """Whether the provider refused a request for its length before this one: then an agent may drop what it likes.

    A subagent has a window of its own.
    """
    refused = [call.refused for call in history.calls if call.refused is not None and not of_a_subagent(call)]
    return any(refused_as_too_long(it) for it in refused if it.id < later.arrived.id)


def of_a_subagent(call: Call) -> bool:
    """Whether a call says what a subagent said, and not what the conversation says, as a planner may."""
    return bool(call.arrived.side) and call.arrived.background != SIDE


def short_time(took_s: float) -> str:
    """`2.1 s`, `0.18 s`, `43 ms`: never `0.0 s`, which would contradict a table of times."""
    if took_s >= 0.95:
        return f"{took_s:.1f} s"
    return f"{took_s:.2f} s" if took_s >= 0.0995 else f"{took_s * 1000:.0f} ms"
