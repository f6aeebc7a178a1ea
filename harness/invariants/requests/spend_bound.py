"""What one turn may cost."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import calls_of, main_calls_of, requests, together
from wedgehog.harness.record.history import History
from wedgehog.harness.record.ledger import ledger_of
from wedgehog.harness.record.verdict import Verdict, fail, inconclusive, nothing, passed
from wedgehog.harness.record.views import Call, Turn

TOKEN_SHARE = 0.1


@invariant("spend_bound", by_calls=True)
def spend_bound(history: History, *, usd_per_turn: float | None = None, tokens_per_turn: int | None = None) -> Verdict:
    """A turn costs at most `usd_per_turn` (no stock number: without one, the most expensive turn is reported).

    Input tokens are billed on acceptance, output tokens as far as they were generated. With `tokens_per_turn`, a turn
    sends no request of the conversation after its whole replies have told so many tokens, of input and output together.
    A tenth more is allowed for an agent that estimates them.

    Fix: Add up the usage of the replies while the turn runs, and end the turn with a sentence when its budget is
    spent.
    """
    ledger = ledger_of(history)

    def each() -> Iterator[Verdict]:
        for turn in history.turns:
            if tokens_per_turn is not None:
                yield from _beyond(history, turn, tokens_per_turn)
            paid = [call for call in calls_of(turn) if call.paid]
            costs = [ledger.call(call.number).usd for call in paid]
            known = [usd for usd in costs if usd is not None]
            if len(known) < len(costs):
                unknown = f"{turn}: a model has no known price"
                yield passed(because=unknown) if usd_per_turn is None else inconclusive(unknown)
            elif usd_per_turn is not None and float(sum(known)) > usd_per_turn:
                spent = f"{turn} had a simulated cost of {_money(float(sum(known)))} in {len(paid)} paid calls"
                says = f"{spent}, {_money(usd_per_turn)} allowed"
                yield fail(says, requests(paid))

    if not any(call.paid for call in history.calls):
        return nothing("nothing was paid")
    found = together(each())
    if found.status != "nothing":
        return found
    known = ((number, tally.usd) for number, tally in ledger.turns.items() if tally.usd is not None)
    number, usd = max(known, key=lambda it: it[1], default=(0, None))
    turn = next((it for it in history.turns if it.number == number), None)
    if usd is None or turn is None:
        return passed(because="no turn has a known cost")
    least = "at least " if history.is_cut_short(turn) else ""
    return passed(f"the most expensive turn, {turn}, had a simulated cost of {least}{_money(float(usd))}")


def _beyond(history: History, turn: Turn, most: int) -> Iterator[Verdict]:
    """Whether a request was sent after the replies before it had told `most` tokens."""
    ledger, told, before = ledger_of(history), 0, list[Call]()
    for call in main_calls_of(turn):
        if before and told >= most * (1 + TOKEN_SHARE):
            says = f"{turn}: request {call.number} was sent after {told} tokens, {most} allowed"
            yield fail(says, requests([*before, call]))
            return
        if call.ok and not call.damaged:
            before.append(call)
            told += ledger.call(call.number).tokens_billed
    if before:
        yield passed(because=f"{turn}: it sent no request after {most} tokens ({told} with its last reply)")


def _money(usd: float) -> str:
    return f"${usd:.6f}" if 0 < usd < 0.001 else f"${usd:.4f}"
