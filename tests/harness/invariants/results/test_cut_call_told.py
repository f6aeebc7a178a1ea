"""A call that was cut at the token limit: its result says so."""

from dataclasses import replace

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.call import ToolResult
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.run.recording.result_signs import signs_in
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result


def judged(given: ToolResult, *, stop: str = "max_tokens", whole: bool = False, started: bool = False) -> Verdict:
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[whole], stop=stop)
    if started:
        tell.runs(token)
    tell.answer_step(2, [given])
    return check("cut_call_told", tell.end().seal())


def says(text: str) -> ToolResult:
    return replace(result("1.1.1", chars=len(text), printed=False, is_error=True), signs=signs_in(text))


MISSING = says("Error: missing required parameter `content`.")


def test_a_result_that_names_only_what_is_missing_is_red():
    """The model sends the same long call again."""
    verdict = judged(MISSING)
    assert verdict.status == "fail"
    assert verdict.says == (
        "tool call 1.1.1 (shell) was cut at the token limit, and its result does not say so (44 characters)"
    )
    assert judged(says("Error: the arguments are no valid JSON.")).status == "fail"


@pytest.mark.parametrize(
    "text",
    [
        "Your reply was truncated, so this call was not run.",
        "Output token limit reached. Write the file in smaller parts.",
        "Invalid JSON: Unterminated string starting at: line 1 column 12 (char 11)",
        "SyntaxError: Unexpected end of JSON input",
        "EOF while parsing a string at line 1 column 30",
        "Die Antwort war unvollständig.",
    ],
)
def test_a_result_that_tells_of_the_cut_is_green(text: str):
    """In words of its own or of a parser, or in another language."""
    assert judged(says(text)).status == "pass"


@pytest.mark.parametrize(
    ("given", "more"),
    [
        (replace(MISSING, signs=None), {}),
        (replace(MISSING, in_text=True), {}),
        (MISSING, {"stop": "tool"}),
        (MISSING, {"whole": True}),
        (MISSING, {"started": True}),
    ],
)
def test_not_judged(given: ToolResult, more: dict[str, bool | str]):
    """An older history, a result in words, another stop, a call before the cut, and one that ran by half."""
    assert judged(given, **more).status == "nothing"  # type: ignore[arg-type]
