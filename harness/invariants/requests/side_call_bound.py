"""The bounds on the calls of a side conversation: the retries of a subagent multiply with those of its parent."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from wedgehog.fake_llm.script.roles import names_subagent
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import calls_of, requests
from wedgehog.harness.record.events.call import ToolCallOffered
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Call, Turn


@dataclass(frozen=True, slots=True)
class SideCalls:
    """The calls of one side conversation in one turn."""

    name: str
    """`subagent 1`"""
    calls: tuple[Call, ...]

    @property
    def kind(self) -> str:
        """`subagent`, or the name that the scenario gives it."""
        return self.name.rpartition(" ")[0]

    @property
    def turn(self) -> int:
        """The turn's number."""
        return self.calls[0].arrived.turn

    def waits_at(self, event: int) -> bool:
        """Whether it has tool calls at the event with this id, and has not sent their results."""
        last = next((call for call in reversed(self.calls) if call.arrived.id < event), None)
        return last is not None and last.ended is not None and last.ended.id < event and bool(last.ended.tool_calls)

    @property
    def steps(self) -> Iterator[tuple[int, tuple[Call, ...]]]:
        """Its steps, each with its attempts."""
        for step, calls in groupby(sorted(self.calls, key=_step), _step):
            yield step, tuple(calls)


def _step(call: Call) -> int:
    return call.arrived.step


def side_calls(history: History) -> Iterator[SideCalls]:
    """Each side conversation in each turn, before the turn's stop or deadline."""
    for turn in history.turns:
        found: dict[str, list[Call]] = {}
        for call in calls_of(turn):
            if call.arrived.side:
                found.setdefault(call.arrived.side, []).append(call)
        for name, calls in found.items():
            yield SideCalls(name, tuple(calls))


@invariant("side_call_bound", by_calls=True)
def side_call_bound(
    history: History, *, per_step: int = 12, attempts: int = 30, nested: int = 30, handed_on: int = 40
) -> Iterator[Verdict]:
    """A step of a side conversation is paid at most `per_step` times after the first, and asked `attempts` times.

    Side conversations are subagents, planners and judges. A parent that runs a failing subagent again multiplies the
    subagent's own retries; a run with the same prompt is the same conversation. The bounds are those of the main
    conversation (`paid_call_bound`, `retry_discipline`). Any other request beside the conversation, such as that for a
    title or a plan, is sent word for word at most `attempts` times in a turn. While a subagent begins, at most `nested`
    others wait for their tools, beside those that the main conversation called. In a turn, with the pause behind it,
    subagents call further ones at most `handed_on` times, also in the background, where nothing waits for them.

    Fix: Limit the attempts of a subagent, and do not start it again with the same prompt after it has given up.
    Count its calls in the budget of the turn. Give the deepest subagent no tool that starts another one.
    """
    sides = list(side_calls(history))
    for side in sides:
        for step, calls in side.steps:
            yield from _one(f"step {step} of {side.name}", calls, 1 + per_step, attempts)
        yield passed(because=f"requests of {side.name}: {len(side.calls)}")
    for turn in history.turns:
        for name, equal in _equal(turn):
            yield from _one(f"{turn}: one {name} call", equal, len(equal), attempts)
        of_turn = [side for side in sides if side.turn == turn.number]
        yield from _nested(turn, of_turn, nested)
        yield from _handed_on(turn, of_turn, handed_on)


def _nested(turn: Turn, sides: Sequence[SideCalls], allowed: int) -> Iterator[Verdict]:
    """Subagents that wait for results as another one begins, more of them than the main conversation called."""
    for side in sides:
        first = side.calls[0].arrived
        own = sum(map(_offers, (call for call in calls_of(turn) if call.main and call.arrived.id < first.id)))
        waiting = [other for other in sides if other.waits_at(first.id)]
        if len(waiting) - own > allowed:
            says = (
                f"{turn}: {side.name} began while {len(waiting)} others waited for their tools, {own + allowed} allowed"
            )
            yield fail(says, (waiting[0].calls[0].arrived, first))
            return


def _handed_on(turn: Turn, sides: Sequence[SideCalls], allowed: int) -> Iterator[Verdict]:
    """More calls of subagents by subagents than are allowed; nothing need wait for these."""
    begun = {(side.name, it.token): call for side in sides for call in side.calls for it in _delegated(call)}
    if len(begun) > allowed:
        says = f"{turn}: subagents called further subagents {len(begun)} times, {allowed} allowed"
        yield fail(says, requests(list(begun.values())[allowed:]))


def _delegated(call: Call) -> Iterator[ToolCallOffered]:
    return (it for it in (call.ended.tool_calls if call.ended is not None else ()) if names_subagent(it.name))


def _offers(call: Call) -> int:
    return len(call.ended.tool_calls) if call.ended is not None else 0


def _equal(turn: Turn) -> Iterator[tuple[str, list[Call]]]:
    """The calls beside the conversation and of none that are equal, with their purpose."""
    found: dict[str, list[Call]] = {}
    for call in calls_of(turn):
        if call.arrived.background and not call.arrived.side and call.arrived.body_hash:
            found.setdefault(call.arrived.body_hash, []).append(call)
    yield from ((calls[0].arrived.background, calls) for calls in found.values() if len(calls) > 1)


def _one(name: str, calls: Sequence[Call], paid: int, attempts: int) -> Iterator[Verdict]:
    accepted = [call for call in calls if call.paid]
    if len(accepted) > paid:
        yield fail(f"{name} was paid {len(accepted)} times, {paid} allowed", requests(accepted))
    if len(calls) > attempts:
        yield fail(f"{name} was asked {len(calls)} times, {attempts} allowed", requests(calls))


def within(history: History, kind: str, paid_calls: int | None, attempts: int | None) -> Iterator[Verdict]:
    """Findings on the conversations of one name, by the bounds that their scenario gives them."""
    for side in side_calls(history):
        if side.kind != kind:
            continue
        yield from _one(side.name, side.calls, len(side.calls) if paid_calls is None else paid_calls, len(side.calls))
        for step, calls in side.steps:
            yield from _one(f"step {step} of {side.name}", calls, len(calls), attempts or len(calls))
        yield passed(because=f"requests of {side.name}: {len(side.calls)}")
