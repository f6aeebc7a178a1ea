"""Violations by tools for files: texts that are lost, and results that are not true."""

from collections.abc import Mapping

from tests.properties.valid_runs import RunDraw, Violation
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.files import FileCall
from wedgehog.harness.testing.history_builder import result

NOTES = "Buy bread.\nCall Anna.\n"


def _file_turn(play: RunDraw, *calls: FileCall, now: str, whole: bool = True) -> None:
    """The model calls file tools, each result says that all is well, and a file holds `now`."""
    play.tell.finds(notes=NOTES)
    play.tell.message()
    tokens = play.tell.reply(play.ask(1), tools=[whole] * len(calls), name="edit", files=calls)
    play.tell.answer_step(2, [result(token, printed=False, signs=()) for token in tokens])
    play.tell.end().finds(notes=now)


def _edit(old: str, new: str) -> FileCall:
    return FileCall("edit_file", "notes.txt", old=old, new=new)


def _half_a_file(play: RunDraw) -> None:
    """A text replaces a file, and its end is missing."""
    _file_turn(play, FileCall("write_file", "notes.txt", "One.\nTwo.\nThree.\n"), now="One.\nTw")


def _emptied_file(play: RunDraw) -> None:
    """A file is empty after an edit."""
    _file_turn(play, _edit("bread", "cake"), now="")


def _lost_edit(play: RunDraw) -> None:
    """Two edits of one file run at once, and the second one writes over the first one."""
    _file_turn(play, _edit("bread", "cake"), _edit("Anna", "Ben"), now=NOTES.replace("Anna", "Ben"))


def _first_place(play: RunDraw) -> None:
    """The old text stands at two places, and the first one is changed without a word of the other."""
    _file_turn(play, _edit("\n", "!\n"), now=NOTES.replace("\n", "!\n", 1))


def _refused_edit(play: RunDraw) -> None:
    """The second of two sound edits is refused."""
    play.tell.finds(notes=NOTES)
    play.tell.message()
    calls = [_edit("bread", "cake"), _edit("Anna", "Ben")]
    first, second = play.tell.reply(play.ask(1), tools=[True, True], name="edit", files=calls)
    results = [result(first, printed=False, signs=()), result(second, printed=False, signs=("failed",))]
    play.tell.answer_step(2, results)
    play.tell.end().finds(notes=NOTES.replace("bread", "cake"))


def _full_disk(play: RunDraw) -> None:
    """The disk is full, and a file is empty after the edit that failed."""
    play.tell.finds(notes=NOTES)
    play.tell.message()
    call = play.ask(1)
    struck = {"turn": play.tell.turn, "step": 1, "attempt": 1, "call": call, "proof": "built"}
    play.tell.add(FaultFired(fault=0, name="disk_full", link="agent", of_disk=True, **struck))
    (token,) = play.tell.reply(call, tools=[True], name="edit", files=[_edit("bread", "cake")])
    play.tell.answer_step(2, [result(token, printed=False, signs=("failed",))])
    play.tell.end().finds(notes="")


def _lost_mode(play: RunDraw) -> None:
    """A script may not be executed after an edit."""
    play.tell.finds(executable=["notes.txt"], notes=NOTES)
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True], name="edit", files=[_edit("bread", "cake")])
    play.tell.answer_step(2, [result(token, printed=False, signs=())])
    play.tell.end().finds(notes=NOTES.replace("bread", "cake"))


def _edit_without_a_reason(play: RunDraw) -> None:
    """The old text of an edit is not in the file, and the model reads only that the edit failed."""
    play.tell.finds(notes=NOTES)
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True], name="edit", files=[_edit("violin", "piano")])
    play.tell.answer_step(2, [result(token, printed=False, signs=("failed",))])
    play.tell.end().finds(notes=NOTES)


def _edit_that_worked(play: RunDraw) -> None:
    """The file is changed, and the model reads that it is not."""
    play.tell.finds(notes=NOTES)
    play.tell.message()
    (token,) = play.tell.reply(play.ask(1), tools=[True], name="edit", files=[_edit("bread", "cake")])
    play.tell.answer_step(2, [result(token, printed=False, signs=("failed", "only_failed"))])
    play.tell.end().finds(notes=NOTES.replace("bread", "cake"))


FILES: Mapping[str, tuple[Violation, ...]] = {
    "files_kept": (_half_a_file, _emptied_file),
    "files_survive": (_full_disk,),
    "modes_kept": (_lost_mode,),
    "file_result_true": (_lost_edit,),
    "file_calls_work": (_refused_edit,),
    "edit_place_told": (_first_place,),
    "edit_failure_told": (_edit_without_a_reason, _edit_that_worked),
}
