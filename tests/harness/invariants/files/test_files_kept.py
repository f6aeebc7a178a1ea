"""Files hold what they held, or what the model wrote, and results say so."""

from dataclasses import replace
from typing import Literal

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.call import ToolResult
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.files import FileCall, FileSeen, FilesSeen
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
EIGHTY_THOUSAND = "x" * 80_000
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
    "the model's line ends, though they are not the file's": (
        [edit("Buy bread.", "One.\r\nTwo.")],
        NOTES,
        NOTES.replace("Buy bread.", "One.\r\nTwo."),
    ),
    "a file that is too long to compare": ([BREAD], EIGHTY_THOUSAND, "short"),
    "more calls on one file than can be followed": ([BREAD, ANNA, *[edit("l", "m")] * 7], NOTES, "Anything."),
}


@pytest.mark.parametrize("of", SOUND)
def test_what_an_agent_may_make_of_its_calls_passes(of: str):
    """Each call may have worked or not, and agents differ in line ends and encodings of what they write."""
    calls, before, now = SOUND[of]
    assert check("files_kept", played(*calls, before=before, now=now)).status in ("pass", "nothing")


HARMED = {
    "is gone": ([BREAD], NOTES, None),
    "has grown to 80,000 bytes": ([BREAD], NOTES, EIGHTY_THOUSAND),
    "holds what no call of the model wrote: 'Two.Buy bread.', and not 'Buy bread.'": (
        [edit("", "Two.")],
        NOTES,
        f"Two.{NOTES}",
    ),
    "is empty; it had 40 bytes": ([BREAD], NOTES, ""),
    "has only the first 12 of 39 characters": ([write(NOTES.replace("B", "C"))], "Old.\n", "Cuy bread.\nCa"[:12]),
    "holds what no call of the model wrote: 'Bread', and not 'Bread is here.'": (
        [BREAD],
        NOTES,
        NOTES.replace("Buy bread.", "Bread"),
    ),
    "has more behind what belongs there: 'Anna.'": ([write("Cuy bread.\n")], NOTES, "Cuy bread.\nAnna.\nWater.\n"),
    "holds what no call of the model wrote: 'Dance.', and not 'Eat.'": (
        [write("Sing.\nEat.\nRest.\n")],
        NOTES,
        "Sing.\nDance.\nRest.\n",
    ),
    "has other blanks or line ends: '        Eat.', and not '\\tEat.'": (
        [write("Sing.\n\tEat.\nRest.\n")],
        NOTES,
        "Sing.\n        Eat.\nRest.\n",
    ),
    "has lost a line that no call changed: 'Water the plants.'": (
        [BREAD],
        NOTES,
        "Bread is here.\nCall Anna.\nWater no plants.\n",
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


def test_the_models_lines_keep_their_ends_in_a_file_that_has_the_same():
    """In a file with the line ends of Windows they may get these."""
    history = played(edit("Buy bread.", "One.\nTwo."), now=NOTES.replace("Buy bread.", "One.\r\nTwo."))
    assert check("files_kept", history).status == "fail"


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


def test_what_a_killed_agent_leaves_is_not_judged():
    """How far its write had come is not known."""
    tell = HistoryBuilder().finds(notes=NOTES)
    tell.message()
    tell.reply(tell.ask(1), tools=[True], name="edit", files=[BREAD])
    assert check("files_kept", tell.kill().finds(notes="").seal()).status == "nothing"


@pytest.mark.parametrize("kind", ["other", "missing"])
def test_a_file_that_became_a_folder_is_not_judged_and_one_that_is_gone_is(kind: Literal["other", "missing"]):
    """A link or a folder in its place may be meant."""
    tell = HistoryBuilder().finds(notes=NOTES)
    tell.message()
    tell.reply(tell.ask(1), tools=[True], name="edit", files=[BREAD])
    tell.end().add(FilesSeen(turn=1, files=(FileSeen("notes.txt", kind),)))
    assert check("files_kept", tell.seal()).status == ("nothing" if kind == "other" else "fail")


def test_an_empty_file_that_is_gone_has_changed():
    """Its digest was that of no bytes."""
    assert check("files_kept", played(BREAD, before="", now=None)).status == "fail"


def test_a_call_that_is_offered_again_is_one_call():
    """A step that is asked for again, after its reply broke off, has the same calls."""
    tell = HistoryBuilder().finds(notes="a\n")
    tell.message()
    for _ in range(2):
        tell.reply(tell.ask(1), tools=[True], name="edit", files=[edit("a", "aa")])
    assert check("files_kept", tell.end().finds(notes="aaaa\n").seal()).status == "fail"


def test_a_call_of_which_a_part_arrived_changes_nothing():
    """Also where the part that arrived fits."""
    assert check("files_kept", played(BREAD, now=NOTES.replace("Buy bread.", BREAD.new), whole=False)).status == "fail"


EGGS = FileCall("edit_file", "list.txt", old="eggs", new="ten eggs")


def two_files(
    call: FileCall, told: ToolResult | None, *, notes: str = NOTES, now: str | None = NOTES, told_in_turn: int = 1
) -> History:
    """An edit of one file works, and this call of the other is told of so, perhaps in the next turn only."""
    tell = HistoryBuilder().finds(notes=notes, list="eggs\n")
    tell.message()
    eggs, _ = tell.reply(tell.ask(1), tools=[True, True], name="edit", files=(EGGS, call))
    results = [result(eggs, printed=False, signs=()), *([told] if told is not None else [])]
    tell.answer_step(2, results[: None if told_in_turn == 1 else 1])
    tell.end().finds(notes=now, list="ten eggs\n")
    if told_in_turn == 2:
        tell.message()
        tell.answer_step(1, results)
        tell.end().finds(notes=now, list="ten eggs\n")
    return tell.seal()


HIDES = result("1.1.2", printed=False, signs=())
TELLS = result("1.1.2", printed=False, signs=("failed",))
NO_SIGNS = result("1.1.2", printed=False)
IN_TEXT = replace(HIDES, in_text=True)


@pytest.mark.parametrize(("told", "status"), [(HIDES, "fail"), (NO_SIGNS, "pass"), (IN_TEXT, "pass"), (None, "pass")])
def test_what_a_result_says_must_be_known(told: ToolResult | None, status: str):
    """One whose signs were not recorded, that is text of a user, or that never came may say that the call failed."""
    assert check("file_result_true", two_files(BREAD, told)).status == status


def test_a_result_that_comes_in_the_next_turn_is_not_held_against_the_files_of_this_one():
    """The file may have changed in between."""
    assert check("file_result_true", two_files(BREAD, HIDES, told_in_turn=2)).status == "pass"


def test_of_a_file_that_has_grown_too_long_no_result_is_false():
    """What stands in it is not known."""
    assert check("file_result_true", two_files(BREAD, HIDES, now=EIGHTY_THOUSAND)).status == "pass"


def test_a_file_that_is_gone_proves_no_edit():
    """An edit that would leave nothing is no reason for that; whether edits are kept apart is not known then."""
    everything = edit(NOTES, "")
    tell = HistoryBuilder().finds(notes=NOTES, list="eggs\n")
    tell.message()
    tokens = tell.reply(tell.ask(1), tools=[True, True], name="edit", files=(EGGS, everything))
    tell.answer_step(2, [result(token, printed=False, signs=()) for token in tokens])
    history = tell.end().finds(notes=None, list="eggs\n").seal()
    assert check("file_result_true", history).status == check("file_calls_work", history).status == "nothing"


@pytest.mark.parametrize("told", [None, TELLS])
def test_a_call_whose_result_no_model_reads_need_not_have_worked(told: ToolResult | None):
    """Its turn may have ended before it."""
    assert check("file_calls_work", two_files(BREAD, told)).status == ("pass" if told is None else "fail")


@pytest.mark.parametrize(("lists", "status"), [("eggs\n", "fail"), (None, "pass")])
def test_writing_a_file_anew_is_owed_only_where_another_file_was_replaced(lists: str | None, status: str):
    """Some agents create files by that tool, and change them by edits only."""
    tell = HistoryBuilder().finds(notes=NOTES, list=lists)
    tell.message()
    milk = FileCall("write_file", "list.txt", content="milk\n")
    tokens = tell.reply(tell.ask(1), tools=[True, True], name="write", files=(milk, write("One.\n")))
    results = [result(token, printed=False, signs=("failed",) * number) for number, token in enumerate(tokens)]
    tell.answer_step(2, results)
    history = tell.end().finds(notes=NOTES, list="milk\n").seal()
    assert check("file_calls_work", history).status in ((status,) if status == "fail" else ("pass", "nothing"))


def test_a_full_disk_in_a_turn_without_a_call_on_the_file_proves_nothing():
    """It is not a file that survived."""
    tell = HistoryBuilder().finds(notes=NOTES)
    tell.message()
    call = tell.ask(1)
    struck = {"turn": tell.turn, "step": 1, "attempt": 1, "call": call, "proof": "built"}
    tell.add(FaultFired(fault=0, name="disk_full", link="agent", of_disk=True, **struck))
    tell.reply(call)
    assert check("files_survive", tell.end().finds(notes=NOTES).seal()).status == "nothing"


def late(*, by_user: str = "") -> History:
    """The first turn ends before its edit is in the file; then its user may write, and the edit comes in a turn
    without a call."""
    tell = HistoryBuilder()
    tell.finds(notes=NOTES)
    tell.message()
    call = tell.ask(1)
    (token,) = tell.reply(call, tools=[True], name="edit", files=[BREAD])
    tell.answer_step(2, [result(token, printed=False)])
    tell.end().finds(notes=NOTES)
    if by_user:
        tell.finds(notes=by_user, by_user=["notes.txt"])
    tell.message()
    tell.answer_step(1)
    return tell.end().finds(notes=NOTES.replace("Buy bread.", "Bread is here.")).seal()


def test_an_edit_may_come_after_the_answer_of_its_turn():
    """An agent that works on a copy brings its changes when the turn is over, or with the next message."""
    assert check("files_kept", late()).status == "pass"
    assert check("file_result_true", late()).status == "nothing"


def test_an_edit_that_comes_late_must_not_remove_what_the_user_wrote_meanwhile():
    """A copy that is brought over it is one of another file."""
    verdict = check("files_kept", late(by_user=f"{NOTES}Pay the rent.\n"))
    assert verdict.status == "fail"
    assert verdict.says == "turn 2: notes.txt has lost what its user wrote: 'Pay the rent.'"


def test_an_edit_that_worked_is_no_late_one():
    """Made again in the next turn, it is harm."""
    tell = HistoryBuilder()
    tell.finds(notes="Anna\n")
    tell.message()
    call = tell.ask(1)
    (token,) = tell.reply(call, tools=[True], name="edit", files=[edit("Anna", "Anna and Ben")])
    tell.answer_step(2, [result(token, printed=False)])
    tell.end().finds(notes="Anna and Ben\n")
    tell.message()
    tell.answer_step(1)
    assert check("files_kept", tell.end().finds(notes="Anna and Ben and Ben\n").seal()).status == "fail"


def test_a_deleted_line_may_leave_an_empty_one():
    """In blocks of lines that are searched and replaced, no line and an empty line look the same."""
    calls = [edit("Call Anna.\n", "")]
    empty = played(*calls, now="Buy bread.\n\nWater the plants.\n")
    assert check("files_kept", empty).status == "pass"
    assert check("files_kept", played(*calls, now="Buy bread.\nWater the plants.\n")).status == "pass"
    assert check("files_kept", played(*calls, now="Buy bread.\n\n\nWater the plants.\n")).status == "fail"
