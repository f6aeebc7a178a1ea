"""The files of a project, as a scenario describes them."""

from typing import Any

import pytest
from pydantic import ValidationError

from wedgehog.harness.scenario.model import Scenario

TURN = {"user": "Hi.", "model": [{"text": "Yes. {nonce}"}]}


def told(files: Any, turn: Any = TURN) -> Scenario:
    return Scenario.model_validate({"name": "files", "why": "It is a test.", "files": files, "turns": [turn]})


@pytest.mark.parametrize(
    ("written", "content"),
    [
        ("one\r\ntwo", b"one\r\ntwo"),
        ({"text": "Café", "encoding": "latin-1"}, b"Caf\xe9"),
        ({"hex": "89 50 ff"}, b"\x89P\xff"),
        ({"text": "ab", "hex": "00", "times": 2}, b"ab\0ab\0"),
        ({"text": "ab\n", "bytes": 85}, b"ab\n" + b"." * 79 + b"\n.."),
        ({"text": "longer", "bytes": 3}, b"longer"),
        ({"kind": "folder"}, b""),
    ],
)
def test_what_stands_in_a_file(written: Any, content: bytes):
    """A text in an encoding, bytes behind it, all of it several times, and dots up to a size."""
    assert told({"a.txt": written}).files["a.txt"].content == content


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"../x.txt": "a"}, "expected a path from the working folder"),
        ({"/x.txt": "a"}, "expected a path from the working folder"),
        ({"x": {"kind": "pipe", "text": "a"}}, "a pipe has no text, and is not executable"),
        ({"x": {"link_to": "a.txt", "text": "a"}}, "a link has no text, and is not executable"),
        ({"x": {"link_to": "/a.txt"}}, "expected a path from the working folder"),
        ({"x": {"text": "a", "encoding": "nope"}}, "expected an encoding, such as utf-8 or latin-1, found 'nope'"),
        ({"x": {"hex": "zz"}}, "expected pairs of hexadecimal digits, found 'zz'"),
        ({"x": {"text": "漢", "encoding": "latin-1"}}, "latin-1 has no '漢'"),
    ],
)
def test_a_mistake_is_named(files: Any, says: str):
    """With what was expected."""
    with pytest.raises(ValidationError, match=says):
        told(files)


def test_the_files_of_a_run_are_those_that_it_writes_and_those_that_calls_name():
    """Each once; a search names a folder, and another tool's path is its own affair."""
    calls = [
        {"tool": "read_file", "args": {"path": "b.txt"}},
        {"tool": "write_file", "args": {"path": "a.txt", "content": ""}},
        {"tool": "search_files", "args": {"path": ".", "pattern": "one"}},
        {"tool": "read_file", "args": {"path": "c.txt", "limit": 3}},
    ]
    turn = {"user": "Hi.", "files": {"d.txt": "two"}, "model": [calls, {"text": "Yes. {nonce}"}]}
    story = told({"a.txt": "one"}, turn)
    assert set(story.files_named) == {"a.txt", "b.txt", "d.txt"} and len(story.files_named) == 3


def test_a_user_writes_no_file_in_the_middle_of_a_turn():
    """Only before a message."""
    turns = [TURN, TURN | {"during": {"turn": 1, "step": 1}, "files": {"a.txt": "one"}}]
    with pytest.raises(ValidationError, match="the user writes no file in the middle of a turn"):
        Scenario.model_validate({"name": "files", "why": "It is a test.", "turns": turns})
