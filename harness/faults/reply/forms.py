"""Replies that are not in the form that the agent expects: its last words, or a tool call in its text."""

from dataclasses import replace
from typing import ClassVar, Literal

from wedgehog.fake_llm.reply import Answer, Item, Reply, Text, ToolCall
from wedgehog.fake_llm.script.misformed_calls import INVENTED_ANSWER
from wedgehog.harness.faults.base import Need, fault
from wedgehog.harness.faults.reply_fault import Context, ReplyFault


@fault("plain_answer", family="reply")
class PlainAnswer(ReplyFault):
    """The model ends its turn in plain words, and not by the tool call or in the form of the spec's `finish`.

    An agent without a `finish` expects plain words, and skips the scenario.
    """

    of_form: ClassVar[bool] = True
    on_script: ClassVar[bool] = True
    searched: ClassVar[bool] = False
    needs = ("finish",)

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """The same words as they are."""
        if not isinstance(answer, Reply) or answer.stop_reason != "end":
            return answer
        return replace(answer, plain=any(isinstance(item, Text) for item in answer.items))


@fault("text_call", family="reply")
class TextCallInAnotherForm(ReplyFault):
    """A tool call that the model writes in its text has another form than the spec's `calls_in_text`.

    `no_input`: it ends before the line with its first argument. `made_up_result`: behind it the model makes up a result
    and an answer. A request with a stop sequence, such as "Observation:", gets only what comes before that.
    """

    kind: Literal["no_input", "made_up_result"] = "no_input"
    of_form: ClassVar[bool] = True
    needs_call: ClassVar[bool] = True
    searched: ClassVar[bool] = False

    @property
    def needs(self) -> tuple[Need, ...]:
        """Calls in the text; without an input, a reply may look like the end of a turn that has no form of its own."""
        return ("text_calls", "finish") if self.kind == "no_input" else ("text_calls",)

    @property
    def invents(self) -> str:
        """The answer behind the made-up result."""
        return INVENTED_ANSWER if self.kind == "made_up_result" else ""

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """The same call, in the other form."""
        if not isinstance(answer, Reply) or not any(isinstance(item, ToolCall) for item in answer.items):
            return answer
        items = tuple(map(_without_input, answer.items)) if self.kind == "no_input" else answer.items
        return replace(answer, items=items, call_form=self.kind)


def _without_input(item: Item) -> Item:
    return replace(item, raw_args="") if isinstance(item, ToolCall) else item
