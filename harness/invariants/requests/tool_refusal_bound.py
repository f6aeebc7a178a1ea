"""A tool server that refuses its client is not asked for ever."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import UNAUTHORIZED, before_stop
from wedgehog.harness.record.events.service import ToolRefused
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed


@invariant("tool_refusal_bound")
def tool_refusal_bound(history: History, *, refused_requests: int = 20) -> Iterator[Verdict]:
    """A turn sends at most `refused_requests` to our tool host (MCP over HTTP) that are refused with 401.

    The same token is refused again. An agent that connects anew after each refusal keeps its user waiting, or sends
    thousands of requests while it answers. Judged where our tool host refused a request so.

    Fix: After a 401 get a token once, or mark the server as one that needs a login. Tell the user, and work on without
    its tools.
    """
    refused = [it for it in history.of(ToolRefused) if it.status == UNAUTHORIZED]
    if not refused:
        return
    for turn in history.turns:
        mine = before_stop(turn, refused)
        if len(mine) > refused_requests:
            says = f"{turn} sent {len(mine)} requests that the tool host refused with {UNAUTHORIZED}"
            yield fail(f"{says}, {refused_requests} allowed", (mine[0], mine[-1]))
    yield passed(f"the tool host refused {len(refused)} requests with {UNAUTHORIZED}")
