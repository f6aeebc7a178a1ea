"""Files hold what they held, or what the model wrote, and results say so."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.files import FileCall
from wedgehog.harness.record.history import History
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result

NOTES = "Buy bread.\nCall Anna.\nWater the plants.\n"
DOS = NOTES.replace("\n", "\r\n")

MIXED = "Buy bread.\r\nCall Anna.\nWater the plants.\r\n"
BOTH_KINDS_AS_ONE = "Bread is here.\r\nCall Anna.\r\nWater the plants.\r\n"


def write(text: str) -> FileCall:
    return FileCall("write_file", "notes.txt", content=text)


def edit(old: str, new: str) -> FileCall:
    return FileCall("edit_file", "notes.txt", old=old, new=new)


BREAD, ANNA = edit("Buy bread.", "Bread is here."), edit("Call Anna.", "Call Anna at noon.")


def played(
    *calls: FileCall,
    before: str | bytes | None = NOTES,
    now: str | bytes | None,
    whole: bool = True,
    signs: tuple[str, ...] = (),
    also: int = 0,
) -> History:
    """A turn in which the model makes these calls, and each result has these signs."""
    tell = HistoryBuilder()
    tell.finds(notes=before)
    tell.message()
    call = tell.ask(1)
    tokens = tell.reply(call, tools=[whole] * (len(calls) + also), name="edit", files=calls)
    tell.answer_step(2, [result(token, printed=False, signs=signs) for token in tokens])
    return tell.end().finds(notes=now).seal()


BOTH = NOTES.replace("Buy bread.", "Bread is here.").replace("Call Anna.", "Call Anna at noon.")
SOUND = {
    "an edit": ([BREAD], NOTES, NOTES.replace("Buy bread.", "Bread is here.")),
    "one of two edits": ([BREAD, ANNA], NOTES, NOTES.replace("Call Anna.", "Call Anna at noon.")),
    "both edits": ([BREAD, ANNA], NOTES, BOTH),
    "an edit that did not work": ([edit("cheese", "milk")], NOTES, NOTES),
    "a text without its last line end": ([write("One.\n")], NOTES, "One."),
    "a text in the file's kind of line ends": ([write("One.\nTwo.\n")], DOS, "One.\r\nTwo.\r\n"),
    "a text behind the file's mark": ([write("One.\n")], f"\ufeff{NOTES}", "\ufeffOne.\n"),
    "an edit over two lines": ([edit("Buy bread.\nCall", "Eat.\nCall")], DOS, DOS.replace("Buy bread.", "Eat.")),
    "lines of another kind in an edit": (
        [edit("Buy bread.", "One.\nTwo.")],
        DOS,
        DOS.replace("Buy bread.", "One.\nTwo."),
    ),
    "all places": ([edit("n", "m")], NOTES, NOTES.replace("n", "m")),
    "the first place": ([edit("n", "m")], NOTES, NOTES.replace("n", "m", 1)),
    "another encoding": ([ANNA], b"Caf\xe9\nCall Anna.\n", "Café\nCall Anna at noon.\n"),
    "one kind of line ends for two": ([BREAD], MIXED, BOTH_KINDS_AS_ONE),
    "an edit that drops the file's mark": ([ANNA], f"\ufeff{NOTES}", NOTES.replace("Call Anna.", "Call Anna at noon.")),
    "a new file": ([write("One.\n")], None, "One.\n"),
}


@pytest.mark.parametrize("of", SOUND)
def test_what_an_agent_may_make_of_its_calls_passes(of: str):
    """Each call may have worked or not, and agents differ in line ends and encodings of what they write."""
    calls, before, now = SOUND[of]
    assert check("files_kept", played(*calls, before=before, now=now)).status in ("pass", "nothing")


HARMED = {
    "is gone": ([BREAD], NOTES, None),
    "is empty; it had 40 bytes": ([BREAD], NOTES, ""),
    "has only the first 12 of 39 characters": ([write(NOTES.replace("B", "C"))], "Old.\n", "Cuy bread.\nCa"[:12]),
    "holds what no call of the model wrote: 'Bread', and not 'Bread is here.'": (
        [BREAD],
        NOTES,
        NOTES.replace("Buy bread.", "Bread"),
    ),
    "has other line ends in lines that no call changed": ([BREAD], DOS, NOTES.replace("Buy bread.", "Bread is here.")),
    "has lost characters: 'Caf\ufffd'": ([ANNA], b"Caf\xe9\nCall Anna.\n", "Caf\ufffd\nCall Anna at noon.\n"),
}


@pytest.mark.parametrize("says", HARMED)
def test_a_file_that_is_harmed_fails_and_the_harm_is_named(says: str):
    """Whatever the results say."""
    calls, before, now = HARMED[says]
    verdict = check("files_kept", played(*calls, before=before, now=now, signs=("failed",)))
    assert (verdict.status, verdict.says) == ("fail", f"turn 1: notes.txt {says}")


def test_half_a_text_is_named_as_such():
    """Only a part of the call had arrived."""
    verdict = check("files_kept", played(write("One.\nTwo.\n"), now="One.", whole=False))
    assert (
        verdict.says == "turn 1: notes.txt has a part of what tool call 1.1.1 writes, of which only a part had arrived"
    )


def test_another_tool_may_have_changed_the_file():
    """What a command or a tool of another kind did is not known."""
    assert check("files_kept", played(BREAD, now="", also=1)).status == "nothing"


def test_what_the_user_wrote_between_two_turns_is_no_harm():
    """The file is looked at again before the next message."""
    tell = HistoryBuilder()
    tell.finds(notes=NOTES)
    tell.message()
    tell.answer_step(1)
    tell.end().finds(notes=NOTES).finds(notes="Mine.\n", by_user=["notes.txt"])
    tell.message()
    tell.answer_step(1)
    assert check("files_kept", tell.end().finds(notes="Mine.\n").seal()).status == "nothing"


@pytest.mark.parametrize(
    ("signs", "status"), [((), "fail"), (("elsewhere",), "fail"), (("failed",), "pass"), (("undone",), "pass")]
)
def test_a_result_says_that_its_call_did_not_work(signs: tuple[str, ...], status: str):
    """A path or a number in it is no word of that."""
    history = played(BREAD, ANNA, now=NOTES.replace("Call Anna.", "Call Anna at noon."), signs=signs)
    verdict = check("file_result_true", history)
    assert verdict.status == ("nothing" if status == "pass" else status)
    if status == "fail":
        assert "tool call 1.1.1 (edit) did not change notes.txt, and nothing in its result says so" in verdict.says


def test_changes_that_are_kept_apart_are_not_judged():
    """Where no call of the run changed its file, the agent may work on a copy."""
    assert check("file_result_true", played(BREAD, now=NOTES)).status == "nothing"


@pytest.mark.parametrize(
    ("second", "status"), [(ANNA, "fail"), (edit("cheese", "milk"), "pass"), (edit("l", "m"), "pass")]
)
def test_a_sound_edit_works_where_another_one_does(second: FileCall, status: str):
    """An old text that is not there, or stands there more than once, may be refused."""
    history = played(BREAD, second, now=NOTES.replace("Buy bread.", "Bread is here."), signs=("failed",))
    assert check("file_calls_work", history).status == status


@pytest.mark.parametrize(("now", "status"), [(NOTES, "pass"), ("", "fail"), (BOTH[:5], "fail")])
def test_a_file_survives_a_full_disk(now: str, status: str):
    """At level strict: most programs empty a file before they write it."""
    tell = HistoryBuilder()
    tell.finds(notes=NOTES)
    tell.message()
    call = tell.ask(1)
    struck = {"turn": tell.turn, "step": 1, "attempt": 1, "call": call, "proof": "built"}
    tell.add(FaultFired(fault=0, name="disk_full", link="agent", of_disk=True, **struck))
    (token,) = tell.reply(call, tools=[True], name="edit", files=[BREAD])
    tell.answer_step(2, [result(token, printed=False, signs=("failed",))])
    history = tell.end().finds(notes=now).seal()
    assert (check("files_survive", history).status, check("files_kept", history).status) == (status, "nothing")


def test_an_edit_need_not_work_when_the_disk_is_full():
    """Another one, before it, has worked; a result that hides the failure is a lie all the same."""
    tell = HistoryBuilder()
    tell.finds(notes=NOTES, list="eggs\n")
    tell.message()
    eggs = FileCall("edit_file", "list.txt", old="eggs", new="ten eggs")
    (first,) = tell.reply(tell.ask(1), tools=[True], name="edit", files=[eggs])
    call = tell.ask(2, results=[result(first, printed=False, signs=())])
    struck = {"turn": tell.turn, "step": 2, "attempt": 1, "call": call, "proof": "built"}
    tell.add(FaultFired(fault=0, name="disk_full", link="agent", of_disk=True, **struck))
    (token,) = tell.reply(call, tools=[True], name="edit", files=[BREAD])
    tell.answer_step(3, [result(token, printed=False, signs=())])
    history = tell.end().finds(notes=NOTES, list="ten eggs\n").seal()
    assert check("file_calls_work", history).status != "fail"
    assert check("file_result_true", history).status == "fail"


@pytest.mark.parametrize(("text", "status"), [(NOTES, "fail"), (f"{NOTES}Mine.\n", "nothing")])
def test_a_file_that_its_user_changed_may_be_protected_and_one_saved_again_may_not(text: str, status: str):
    """Until the model has read it again."""
    tell = HistoryBuilder()
    tell.finds(notes=NOTES)
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True], name="edit", files=[edit("Water", "Do not water")])
    tell.answer_step(2, [result(token, printed=False, signs=())])
    first = NOTES.replace("Water", "Do not water")
    tell.end().finds(notes=first)
    later = text.replace("Water", "Do not water")
    tell.finds(notes=later, by_user=["notes.txt"])
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True], name="edit", files=[BREAD])
    tell.answer_step(2, [result(token, printed=False, signs=("failed",))])
    assert check("file_calls_work", tell.end().finds(notes=later).seal()).status == (
        "pass" if status == "nothing" else status
    )


def test_an_edit_of_a_file_in_another_encoding_may_be_refused():
    """What cannot be decoded would be lost."""
    tell = HistoryBuilder()
    tell.finds(notes=b"Caf\xe9\nCall Anna.\n", list="eggs\n")
    tell.message()
    call = tell.ask(1)
    eggs = FileCall("edit_file", "list.txt", old="eggs", new="ten eggs")
    anna = FileCall("edit_file", "notes.txt", old="Call Anna.", new="Call Anna at noon.")
    tokens = tell.reply(call, tools=[True, True], name="edit", files=(eggs, anna))
    tell.answer_step(2, [result(token, printed=False, signs=("failed",)) for token in tokens])
    history = tell.end().finds(notes=b"Caf\xe9\nCall Anna.\n", list="ten eggs\n").seal()
    assert check("file_calls_work", history).status == "pass"


@pytest.mark.parametrize("name", ["file_result_true", "file_calls_work"])
def test_a_file_that_holds_something_else_is_judged_once(name: str):
    """The edit had an effect, only not the right one, and `files_kept` says that."""
    tell = HistoryBuilder()
    tell.finds(notes=NOTES, list="eggs\n")
    tell.message()
    call = tell.ask(1)
    eggs = FileCall("edit_file", "list.txt", old="eggs", new="ten eggs")
    anna = FileCall("edit_file", "notes.txt", old="Call Anna.", new=r"Call \u0041nna.")
    tokens = tell.reply(call, tools=[True, True], name="edit", files=(eggs, anna))
    tell.answer_step(2, [result(token, printed=False, signs=()) for token in tokens])
    history = tell.end().finds(notes=NOTES.replace("Call", "Ring"), list="ten eggs\n").seal()
    assert check("files_kept", history).status == "fail"
    assert check(name, history).status == "pass"
