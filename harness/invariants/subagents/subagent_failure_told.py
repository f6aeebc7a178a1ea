"""The failure of a subagent reaches the model of its parent."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from wedgehog.fake_llm.script.roles import names_subagent
from wedgehog.fake_llm.script.side_conversations import SIDE
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.requests.side_call_bound import SideCalls, side_calls
from wedgehog.harness.invariants.scope import blocked, main_calls_of, tool_uses_of
from wedgehog.harness.record.build_views import SEEN_LATE_S
from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.call import RequestArrived, ToolResult
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Call, Turn

LIMIT_ROUNDS = 5
"""A subagent that asked its model so often, and ended with a call of a tool, was ended at a limit."""
_CLAIMS = re.compile(r"succe|complet|finish|done|\bok\b|ready", re.IGNORECASE)
"""Words of a subagent that a result may repeat."""


@dataclass(frozen=True, slots=True)
class SilentSubagent:
    """A subagent that was ended, or whose last call gave it no text, and the results that its parent sends."""

    side: SideCalls
    following: RequestArrived
    results: tuple[ToolResult, ...]

    @property
    def answered(self) -> bool:
        """Whether its last call was answered by a reply without text."""
        return self.side.calls[-1].ok

    @property
    def is_empty(self) -> bool:
        """Whether each result is empty, or a frame with nothing in it, and not marked as an error."""
        return not any((it.chars and not _is_hollow(it)) or it.is_error or it.in_text for it in self.results)

    @property
    def is_praised(self) -> bool:
        """Whether each result says that all went well, though no words of the subagent can have said so."""
        said = any(call.ended is not None and _CLAIMS.search(call.ended.text_delivered) for call in self.side.calls)
        told = any(it.is_error or it.in_text or "foreign" in (it.signs or ()) for it in self.results)
        return not said and not told and all("success" in (it.signs or ()) for it in self.results)

    @property
    def has_spoken(self) -> bool:
        """Whether its model said a word in any of its replies: its parent may read that."""
        return any(call.ended is not None and call.ended.text_delivered.strip() for call in self.side.calls)

    @property
    def seen(self) -> tuple[Event, ...]:
        """Its last request, and the one with the results."""
        return self.side.calls[-1].arrived, self.following

    def __str__(self) -> str:
        how = "got a reply that says nothing" if self.answered else "failed"
        if was_ended(self.side):
            how = "was ended before its tool had run"
        return f"{self.side.name} {how} (call {self.side.calls[-1].number})"


def _is_hollow(result: ToolResult) -> bool:
    """Whether a frame in it holds nothing, and no word of it tells of a failure."""
    signs = result.signs or ()
    return "hollow" in signs and "failed" not in signs


@invariant("subagent_failure_told")
def subagent_failure_told(history: History) -> Iterator[Verdict]:
    """The result of a subagent that failed without a word is not empty, and no success: it tells of the failure.

    A model that reads an empty result, or that the work is done, believes it, and tells its user so. Judged where the
    last call of a subagent failed before its first word, and each delegating call of the reply had one subagent. Red if
    all of their results are empty, or hold an empty frame such as `<result></result>` and no word of a failure. Red
    too if all say "success", "succeeded" or "completed", such as "Completed (no output)", without a word of a failure,
    and the subagent itself had said nothing of the kind: what it said before it failed is no result of its work.

    An empty result is red too where a subagent asked its model five times or more, and was ended while a tool call of
    its last reply had no result: it has reached its limit, and its work is not done.

    Fix: Send the error of a subagent as the result of the call that began it, and mark it as an error.
    """
    for turn in history.turns:
        for silent in silent_subagents(history, turn):
            if not silent.answered:
                yield _told(silent)
        for ended in silent_subagents(history, turn, was_ended):
            if ended.is_empty:
                yield fail(f"{ended}, and its result in request {ended.following.call} is empty", ended.seen)
            else:
                yield passed(because="the result of the subagent that was ended is not empty")


def _told(silent: SilentSubagent) -> Verdict:
    if silent.is_praised:
        return fail(f"{silent}, and its result in request {silent.following.call} tells of a success", silent.seen)
    if not silent.is_empty:
        return passed(because="the result of the subagent that failed is not empty")
    return fail(f"{silent}, and its result in request {silent.following.call} is empty", silent.seen)


def _is_silent(side: SideCalls) -> bool:
    """Whether the last call of a subagent brought it no word: it failed, or its reply is whole and empty."""
    last = side.calls[-1]
    ended = last.ended
    if ended is not None and (ended.text_delivered or ended.tool_calls):
        return False
    return last.ok if last.failed_at_s is None else not last.ok


def was_ended(side: SideCalls) -> bool:
    """Whether it was ended at a limit: the last of many replies asks for a tool, and no request has the result."""
    last = side.calls[-1]
    return last.ok and last.ended is not None and bool(last.ended.tool_calls) and len(side.calls) >= LIMIT_ROUNDS


def silent_subagents(
    history: History, turn: Turn, is_one: Callable[[SideCalls], bool] = _is_silent
) -> Iterator[SilentSubagent]:
    """One of each reply that gave work to subagents, if `is_one` is true for some of them, and all results follow."""
    for asked, following in pairwise(main_calls_of(turn)):
        uses = [use for use in tool_uses_of(turn) if use.reply is asked.ended]
        if not uses or not asked.ok or asked.damaged or not all(names_subagent(it.offered.name) for it in uses):
            continue
        sides = _between(history, asked, following.arrived)
        silent = [side for side in sides if is_one(side)]
        carried = {it.token: it for it in following.arrived.results}
        results = tuple(carried[use.token] for use in uses if use.token in carried)
        if silent and len(sides) == len(uses) == len(results) and not blocked(history, uses[0], following.arrived):
            yield SilentSubagent(silent[0], following.arrived, results)


def _between(history: History, asked: Call, following: RequestArrived) -> list[SideCalls]:
    """The subagents that began and ended between a reply and the next main request: the parent waited for them."""
    first = asked.ended.id if asked.ended is not None else 0
    sides = (side for side in side_calls(history) if side.kind != SIDE)
    inside = (side for side in sides if all(first < it.arrived.id < following.id for it in side.calls))
    return [side for side in inside if _is_over(side.calls[-1], following)]


def _is_over(last: Call, following: RequestArrived) -> bool:
    """Whether the last call of a subagent had failed, or was answered, before this request."""
    if last.failed_at_s is not None:
        return last.failed_at_s <= following.at_s + (SEEN_LATE_S if last.hung_up else 0)
    return last.ended is None or last.ended.id < following.id
