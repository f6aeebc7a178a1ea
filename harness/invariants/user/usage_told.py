"""What an agent says of its own tokens and money is what the provider billed."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import requests
from wedgehog.harness.record.history import History
from wedgehog.harness.record.ledger import ledger_of, priced_as
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Call, Turn

TOKEN_SHARE = 0.1
"""An agent may round, or leave out what a title cost."""
USD_SHARE = 0.3
"""Price tables differ."""
ENDED = ("answered", "surfaced", "stopped at its limit")
"""Outcomes of a turn that its agent ended by itself."""


class _Bill(NamedTuple):
    """What some calls took: the least that an honest count can say, and the most."""

    least: float
    most: float


@invariant("usage_told", level="strict")
def usage_told(history: History) -> Iterator[Verdict]:
    """The tokens and dollars that an agent says a turn took are those that the provider billed.

    A user who reads half of the cost, or that of the last call only, learns the truth from the bill; a budget that
    counts so stops nothing. Judged where the spec says where the agent tells them (`usage`), in turns that end in an
    answer, in an error or at a limit: what came before an error is billed too. The least is the sum over the replies
    that arrived whole, those of subagents too; the most is all that was billed, also for broken replies and for calls
    beside the conversation. Tokens may differ by a tenth, dollars by three tenths, and dollars count only for models
    whose price is known.

    Fix: Add up the usage of every reply of the turn: each round of tools, each retry that was answered, each subagent.
    Take the last number of a stream that repeats its count, and not the sum.
    """
    so_far, ledger = list[Call](), ledger_of(history)
    for turn in history.turns:
        so_far += turn.calls
        told = turn.end.usage if turn.end is not None else None
        if told is None or outcome_of(turn, history).kind not in ENDED:
            continue
        calls = [call for call in (so_far if told.of_session else turn.calls) if call.paid]
        if told.input_tokens is not None:
            yield _judge(turn, "input tokens", told.input_tokens, _bill(calls, lambda it: it.input_tokens), calls)
        if told.output_tokens is not None:
            yield _judge(turn, "output tokens", told.output_tokens, _bill(calls, lambda it: it.output_tokens), calls)
        if told.usd is not None and all(priced_as(call.arrived.model, "") for call in calls):
            bill = _bill(calls, lambda it: float(ledger.call(it.number).usd or 0))
            yield _judge(turn, "dollars", told.usd, bill, calls)


def _bill(calls: Sequence[Call], of: Callable[[Call], float]) -> _Bill:
    told_of = [call for call in calls if call.whole and not call.damaged and (call.main or call.arrived.side)]
    return _Bill(sum(map(of, told_of)), sum(map(of, calls)))


def _judge(turn: Turn, what: str, told: float, bill: _Bill, calls: Sequence[Call]) -> Verdict:
    share = USD_SHARE if what == "dollars" else TOKEN_SHARE
    if bill.least * (1 - share) <= told <= bill.most * (1 + share):
        return passed(because=f"{turn}: the {what} that it reports fit the bill")
    billed = bill.least if told < bill.least else bill.most
    says = f"{turn}: the agent says {_shown(told)} {what}, and its {len(calls)} paid calls took {_shown(billed)}"
    return fail(says, (*requests(calls), *([turn.end] if turn.end is not None else [])))


def _shown(number: float) -> str:
    return f"{number:,.0f}" if number >= 1 else f"{number:.4f}"
