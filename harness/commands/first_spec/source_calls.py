"""How a project asks its model to write tool calls in its text. Nothing is executed."""

import re
from collections.abc import Iterable
from typing import Final

_REACT: Final = {"shell": "Thought: {words}\nAction: shell\nAction Input: {command}"}
_WORDS: Final = "Thought: I know.\nFinal Answer: {answer}"
_TAGS: Final = {"shell": "<execute_command>\n<command>{command}</command>\n</execute_command>"}
_RESULT: Final = "<attempt_completion>\n<result>{answer}</result>\n</attempt_completion>"
_FORMS: Final = (
    (re.compile(r"^\s*[`*\"']*Action Input\b", re.MULTILINE), _REACT, _WORDS),
    (re.compile(r"<execute_command>"), _TAGS, _RESULT),
)
"""A sign of a prompt that asks for such calls, with the templates of a call and of the last words."""


def calls_in_text(texts: Iterable[str]) -> dict[str, object]:
    """The keys `calls_in_text` and `finish` of a spec, as the first prompt with such calls has them; else empty.

    >>> calls_in_text(["PROMPT = '''\\nAction Input: the input\\n'''"])["finish"]
    {'text': 'Thought: I know.\\nFinal Answer: {answer}'}
    """
    sources = [*texts]
    found = ((calls, words) for mark, calls, words in _FORMS if any(map(mark.search, sources)))
    return next(({"calls_in_text": calls, "finish": {"text": words}} for calls, words in found), {})
