"""A tool call with cut arguments does not run."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.record.event import BeaconSeen
from wedgehog.harness.record.history import Call, History
from wedgehog.harness.record.verdict import Verdict, fail, passed


@invariant("no_half_calls")
def no_half_calls(history: History) -> Iterator[Verdict]:
    """A tool call of which only a part arrived never runs.

    Half a command is another command (`rm -rf /tmp/x` cut after the slash). Judged by the command's own beacon. A
    retried step offers the same call again, so only a start before a whole one arrived counts.

    Fix: Start a tool only after the reply's last event has arrived and its arguments parse as JSON. Discard all
    tool calls of a reply that broke off.
    """
    offers = [(call, offered) for call in history.calls if call.ended for offered in call.ended.tool_calls]
    whole: dict[str, list[Call]] = {}
    for call, offered in offers:
        if offered.whole:
            whole.setdefault(offered.token, []).append(call)

    for call, offered in offers:
        if offered.whole or call.ended is None:
            continue
        starts = [it for it in history.of(BeaconSeen) if it.token == offered.token and it.phase == "started"]
        start = next((it for it in starts if it.id > call.arrived.id), None)
        if start is None or any(other.arrived.id < start.id for other in whole.get(offered.token, [])):
            yield passed()
        else:
            says = f"tool call {offered.token} ({offered.name}) ran, though only a part of it had arrived"
            yield fail(says, (call.ended, start))
