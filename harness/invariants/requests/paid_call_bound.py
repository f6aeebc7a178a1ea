"""How often one turn may be paid for: the retries of SDK, agent, profile and model multiply."""

from collections.abc import Iterator
from dataclasses import replace

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.requests.tool_round_bound import TOOL_ROUNDS
from wedgehog.harness.invariants.scope import compacts, judged, requests, stray_calls
from wedgehog.harness.record.history import History, longest_run
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Step, Turn

PER_STEP = 12


@invariant("paid_call_bound", by_calls=True)
def paid_call_bound(
    history: History,
    *,
    per_step: int = PER_STEP,
    zero_output: int = 11,
    compactions: int = 30,
    calls_without_progress: int | None = None,
    calls_per_turn: int | None = None,
) -> Iterator[Verdict]:
    """A step is paid for at most `per_step` times after the first; at most `zero_output` paid calls in a row are empty.

    The provider bills every accepted request, also where the client received nothing (incident retry-storm). Ten
    retries is the largest common default, so more than twelve is no false alarm. Where replies are not in the form in
    which the agent reads answers or tool calls, it tells the model so and asks again. Frameworks count that as a round
    of tools, so fifty are allowed. `compactions` bounds requests for a summary of the conversation, accepted or not,
    without a request of the conversation between them.
    `calls_without_progress` bounds requests in a row, accepted or not, of which no text block or tool call arrived
    whole; `calls_per_turn` bounds all requests of a turn. Calls outside of any turn are judged as one more turn.

    Fix: Give each step one budget of attempts and of time, above the retries of SDK, agent, profile and model (for
    example `max_retries=0` in the SDK and one loop of your own). Stop after a few replies without output. After a
    compaction do not judge the length by the old count of tokens, and stop where it does not get shorter.
    """

    def one(name: str, turn: Turn) -> Iterator[Verdict]:
        calls, main = turn.calls, turn.main_calls
        if not calls:
            return
        for step in turn.steps:
            allowed = _allowed(step, per_step)
            if len(step.paid_calls) > allowed:
                says = f"{step} was paid {len(step.paid_calls)} times, {allowed} allowed"
                yield fail(says, requests(step.paid_calls[allowed:]))
        streak = longest_run(turn.paid_calls, lambda call: call.tokens_delivered == 0)
        if len(streak) > zero_output:
            says = f"{name}: {len(streak)} paid calls in a row delivered nothing, {zero_output} allowed"
            yield fail(says, requests(streak[zero_output:]))
        summaries = longest_run((it for it in calls if it.main or compacts(it)), compacts)
        if len(summaries) > compactions:
            says = f"{name}: {len(summaries)} requests for a summary in a row, {compactions} allowed"
            yield fail(says, requests(summaries[compactions:]))
        stuck = longest_run(main, lambda call: not call.progressed)
        if calls_without_progress is not None and len(stuck) > calls_without_progress:
            says = f"{name}: {len(stuck)} requests in a row completed nothing, {calls_without_progress} allowed"
            yield fail(says, requests(stuck[calls_without_progress:]))
        if calls_per_turn is not None and len(calls) > calls_per_turn:
            yield fail(
                f"{name}: {len(calls)} model requests, {calls_per_turn} allowed", requests(calls[calls_per_turn:])
            )
        most = max(turn.steps, key=lambda step: len(step.paid_calls), default=None)
        paid, allowed = (len(most.paid_calls), _allowed(most, per_step)) if most else (0, 1 + per_step)
        because = f"{name}: the most paid calls of one step: {paid}, {allowed} allowed"
        yield passed(_remark(name, len(streak), len(stuck)), because=because)

    for turn in history.turns:
        yield from one(str(turn), judged(turn))
    yield from one("outside any turn", replace(history.stray, calls=stray_calls(history)))


def _allowed(step: Step, per_step: int) -> int:
    """How often a step may be paid for."""
    misses = any(fired.of_form for call in step.paid_calls for fired in call.faults)
    return TOOL_ROUNDS if misses and per_step == PER_STEP else 1 + per_step


def _remark(name: str, zero_output: int, stuck: int) -> str:
    parts = [f"{zero_output} paid calls in a row delivered nothing"] if zero_output > 1 else []
    parts += [f"{stuck} requests in a row completed nothing"] if stuck > max(1, zero_output) else []
    return f"{name}: {', '.join(parts)}" if parts else ""
