"""A tool call with cut arguments does not run."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.record.events.call import RequestArrived
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Call


@invariant("no_half_calls")
def no_half_calls(history: History) -> Iterator[Verdict]:
    """A tool call of which only a part arrived never runs.

    Half a command is another command (`rm -rf /tmp/x` cut after the slash). Judged by the command's own beacon, or by a
    shell that says in the call's result that its command breaks off. A retried step offers the same call again, so only
    what happens before a whole one arrived counts. Whole arguments in a fence or a list are no half call.

    Fix: Start a tool only after the reply's last event has arrived and its arguments parse as JSON. Discard all
    tool calls of a reply that broke off.
    """
    offers = [(call, offered) for call in history.calls if call.ended for offered in call.ended.tool_calls]
    whole: dict[str, list[Call]] = {}
    for call, offered in offers:
        if offered.whole:
            whole.setdefault(offered.token, []).append(call)

    for call, offered in offers:
        if offered.whole or offered.wrapped or call.ended is None:
            continue
        sign = next((it for it in _signs(history, offered.token) if it.id > call.arrived.id), None)
        others = whole.get(offered.token, [])
        if sign is None or _came_late(call, sign) or any(other.arrived.id < sign.id for other in others):
            yield passed(because=f"tool call {offered.token} arrived in part, and this part did not run")
        else:
            says = f"tool call {offered.token} ({offered.name}) ran, though only a part of it had arrived"
            yield fail(f"{says}{_words(sign, offered.token)}", (call.ended, sign))


def _came_late(call: Call, sign: BeaconSeen | RequestArrived) -> bool:
    """Whether the rest of its reply was only late, and came before the sign: the agent had not hung up."""
    return call.ended is not None and call.still_coming and call.ended.id < sign.id


def _signs(history: History, token: str) -> Iterator[BeaconSeen | RequestArrived]:
    """What shows that a command ran: its beacon, or a result in which a shell could not read it to its end."""
    for event in history.events:
        if (isinstance(event, BeaconSeen) and (event.token, event.phase) == (token, "started")) or (
            isinstance(event, RequestArrived) and _words(event, token)
        ):
            yield event


def _words(sign: BeaconSeen | RequestArrived, token: str) -> str:
    results = sign.results if isinstance(sign, RequestArrived) else ()
    said = next((it.broken_off for it in results if it.token == token and it.broken_off), "")
    return f": its shell said {said!r}" if said else ""
