"""An expired access token makes no storm."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import UNAUTHORIZED, before_stop, calls_of, requests
from wedgehog.harness.record.events.service import TokenAsked
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed


@invariant("token_request_bound", by_calls=True)
def token_request_bound(history: History, *, token_requests: int = 5, refused_calls: int = 5) -> Iterator[Verdict]:
    """A turn sends at most `token_requests` to the token endpoint, and at most `refused_calls` refused with 401.

    An agent that asks for a new token after each 401 without a limit, or repeats its call with the expired token, sends
    hundreds of requests in a second. Identity providers then block the client. Judged on agents that use our token
    endpoint.

    Fix: After a 401 ask once for a new token and repeat the call once with it. Repeat a token request that failed with
    a status of 500 or more at most a few times, with pauses. Tell the user of `invalid_grant`; a repeat cannot help.
    """
    asked = list(history.of(TokenAsked))
    if not asked:
        return
    for turn in history.turns:
        mine = before_stop(turn, asked)
        if len(mine) > token_requests:
            yield fail(f"{turn} sent {len(mine)} token requests, {token_requests} allowed", (mine[0], mine[-1]))
        dead = [call for call in calls_of(turn) if call.refused and call.refused.status == UNAUTHORIZED]
        if len(dead) > refused_calls:
            says = f"{turn} sent {len(dead)} model calls that were refused with 401, {refused_calls} allowed"
            yield fail(says, requests(dead))
    yield passed(f"the token endpoint was asked {len(asked)} times")
