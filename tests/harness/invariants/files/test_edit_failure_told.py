"""The model reads why an edit failed, and of no failure where it worked."""

from dataclasses import replace

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.files import FileCall
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.run.recording.result_signs import signs_in
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result

NOTES = "Buy bread.\nCall Anna.\n"
DONE = NOTES.replace("bread", "cake")


def edited(old: str, now: str, text: str, *, known: bool = True, in_text: bool = False) -> Verdict:
    """An edit to "cake" whose result has this text, and what the file holds then."""
    tell = HistoryBuilder().finds(notes=NOTES)
    tell.message()
    call = FileCall("edit_file", "notes.txt", old=old, new="cake")
    (token,) = tell.reply(tell.ask(1), tools=[True], name="edit", files=[call])
    told = replace(result(token, chars=len(text), printed=False), signs=signs_in(text) if known else None)
    tell.answer_step(2, [replace(told, in_text=in_text)])
    return check("edit_failure_told", tell.end().finds(notes=now).seal())


@pytest.mark.parametrize("text", ["Error: the edit failed.", "Tool execution error", ""])
def test_an_edit_that_fits_nowhere_is_red_if_its_result_does_not_say_why(text: str):
    """The model sends the same one again."""
    verdict = edited("milk", NOTES, text)
    assert verdict.status == "fail"
    assert "has an old text that is not in notes.txt, and its result does not say so" in verdict.says


@pytest.mark.parametrize(
    "text",
    [
        "Error: oldString not found in content",
        "String to replace does not match the file.",
        "0 replacements were made",
        "Failed to find expected lines in notes.txt",
        "Il testo non è lì.",
    ],
)
def test_so_it_is_green_if_the_result_says_why(text: str):
    """In whatever words."""
    assert edited("milk", NOTES, text).status == "pass"


@pytest.mark.parametrize(
    "text",
    ["Error: the old text is not found in notes.txt", "Failed to apply the patch.", "The file was not modified."],
)
def test_a_failure_that_is_told_of_an_edit_that_worked_is_red(text: str):
    """The model makes the change a second time."""
    verdict = edited("bread", DONE, text)
    assert verdict.status == "fail"
    assert "changed notes.txt, and its result says only that it failed" in verdict.says


@pytest.mark.parametrize(
    "text",
    [
        "Edited notes.txt.",
        "The edit was applied, but the linter failed: E501",
        "Error: prettier could not run; the file has been updated.",
        "Done",
        "exit code 0",
    ],
)
def test_a_result_that_tells_of_the_change_is_green(text: str):
    """What comes after the change may fail."""
    assert edited("bread", DONE, text).status == "pass"


def test_not_judged():
    """An older history, a result in words, and a file that holds what no call leads to."""
    assert edited("milk", NOTES, "failed", known=False).status == "nothing"
    assert edited("milk", NOTES, "failed", in_text=True).status == "nothing"
    assert edited("milk", "Something else.\n", "failed").status == "nothing"
