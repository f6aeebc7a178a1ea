"""The model reads that an edit's old text stands at several places."""

from dataclasses import replace

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.files import FileCall
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result

NOTES = "work at 9\nrest\nwork at 9\n"
FIRST = NOTES.replace("9", "10", 1)


def edited(old: str, new: str, now: str, *signs: str, known: bool = True, in_text: bool = False) -> Verdict:
    """An edit whose result has these signs, and what the file holds then."""
    tell = HistoryBuilder().finds(notes=NOTES)
    tell.message()
    call = FileCall("edit_file", "notes.txt", old=old, new=new)
    (token,) = tell.reply(tell.ask(1), tools=[True], name="edit", files=[call])
    told = replace(result(token, printed=False, signs=signs if known else None), in_text=in_text)
    tell.answer_step(2, [told])
    return check("edit_place_told", tell.end().finds(notes=now).seal())


def test_an_edit_of_the_first_of_two_places_is_red_if_nothing_tells_the_model():
    """It may have meant the other one."""
    verdict = edited("9", "10", FIRST)
    assert verdict.status == "fail"
    assert verdict.says == "tool call 1.1.1 (edit) fits several places of notes.txt, and its result does not say so"


def test_so_is_one_that_changes_both():
    """The model had asked for one change."""
    assert edited("9", "10", NOTES.replace("9", "10")).status == "fail"


@pytest.mark.parametrize("sign", ["several", "number", "failed", "undone", "foreign"])
def test_a_result_that_may_tell_it_passes(sign: str):
    """A number of places or of lines, or a word that there are several."""
    assert edited("9", "10", FIRST, sign).status == "pass"


def test_an_exit_code_of_0_tells_no_place():
    """Its number and its words are of the program that made the edit."""
    frame = ("failed", "number", "undone", "success", "ended_well")
    assert edited("9", "10", FIRST, *frame).status == "fail"
    assert edited("9", "10", FIRST, "several", *frame).status == "pass"


@pytest.mark.parametrize("how", [{"known": False}, {"in_text": True}])
def test_a_result_whose_words_are_not_known_may_tell_it(how: dict[str, bool]):
    """Older histories did not record them."""
    assert edited("9", "10", FIRST, **how).status == "pass"


def test_an_edit_that_is_refused_passes():
    """The file is as it was, whatever the result says; another rule reads that."""
    assert edited("9", "10", NOTES).status == "pass"


@pytest.mark.parametrize(("old", "now"), [("rest", NOTES.replace("rest", "swim")), ("violin", NOTES)])
def test_an_old_text_that_stands_once_or_nowhere_is_not_judged(old: str, now: str):
    """There is only one place that can be meant."""
    assert edited(old, "swim", now).status == "nothing"


def test_a_file_that_holds_something_else_is_judged_by_files_kept():
    """What the edit did is not known."""
    assert edited("9", "10", "Lost.\n").status == "nothing"


def test_an_edit_without_a_result_is_not_judged():
    """No model reads it."""
    tell = HistoryBuilder().finds(notes=NOTES)
    tell.message()
    tell.reply(tell.ask(1), tools=[True], name="edit", files=[FileCall("edit_file", "notes.txt", old="9", new="10")])
    assert check("edit_place_told", tell.end().finds(notes=FIRST).seal()).status == "nothing"
