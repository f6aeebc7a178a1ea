"""What a request carries of tools: results of calls, outputs in words, and calls that have none."""

from collections.abc import Sequence
from dataclasses import replace

from wedgehog.fake_llm.conversation import Conversation, Message, ToolResultSeen
from wedgehog.harness.record.events.call import OpenToolCall, ToolResult
from wedgehog.harness.run.recording.placing import Placing
from wedgehog.harness.run.recording.result_signs import (
    has_first,
    is_silent,
    names_arguments,
    prints_first,
    shells_words,
    signs_in,
)

NOTHING = Conversation("", "", False, ())


class CarriedResults:
    """Reads the results in requests."""

    def __init__(self, placing: Placing) -> None:
        """`placing` knows the calls of the script."""
        self._placing = placing

    def results(self, talk: Conversation) -> tuple[ToolResult, ...]:
        """The results that name their call."""
        token_of = self._placing.token_of_result
        calls = [it for said in talk.messages for it in said.tool_calls]
        first = {it.id: prints_first(it.arguments) for it in calls}
        silent = {it.id for it in calls if is_silent(it.arguments)}

        def carried(it: ToolResultSeen) -> ToolResult:
            token, outputs = token_of(it.call_id, it.traces), self._outputs(it.text)
            printed = bool(outputs) or (it.call_id in silent and not it.is_error)
            broken_off = "" if printed else shells_words(it.text)
            prints = outputs[0] if token and outputs and token not in outputs else ""
            size = len(it.text)
            signs, begins = signs_in(it.text), has_first(it.text, first.get(it.call_id, ""))
            return ToolResult(
                it.call_id, size, it.is_error, token, printed, False, broken_off, prints, signs, begins,
                names_arguments(it.text),
            )  # fmt: skip

        return tuple(carried(it) for said in talk.messages for it in said.tool_results)

    def open_calls(self, talk: Conversation) -> tuple[OpenToolCall, ...]:
        """The calls without a result."""
        answered = {it.call_id for said in talk.messages for it in said.tool_results}
        calls = dict.fromkeys(it.id for said in talk.messages for it in said.tool_calls)
        return tuple(OpenToolCall(id_, self._placing.token_of_result(id_, "")) for id_ in calls if id_ not in answered)

    def _outputs(self, text: str) -> Sequence[str]:
        """The tool calls whose output a result has; the id of a call in an error is none."""
        return self._placing.tokens_in_text(replace(NOTHING, messages=(Message("tool", text),)))

    def in_text(self, talk: Conversation) -> tuple[ToolResult, ...]:
        """The outputs, and the answers to silent calls, that stand in the words of messages."""
        sent = {
            self._placing.token_of_result(it.call_id, it.traces) for said in talk.messages for it in said.tool_results
        }
        printed = [token for token in self._placing.tokens_in_text(talk) if token not in sent]
        silent = {*self._placing.answered_in_text(talk)} - {*sent, *printed}
        told = ((token, token in printed) for token in (*printed, *sorted(silent)))
        return tuple(ToolResult("", 0, token=token, printed=has, in_text=True) for token, has in told)
