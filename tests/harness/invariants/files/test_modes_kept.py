"""A script stays a script, and a link a link."""

from collections.abc import Mapping
from typing import Any

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.files import FileCall
from wedgehog.harness.record.history import History
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result

LINK = {"list.txt": "notes.txt"}
EDIT = FileCall("edit_file", "list.txt", old="bread", new="cake")
SCRIPT: Mapping[str, Any] = {"executable": ["list.txt"], "notes": "other", "list": "bread"}
LINKED: Mapping[str, Any] = {"links": LINK, "notes": "bread", "list": "bread"}


def played(before: Mapping[str, Any], now: Mapping[str, Any], signs: tuple[str, ...] = ()) -> History:
    tell = HistoryBuilder()
    tell.finds(**before)
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True], name="edit", files=[EDIT])
    tell.answer_step(2, [result(token, printed=False, signs=signs)])
    return tell.end().finds(**now).seal()


@pytest.mark.parametrize(
    ("before", "now", "says"),
    [
        (SCRIPT, {"notes": "other", "list": "cake"}, "list.txt can no longer be executed"),
        (SCRIPT, {**SCRIPT, "list": "cake"}, ""),
        (LINKED, {"notes": "bread", "list": "cake"}, "list.txt was a link to notes.txt, and is a file of its own now"),
        (LINKED, {"links": LINK, "notes": "cake", "list": "cake"}, ""),
        (LINKED, LINKED, ""),
    ],
)
def test_an_edit_changes_the_text_only(before: Mapping[str, Any], now: Mapping[str, Any], says: str):
    """A script that lost its mode runs no more, and a link that became a file follows no other one."""
    verdict = check("modes_kept", played(before, now, signs=("failed",)))
    assert (verdict.status, verdict.says) == (("fail", f"turn 1: {says}") if says else ("pass", verdict.says))


@pytest.mark.parametrize("now", [{"notes": "bread", "list": "cake"}, {"links": LINK, "notes": "cake", "list": "cake"}])
def test_an_edit_through_a_link_is_no_harm_of_the_file_behind_it(now: Mapping[str, Any]):
    """Whether it was made there, or in the place of the link."""
    assert check("files_kept", played(LINKED, now)).status == "pass"
    assert check("file_result_true", played(LINKED, now)).status == "pass"


def test_another_text_behind_a_link_is_harm():
    """It is compared as each file is."""
    now = {"links": LINK, "notes": "pie", "list": "pie"}
    assert check("files_kept", played(LINKED, now)).status == "fail"
