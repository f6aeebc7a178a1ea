"""When its user or front end has gone, the agent asks the model nothing more."""

from collections.abc import Iterator

from wedgehog.harness.invariants.overload import too_late
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import requests, together
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, passed


@invariant("no_spend_after_abort", unscaled=("grace_s",))
def no_spend_after_abort(history: History, *, grace_s: float = 2) -> Verdict:
    """No model request for a turn starts more than `grace_s` after its abort or hang-up was delivered.

    A back end that works on for a front end that has given up spends for nobody (incident endless-loop).
    """
    given = [turn.stimulus for turn in history.turns if turn.stimulus is not None]

    def each() -> Iterator[Verdict]:
        for turn in history.turns:
            stop = turn.stopped
            if stop is None:
                continue
            until = min((stimulus.id for stimulus in given if stimulus.id > stop.id), default=len(history.events))
            since_s = stop.at_s + history.stretched(grace_s) + history.frozen_s(stop.at_s, float("inf"))
            late = [call for call in history.calls if call.arrived.id > stop.id and call.at_s > since_s]
            # After the next message, only what still works on the stopped turn.
            beside = {other.number for other in history.beside(turn)}
            calls = [
                call
                for call in late
                if (call.arrived.id < until and call.arrived.turn not in beside)
                or (call.main and call.arrived.turn == turn.number)
            ]
            if calls:
                last_s = calls[-1].at_s - stop.at_s
                how = "abort" if turn.aborted else "hang-up"
                requests_ = "model request" if len(calls) == 1 else "model requests"
                says = f"{turn}: {len(calls)} {requests_} after the {how}, the last {last_s:.1f} s after it"
                span = {"over_s": calls[-1].at_s - since_s, "since_s": stop.at_s, "until_s": calls[-1].at_s}
                yield too_late(history, says, (stop, *requests(calls)), **span)
            else:
                yield passed()

    return together(each())
