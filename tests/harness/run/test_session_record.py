"""What a session file holds: results that can be read again, in whatever form they are kept."""

import json
from pathlib import Path

import pytest

from wedgehog.harness.run.session_files import results_in
from wedgehog.harness.services.beacon import wrapped

TOKEN = "wbcdf1x2x1"
CALL = {"id": f"{TOKEN}a1", "name": "shell", "args": {"command": wrapped("ls", TOKEN, Path("t"))}}
RESULT = {"call_id": f"{TOKEN}a1", "text": f"a.txt\n{TOKEN}\n", "at": "12:00"}


def lines(*records: object) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


@pytest.mark.parametrize(
    "data",
    [
        lines(CALL, RESULT),
        json.dumps([CALL, RESULT]).encode(),
        json.dumps([CALL, RESULT], indent=2).encode(),
        lines(CALL, {"arguments": json.dumps(CALL), "output": json.dumps(RESULT)}),
        lines(CALL, RESULT).rstrip(),
        b"SQLite format 3\0 ... \0" + json.dumps(RESULT).encode() + b"\0",
        f"- shell: |\n    a.txt\n    {TOKEN}\n".encode(),
    ],
)
def test_a_result_is_found_in_whatever_form(data: bytes):
    """Lines, one text, JSON within JSON, a database, plain words."""
    assert results_in(data, "wbcdf") == ("1.2.1",)


@pytest.mark.parametrize(
    "data", [lines(CALL), json.dumps([CALL], indent=2).encode(), lines({"in": json.dumps(CALL)}), b""]
)
def test_a_call_alone_is_no_result(data: bytes):
    """Its id and its command hold the token too."""
    assert results_in(data, "wbcdf") == ()


def test_a_background_commands_call_is_no_result_either():
    """It is wrapped in another way."""
    call = {"command": wrapped("sleep 5 &", TOKEN, Path("t"))}
    assert results_in(lines(call), "wbcdf") == ()


def test_another_runs_tokens_are_nobodys():
    """A planted session may hold some."""
    assert results_in(lines(RESULT), "wxyzk") == ()


def test_a_last_line_that_was_cut_holds_nothing():
    """Nobody can read it again; the lines before it can be."""
    other = {**RESULT, "text": f"b\n{TOKEN[:-3]}3x1\n"}
    cut = lines(RESULT, other)[:-12]
    assert f"{TOKEN[:-3]}3x1".encode() in cut
    assert results_in(cut, "wbcdf") == ("1.2.1",)
    assert results_in(cut, "wbcdf", torn=True) == ("1.2.1",)


def test_one_text_that_we_tore_holds_nothing_and_one_that_its_agent_cut_itself_does():
    """The harm is ours in the first case only: who writes over its only copy has lost what it had written."""
    cut = json.dumps([CALL, RESULT], indent=2).encode()[:-1]
    assert results_in(cut, "wbcdf", torn=True) == ()
    assert results_in(cut, "wbcdf") == ("1.2.1",)
