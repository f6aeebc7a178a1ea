"""How a project asks its model to write tool calls in its text. Nothing is executed."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

_REACT: Final = {"shell": "Thought: {words}\nAction: shell\nAction Input: {command}"}
_WORDS: Final = "Thought: I know.\nFinal Answer: {answer}"
_TAGS: Final = {"shell": "<execute_command>\n<command>{command}</command>\n</execute_command>"}
_RESULT: Final = "<attempt_completion>\n<result>{answer}</result>\n</attempt_completion>"
_JSON_INPUT: Final = {"shell": 'Thought: Well. {words}\nAction: shell\nAction Input: {"command": "{command}"}'}
_ANSWER: Final = "Thought: I can answer without using any more tools.\nAnswer: {answer}"
_CODE: Final = {"shell": 'Thought: {words}\n<code>\nprint(shell(command="{command}"))\n</code>'}
_IN_CODE: Final = 'Thought: I know.\n<code>\nfinal_answer("{answer}")\n</code>'
_FORMS: Final[Sequence[tuple[re.Pattern[str], Mapping[str, str], Mapping[str, str]]]] = (
    (re.compile(r"^\s*[`*\"']*Action Input\b", re.MULTILINE), _REACT, {"text": _WORDS}),
    (re.compile(r"<execute_command>"), _TAGS, {"text": _RESULT}),
    (re.compile(r"\bllama_index\b(?s:.*)\bReActAgent\("), _JSON_INPUT, {"text": _ANSWER}),
    (re.compile(r"\bsmolagents\b(?s:.*)\bCodeAgent\("), _CODE, {"text": _IN_CODE}),
    (re.compile(r"\bsmolagents\b(?s:.*)\bToolCallingAgent\("), {}, {"tool": "final_answer", "arg": "answer"}),
)
"""A sign of a prompt or a library that asks for such calls, with the templates of a call and of the last words."""


def calls_in_text(texts: Iterable[str]) -> dict[str, object]:
    """The keys `calls_in_text` and `finish` of a spec, as the first prompt or library with such calls has them.

    >>> calls_in_text(["PROMPT = '''\\nAction Input: the input\\n'''"])["finish"]
    {'text': 'Thought: I know.\\nFinal Answer: {answer}'}
    """
    sources = [*texts]
    found = ((calls, finish) for mark, calls, finish in _FORMS if any(map(mark.search, sources)))
    calls, finish = next(found, ({}, {}))
    return {key: dict(given) for key, given in (("calls_in_text", calls), ("finish", finish)) if given}
