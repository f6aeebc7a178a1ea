"""Harm to what the model says: pure changes of the scripted answer, counted and told."""

from collections.abc import Sequence
from dataclasses import replace

from wedgehog.fake_llm.reply import Answer, Reply
from wedgehog.harness.faults.reply_fault import Context, ReplyFault
from wedgehog.harness.inject.state import InjectorState
from wedgehog.harness.scenario.trigger import AtReply


class ReplyFaults:
    """Applies the plan's reply faults."""

    def __init__(self, board: InjectorState) -> None:
        """Nothing is said yet."""
        self._board = board

    def alter(self, call: int, answer: Answer, context: Context, *, on_script: bool) -> Answer:
        """The answer as the plan's reply faults leave it (first those on the script's words, then on the reply)."""
        for state in self._board.hit(call, ReplyFault, count=on_script):
            fault = state.planned.fault
            at = state.planned.trigger
            if isinstance(fault, ReplyFault) and fault.on_script is on_script and isinstance(at, AtReply):
                harmed = fault.on_answer(answer, replace(context, event=at.event))
                if harmed != answer and not _edits(answer, harmed):
                    self._board.fired(state, "the fake provider said it", call=call)
                answer = harmed
        return answer

    def edited(self, call: int, names: Sequence[str]) -> None:
        """These edits apply to the reply that starts now."""
        for state in self._board.hit(call, ReplyFault, count=False):
            if state.planned.fault.name in names:
                self._board.fired(state, "the fake provider changed the stream", call=call)


def _edits(answer: Answer, harmed: Answer) -> bool:
    """Whether a fault asks for an edit of the stream: if there is a stream, and if it is long enough, the fake says."""
    return isinstance(answer, Reply) and isinstance(harmed, Reply) and answer.edits != harmed.edits
