"""A page that is opened again shows what was said."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import ends
from wedgehog.harness.record.error_words import FIRST_WORDS, plain
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Turn


@invariant("page_kept", level="strict")
def page_kept(history: History) -> Iterator[Verdict]:
    """An agent's page, opened again by its user, shows each message that was sent there, and each answer once.

    Judged where the page was loaded again, or closed and opened at the same address, or where its user comes from
    another conversation: what it shows when it takes the next message and stands still. Of a turn that was not
    answered, the message is enough; but where the page was closed during a turn, and the service worked on and had the
    whole answer by then, that must be shown too. A user whose question is gone asks again, and the work is done twice.
    A user who comes back while the agent works must see the answer without loading the page again. A page that has
    lost its connection and connects again must not show an earlier answer once more.

    Fix: Store a message when it comes, not when it is answered. Load the conversation by the id in the page's address,
    and show a running answer from where the stored part of it ends. Number the events of a stream, and begin behind
    the last one that the page has (`Last-Event-ID`).
    """
    lost = {fired.turn for fired in history.of(FaultFired) if fired.link == "channel"}
    for turn in history.turns:
        if turn.number in lost and turn.end is not None and turn.end.appends:
            for before in _shown_again(turn, history):
                says = f"{turn}: the page lost its connection, and then showed the answer of {before} once more"
                yield fail(says, [*ends(before), *ends(turn)])
        if turn.end is not None and turn.end.loaded_again and outcome_of(turn, history).kind == "answered":
            says = f"{turn.in_session}: its user came back, and saw the answer only when they had loaded the page again"
            yield fail(says, ends(turn))
        if turn.end is None or turn.end.opened is None:
            continue
        shown = plain(turn.end.opened)
        for before in (it for it in history.turns if it.session == turn.session and it.number < turn.number):
            if wrong := _missing(before, shown, _owes_answer(before, turn, history)):
                yield fail(f"{turn}: the page was opened again, and {wrong}", [*ends(before), *ends(turn)])
            else:
                yield passed(because=f"{turn}: the page, opened again, shows {before}")


def _shown_again(turn: Turn, history: History) -> Iterator[Turn]:
    """The earlier turns of the session whose answers came new on the page in this one."""
    shown = plain(turn.end.answer) if turn.end is not None else ""
    for before in history.turns:
        if (
            before.session == turn.session
            and before.number < turn.number
            and any(it in shown for it in _answers(before))
        ):
            yield before


def _owes_answer(before: Turn, turn: Turn, history: History) -> bool:
    """Whether the service has the answer of an earlier turn when the page is opened for this one."""
    if outcome_of(before, history).kind == "answered":
        return True
    opened = turn.stimulus.id if turn.stimulus is not None else 0
    came = (call for call in before.main_calls if call.final and call.hung_up is None and call.ended is not None)
    return before.gave_up is not None and any(call.ended is not None and call.ended.id < opened for call in came)


def _missing(before: Turn, shown: str, owes_answer: bool) -> str:
    """What is wrong with how the page shows an earlier turn; empty if nothing is."""
    if before.stimulus is None:
        return ""
    if plain(before.stimulus.marker) not in shown:
        return f"does not show the message of {before}"
    if owes_answer and plain(before.stimulus.nonce) not in shown:
        return f"does not show the answer of {before}"
    if owes_answer and any(text[:FIRST_WORDS] not in shown for text in _answers(before)):
        return f"shows the end of the answer of {before}, and not its beginning"
    times = max((shown.count(text) for text in _answers(before)), default=0)
    return f"shows the answer of {before} {times} times" if times > 1 else ""


def _answers(turn: Turn) -> Iterator[str]:
    """The whole texts of its last replies."""
    for call in turn.main_calls:
        if call.final and call.ended is not None and (text := plain(call.ended.text_delivered)):
            yield text
