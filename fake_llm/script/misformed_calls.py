"""Tool calls that a model writes in its text, and not as the agent expects them there."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from wedgehog.fake_llm.reply import CallForm, Reply, Text
from wedgehog.fake_llm.script.results_in_text import ResultFrame

INVENTED_RESULT: Final = "There is nothing."
INVENTED_ANSWER: Final = "I have looked, and there is nothing to be seen."


def misformed(written: Reply, form: CallForm, frame: ResultFrame, in_form: Callable[[str], str]) -> Reply:
    """The reply whose text holds a call, in another form. `frame` is what the agent writes around each result.

    `in_form` gives last words as the agent's model writes them.
    """
    *others, text = written.items or (None,)
    if form == "whole" or not isinstance(text, Text):
        return written
    if form == "no_input":
        lines, _, line = text.text.rstrip().rpartition("\n")
        return replace(written, items=(*others, replace(text, text=lines or line)))
    result = f"{frame.before} {INVENTED_RESULT}{frame.behind}".strip()
    invented = f"{text.text}\n{result}\n{in_form(INVENTED_ANSWER)}"
    return replace(written, items=(*others, replace(text, text=invented)))
