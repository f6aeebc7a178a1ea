"""A chat shows that its agent writes only while the agent works."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.record.events.service import TYPES_ON_S, BeaconSeen, ChatSeen
from wedgehog.harness.record.events.turn import StimulusGiven
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, nothing, passed


@invariant("typing_ends")
def typing_ends(history: History) -> Iterator[Verdict]:
    """Behind the last message of a run its chat shows "typing …" for less than a minute.

    Its user waits for words that never come. Judged for agents with a chat, at the end of the run: the sign may have
    come in an earlier turn. Not judged while a request or a command is under way, or had been within that minute.

    Fix: Stop what repeats the sign in a `finally`, so that it ends after an answer, after an error and after an empty
    reply. Give it a longest time.
    """
    for seen in history.of(ChatSeen):
        if not seen.types:
            yield passed(because="the chat shows nothing more behind the last message")
        elif why := _under_way(history, seen):
            yield nothing(f"the agent types behind its last message, and {why} is under way")
        else:
            says = f"the chat shows that the agent types, {TYPES_ON_S:g} s after its last message"
            yield fail(f"{says}, and nothing is under way", (seen,))


def _under_way(history: History, seen: ChatSeen) -> str:
    """What went on within the last minute; empty: nothing."""
    since_s = seen.at_s - TYPES_ON_S
    given = [it for it in history.of(StimulusGiven) if it.id < seen.id][-1]
    calls = [call for call in history.calls if given.id < call.arrived.id < seen.id]
    if any(call.at_s > since_s or call.open_after(seen.id) for call in calls):
        return "a request"
    beacons = [it for it in history.of(BeaconSeen) if it.id < seen.id]
    over = {it.token for it in beacons if it.phase == "done" and it.at_s < since_s}
    mine = (it.token for it in beacons if it.background or it.token.startswith(f"{given.turn}."))
    return "a command" if any(token not in over for token in mine) else ""
