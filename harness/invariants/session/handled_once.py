"""A message that is delivered again, or that has waited for another turn, is not worked on again."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import main_calls_of, requests
from wedgehog.harness.record.events.turn import DeliveredAgain
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, nothing, passed
from wedgehog.harness.record.views import Call, Turn


@invariant("handled_once")
def handled_once(history: History) -> Iterator[Verdict]:
    """A message that comes again with its id, or that waited for another turn, is worked on once.

    Webhooks, queues and front ends deliver a message again if no reply came in time: an agent that takes it for a new
    one files two tickets and pays twice. Slack brings a mention as two events, with two ids and one `ts`: only one of
    them may be worked on. A gateway brings again what an agent had already, if it resumes with an old number. Judged
    where the spec sends `{message_id}`, or a chat has a webhook or a gateway. The second request may wait for the same
    answer, be accepted or be refused. Not judged where a fault struck the turn, or the agent hung up
    on a request, or asks for each step twice.

    A message that came while another turn ran may stand in two queues, or twice in one. Red if it was answered, and a
    later request carries it once more behind that answer.

    Fix: Store the ids of messages before you work on them, and accept one that is known without doing anything. In
    Slack a message is known by its channel and `ts`, not by `event_id`. Take a message out of its queue in one place,
    when its turn begins.
    """
    yield from _of_those_that_waited(history)
    came_twice = {it.turn for it in history.of(DeliveredAgain)}
    for again in history.of(DeliveredAgain):
        turn = next((it for it in history.turns if it.number == again.turn), None)
        if turn is None or not main_calls_of(turn):
            continue
        if any(not call.ok for call in main_calls_of(turn)):
            yield nothing(f"{turn}: a request of it has failed, and may be sent again")
        elif any(_asks_twice(it) for it in history.turns if it.number not in came_twice):
            yield nothing(f"{turn}: the agent asks for a step twice in other turns too")
        elif twice := _done_again(turn, again):
            step = f"step {twice.arrived.step}"
            how = "came as two events" if again.other_event else "was delivered again with the same id"
            says = f"{turn} {how}, and request {twice.number} did its {step} again"
            yield fail(says, (again, *requests([_first_of(turn, twice), twice])))
        else:
            yield passed(because=f"{turn} was delivered twice, and each step was asked for once")


def _of_those_that_waited(history: History) -> Iterator[Verdict]:
    """Messages that were given while a turn ran in which nothing failed."""
    for turn in history.turns:
        beside = history.beside(turn)
        calls = [call for it in (turn, *beside) for call in main_calls_of(it)]
        began_later = any(it.number < turn.number for it in beside)
        if not began_later or not main_calls_of(turn) or not all(call.intact for call in calls):
            continue
        if any(_asks_twice(it) for it in history.turns if it is not turn):
            continue
        answer = next((it for it in main_calls_of(turn) if it.final), None)
        behind = [it for it in main_calls_of(turn) if answer and it.arrived.id > answer.arrived.id]
        again = next((it for it in behind if turn.number in it.arrived.turns_doubled), None)
        if answer is not None and again is not None:
            says = f"{turn} waited for another one, and request {again.number} carries it once more behind its answer"
            yield fail(says, requests([answer, again]))
        else:
            yield passed(because=f"{turn} waited for another one, and was handled once")


def _done_again(turn: Turn, again: DeliveredAgain) -> Call | None:
    """The first request after the second delivery whose step had been asked for before."""
    calls = main_calls_of(turn)
    return next((it for it in calls if it.arrived.id > again.id and _first_of(turn, it) is not it), None)


def _first_of(turn: Turn, call: Call) -> Call:
    """The first request of the same step."""
    return next(it for it in main_calls_of(turn) if it.arrived.step == call.arrived.step)


def _asks_twice(turn: Turn) -> bool:
    """Whether it asks for a step again whose reply has come."""
    return any((first := _first_of(turn, call)) is not call and first.ok for call in main_calls_of(turn))
