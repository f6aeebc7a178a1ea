"""Tool calls in the model's text that miss the agent's form."""

import pytest

from wedgehog.fake_llm.reply import CallForm, Reply, Text, ToolCall
from wedgehog.fake_llm.script.calls_in_text import CallsInText
from wedgehog.fake_llm.script.misformed_calls import INVENTED_ANSWER, misformed
from wedgehog.fake_llm.script.results_in_text import ResultFrame

REACT = "Thought: {words}\nAction: shell\nAction Input: {command}"
TAGS = "<run>\n<command>{command}</command>\n</run>"
JSON = '{"thought": "{words}", "action": "shell", "input": "{command}"}'


def written(template: str, form: CallForm, frame: ResultFrame | None = None) -> Text:
    raw = "" if form == "no_input" else None
    call = ToolCall("shell", {"command": "ls"}, "t1x1x1a1", raw_args=raw)
    reply = CallsInText({"shell": template}).written(Reply((Text("I look."), call), call_form=form))
    (text,) = misformed(reply, form, frame or ResultFrame(), lambda words: f"Final Answer: {words}").items
    assert isinstance(text, Text)
    return text


@pytest.mark.parametrize(
    ("template", "text"),
    [
        (REACT, "Thought: I look.\nAction: shell"),
        (TAGS, "I look.\n<run>"),
        (JSON, '{"thought": "I look.", "action": "shell", "input": "'),
    ],
)
def test_a_call_without_its_input_ends_before_that_line(template: str, text: str):
    """What the model says before it stays."""
    found = written(template, "no_input")
    assert (found.text, found.words) == (text, "I look.")


def test_behind_a_call_come_a_result_and_an_answer_that_are_made_up():
    """In the agent's own words around each result; what the model makes up is none of the words that it was given."""
    found = written(REACT, "made_up_result", ResultFrame("Observation:"))
    begins = "Thought: I look.\nAction: shell\nAction Input: ls\nObservation: There is nothing.\n"
    assert found.text == f"{begins}Final Answer: {INVENTED_ANSWER}"
    assert found.words == "I look."


def test_a_reply_without_a_text_stays():
    """One that a fault has emptied."""
    assert misformed(Reply(), "made_up_result", ResultFrame(), str) == Reply()
    said = Reply((Text("Hi"),))
    assert misformed(said, "whole", ResultFrame(), str) is said
