"""What went wrong with the calls of a turn, and whether its end made up for it."""

from typing import Final, Literal

from wedgehog.harness.record.views import Call, Turn

_CUT_BY: Final = {"max_tokens": "max_tokens", "filter": "a filter"}


def went_wrong(call: Call) -> bool:
    """Whether a call failed, or a fault struck it: a plan that came whole may have another shape than asked for."""
    return bool(call.faults) or not call.intact


def failed(turn: Turn, made_good_by: Literal["tool", "any"]) -> bool:
    """Whether a call of the turn failed and the last call does not make up for it.

    A successful last call makes up for the silence of a wake-up. It makes up for other words only if its reply asks for
    tools: then the agent stopped at a limit. After a final text such words are an apology.
    """
    calls = turn.main_calls
    last = calls[-1] if calls else None
    unseen = any(last is None or last.arrived.id < fault.id for fault in turn.kept_away)
    if unseen or last is None:  # a plan or a check that failed kept the agent from its first request
        return unseen or (made_good_by == "tool" and any(map(went_wrong, turn.calls)))
    if made_good_by == "any":
        return not last.ok and any(not call.ok for call in calls)
    ended_well = last.intact and last.ended is not None and last.ended.stop == "tool"
    return not ended_well and any(not (call.intact or spent_on_thoughts(call)) for call in calls)


def spent_on_thoughts(call: Call) -> bool:
    """Whether the reply came whole, and stopped at max_tokens before its first word or call: the model said nothing."""
    ended = call.ended
    at_limit = ended is not None and call.whole and ended.stop == "max_tokens" and not call.damaged
    return at_limit and ended is not None and not ended.text_delivered.strip() and not ended.tool_calls


def worst_of(turn: Turn) -> str:
    """The worst that happened to a call of a turn in which one went wrong."""
    bad = [call for call in turn.main_calls if not call.intact]
    if not bad or any(not call.ok and not _was_cut(call) for call in bad):
        return "a failed call"
    cut = [_CUT_BY[call.ended.stop] for call in bad if _was_cut(call) and call.ended is not None]
    return f"a reply that was cut by {cut[0]}" if cut else "a damaged reply"


def _was_cut(call: Call) -> bool:
    """Whether the provider itself ended its reply before the end."""
    return call.whole and call.ended is not None and call.ended.stop in _CUT_BY
