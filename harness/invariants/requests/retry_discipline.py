"""Retries wait, and a request that can't succeed is not sent again."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from wedgehog.harness.invariants.overload import too_late
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import (
    REFUSED_FOR_CONTENT,
    compacts,
    judged,
    refused_as_too_long,
    requests,
    short_time,
)
from wedgehog.harness.record.events.call import RequestRefused
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Call, Turn

LONGEST_RETRY_AFTER_S = 60.0
"""To ignore a longer wait is only reported."""
RETRY_AFTER_SHARE = 0.9
DATE_RESOLUTION_S = 1.0
"""An HTTP date has whole seconds."""
HASTY_S = 0.1
HASTY_IN_A_ROW = 3
ATTEMPTS_PER_STEP = 30
NOT_SHORTER = 4
"""An agent may lower its limit of output tokens first, and try its other ways to make room one by one."""
NEVER_AGAIN = (400, 401, 402)
"""Statuses that the same request with the same key gets again."""
QUOTA = "insufficient_quota"
"""OpenAI's 429 for a used-up quota. It is as hopeless, but the official SDK repeats each 429: only reported."""


@invariant("retry_discipline", by_calls=True)
def retry_discipline(history: History) -> Iterator[Verdict]:
    """A retry of the same body with the same key obeys Retry-After, never follows a 400, 401 or 402, and waits.

    Five things are red. A retry arrives before 90 % of a Retry-After of 0.1 to 60 s has passed (for a date, one second
    less; on Ollama's wire this is a remark, as its own server sends none and its clients hide it). A 400, 401 or 402
    is repeated (a request for a summary: more than once). Three retries in a row start within 100 ms (divided by the
    run's time scale) of a refusal by the provider or the network; the agent's own time-out is no refusal. One step has
    more than 30 attempts. After a 400 for its length a request follows that is not shorter, more than four times in a
    turn.

    Fix: Wait as long as Retry-After asks, else for a growing time with jitter. Do not repeat a 400, 401 or 402. Stop
    after a few attempts. Where a request is too long, leave something out, or end the turn.
    """
    rules: tuple[Callable[[History, Sequence[Call]], Iterator[Verdict]], ...] = (_hopeless, _early, _hammering)
    for turn in history.turns:
        calls = judged(turn).main_calls
        yield from _attempts(turn)
        yield from _not_shorter(calls)
        for same in _repeated(calls):
            for rule in rules:
                yield from rule(history, same)
        for same in _repeated([call for call in judged(turn).calls if compacts(call)]):
            yield from _hopeless_summaries(same)
        if failed := [call for call in calls if not call.ok]:
            yield passed(because=f"{turn}: {_retries(calls, failed)}")


def _retries(calls: Sequence[Call], failed: Sequence[Call]) -> str:
    """How many requests failed, and how soon the first one with the same body came after such a failure."""
    again = [pair for same in _repeated(calls) for pair in pairwise(same)]
    waits = [
        after.at_s - failed_s
        for before, after in again
        if (failed_s := _refused_s(before)) is not None and after.at_s >= failed_s
    ]
    if waits:
        soonest = f"the shortest wait before a retry was {short_time(min(waits))}"
    else:
        soonest = f"{len(again)} retried, none after a refusal" if again else "no body was sent again"
    return f"{len(failed)} of {len(calls)} requests failed; {soonest}"


def _attempts(turn: Turn) -> Iterator[Verdict]:
    for step in judged(turn).steps:
        if len(step.calls) > ATTEMPTS_PER_STEP:
            says = f"{step} was attempted {len(step.calls)} times, {ATTEMPTS_PER_STEP} allowed"
            yield fail(says, requests(step.calls[ATTEMPTS_PER_STEP:]))


def _not_shorter(calls: Sequence[Call]) -> Iterator[Verdict]:
    again = [pair for pair in pairwise(calls) if _is_as_long(*pair)]
    if len(again) > NOT_SHORTER:
        says = f"{len(again)} times a request was refused as too long, and the next one was not shorter"
        yield fail(f"{says}; {NOT_SHORTER} allowed", requests([again[0][0], *(after for _, after in again)]))


def _is_as_long(before: Call, after: Call) -> bool:
    """Whether a request follows one that was refused for its length, has no fewer bytes, and asks the same model.

    A 413 may come from a proxy, and some SDKs repeat it.
    """
    refused = before.refused
    if refused is None or refused.status != REFUSED_FOR_CONTENT or not _status_is_known(before):
        return False
    as_long = 0 < before.arrived.body_bytes <= after.arrived.body_bytes
    return refused_as_too_long(refused) and as_long and before.arrived.model == after.arrived.model


def _repeated(calls: Sequence[Call]) -> Iterator[list[Call]]:
    """Groups of several calls with the same body and key, in order of arrival."""
    groups: dict[tuple[str, str], list[Call]] = {}
    for call in calls:
        if call.arrived.body_hash:
            groups.setdefault((call.arrived.body_hash, call.arrived.key), []).append(call)
    return (group for _, group in sorted(groups.items()) if len(group) > 1)


def _again(same: Sequence[Call]) -> Iterator[tuple[Call, RequestRefused, Call]]:
    """Each refused call, its refusal if that arrived, and the next one of these calls that came after it."""
    for call in same:
        again = next((it for it in same if call.refused and it.arrived.id > call.refused.id), None)
        if call.refused and again and _status_is_known(call):
            yield call, call.refused, again


def _status_is_known(refused: Call) -> bool:
    """Whether the agent's HTTP client has the status: its status line and headers arrived, whatever became of the rest.

    Of a refusal that is only slow, the most that can have arrived is known, and that is no proof.
    """
    ended = refused.ended
    if ended is None or ended.how == "complete":
        return True
    return ended.bytes_delivered > 0 if ended.headers_delivered is None else ended.headers_delivered


def _hopeless(history: History, same: Sequence[Call]) -> Iterator[Verdict]:
    del history
    for call, refused, again in _again(same):
        if refused.status in NEVER_AGAIN:
            says = f"request {call.number} was refused with {refused.status}, and sent again unchanged"
            yield fail(says, (refused, again.arrived))
        elif refused.error == QUOTA:
            yield passed(f"request {call.number} was sent again unchanged, though the quota is used up")


def _hopeless_summaries(same: Sequence[Call]) -> Iterator[Verdict]:
    """A summary may be asked for once more, as where a full window is noticed twice in a turn."""
    refused = [call for call in same if call.refused and call.refused.status in NEVER_AGAIN and _status_is_known(call)]
    if len(refused) > 2 and refused[-1].refused is not None:
        status = refused[-1].refused.status
        says = f"a request for a summary was refused with {status} {len(refused)} times, and sent again unchanged"
        yield fail(says, requests(refused))


def _early(history: History, same: Sequence[Call]) -> Iterator[Verdict]:
    for call, refused, again in _again(same):
        if refused.retry_after_s is None or refused.retry_after_s < HASTY_S:
            continue
        asked_s, waited_s = refused.retry_after_s, again.at_s - refused.at_s
        least_s = asked_s * RETRY_AFTER_SHARE - (DATE_RESOLUTION_S if refused.retry_after_is_date else 0.0)
        early_s = least_s - waited_s
        if early_s <= 0:
            continue
        header = "Retry-After, which was a date," if refused.retry_after_is_date else "Retry-After"
        says = f"request {call.number} was sent again after {waited_s:.2f} s, {header} asked for {asked_s:.2f} s"
        if asked_s > LONGEST_RETRY_AFTER_S or call.arrived.wire == "ollama":
            yield passed(says)
        else:
            span = {"over_s": early_s, "since_s": call.at_s, "until_s": again.at_s}
            yield too_late(history, says, (refused, again.arrived), **span)


def _hammering(history: History, same: Sequence[Call]) -> Iterator[Verdict]:
    bound_s = HASTY_S / history.run.time_scale
    row: list[Call] = []
    for before, again in pairwise(same):
        row = [*(row or [before]), again] if _hasty(before, again, bound_s) else []
        if len(row) > HASTY_IN_A_ROW:
            says = f"{HASTY_IN_A_ROW} retries in a row started within {bound_s * 1000:.0f} ms of a refusal"
            says = f"{says} (requests {row[0].number} to {row[-1].number})"
            found = [_too_hasty(history, says, row, *pair, bound_s) for pair in pairwise(row)]
            yield next((it for it in found if it.status != "fail"), found[0])
            return


def _too_hasty(history: History, says: str, row: Sequence[Call], before: Call, again: Call, bound_s: float) -> Verdict:
    """The record of a cut may be late, when it is proved; the record of our refusal is earlier than its arrival."""
    over_s = bound_s - (again.at_s - (_refused_s(before) or before.at_s))
    since_s = again.at_s if before.refused else before.at_s
    return too_late(history, says, requests(row), over_s=over_s, since_s=since_s, until_s=again.at_s)


def _hasty(before: Call, again: Call, bound_s: float) -> bool:
    failed_s = _refused_s(before)
    if failed_s is None or again.at_s < failed_s:
        return False
    told_s = before.refused.retry_after_s if before.refused else None
    waited_s = again.at_s - failed_s
    return waited_s < bound_s and not (told_s is not None and waited_s >= told_s)


def _refused_s(call: Call) -> float | None:
    """When the provider or the network refused it; None: the agent itself stopped waiting, or nothing failed."""
    if call.refused is not None:
        return call.refused.at_s
    return call.ended.at_s if call.ended is not None and call.ended.how == "cut" else None
