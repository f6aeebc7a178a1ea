"""What a result's text says of itself."""

import json
from pathlib import Path

import pytest

from wedgehog.harness.run.recording.result_signs import has_first, is_silent, names_arguments, prints_first, signs_in
from wedgehog.harness.services.beacon import wrapped


@pytest.mark.parametrize(
    ("text", "signs"),
    [
        ("half done\nwqbcd1x1x1\n", set()),
        ("half done\n[exit code 7]", {"failed", "number", "part"}),
        ("<returncode>7</returncode>\n<output>half done</output>", {"failed", "number", "part", "elsewhere"}),
        ('{"stdout": "half done", "rc": 7}', {"failed", "number", "part"}),
        ("half done (7)", {"number", "part"}),
        ("half done ✗", {"foreign"}),
        ("[stopped]", {"failed", "stopped", "part"}),
        ("error: timed out", {"failed", "stopped", "only_failed"}),
        ("It still runs in the background as job 3", {"elsewhere", "number"}),
        ("An error occurred while running the tool. Please try again.", {"failed", "undone", "mismatch"}),
        ("You must use the Read tool to read notes.txt before editing it.", {"undone", "mismatch"}),
        ("0 replacements", {"number", "undone", "mismatch"}),
        ("Replaced both.", {"several", "mismatch"}),
        ("Edited /tmp/run-12/cwd/notes.txt.", {"elsewhere"}),
        ("Edited /tmp/run-12/cwd/notes.txt:3", {"elsewhere", "number"}),
        ("Edited notes.txt (\u201cCall Anna.\u201d) \u2014 done.", {"part"}),
        ("Error running the command: exception", {"failed", "only_failed"}),
        ("The command is running", {"elsewhere"}),
        ("(binary data)", {"elsewhere", "part"}),
        ("1\n2\n3\n", {"number"}),
        ("1\n2\n[9 characters left out]\n8", {"number", "part"}),
        ("1\n2\n…", {"number", "foreign"}),
        ("1 " * 3000 + "9 characters left out" + " 1" * 3000, {"number", "part"}),
        ("(nothing)", {"part", "undone", "bare", "mismatch"}),
        ("task: 3\n<task_result>\n\n</task_result>", {"number", "part", "elsewhere", "hollow"}),
        ("The task is done. wqbcdn7e", set()),
        ("Task completed successfully.", {"part", "success"}),
        ('{"status": "completed"}', {"failed", "part", "bare", "success"}),
        ("Task completed (no output)", {"part", "success"}),
        ("Task completed with errors", {"failed"}),
        ('{"success": false}', {"part"}),
        ("the subagent gave no answer", {"failed"}),
    ],
)
def test_the_words_of_a_result_are_told_apart(text: str, signs: set[str]):
    """In families that are wide: the token of a tool call is not one of its words."""
    assert set(signs_in(text)) == signs


@pytest.mark.parametrize(
    ("text", "ended"),
    [
        ("alive\nwqbcd1x1x1\n\n[the command was stopped after 15 s, its time limit]", True),
        ("alive\nwqbcd1x1x1\nCommand timed out after 120 seconds.", True),
        ("alive\nwqbcd1x1x1\n[killed: its time limit]", False),
        ("alive\nwqbcd1x1x1\n", False),
        ("the build was stopped\nwqbcd1x1x1\n", False),  # the output itself says so
        ('{"stdout": "alive\\nwqbcd1x1x1", "timed out": false}', False),
        ("alive\nwqbcd1x1x1\n<was interrupted>no</was interrupted>", False),
        ("alive\nwqbcd1x1x1\nThe command has not timed out.", False),
        ("alive\nwqbcd1x1x1\nWould have timed out after 120 s.", False),
        ("the command was stopped", False),  # without its output: other checks judge it
    ],
)
def test_a_text_may_say_behind_the_output_that_its_command_was_stopped(text: str, ended: bool):
    """In words that claim it: a field of a frame and a denial do not."""
    assert ("was_stopped" in signs_in(text)) is ended


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("Command executed successfully.", True),
        ("(Command completed with no output)", True),
        ('{"stdout": "", "stderr": "", "exit_code": 0, "error": null}', True),
        ("<output></output>\n<exit_code>0</exit_code>", True),
        ("Process exited with code 0 after 0.3 s", False),
        ("The command ran without any output (took 0.31 seconds)", True),
        ("Command executed in terminal within working directory '/a/b'. Exit code: 0\nOutput:\n", True),
        ("cwd: /a\n<stdout>\n</stdout>", True),
        ("Saved in the file /a/b.\nOutput:\n", False),
        ("Output:\nalive", False),
        ("Process exited with code 1", False),
        ("Command executed successfully: alive", False),
        ("Output saved to /tmp/out.txt", False),
        ("The command is running", False),
        ("Error executing the command", False),
        ("Befehl ausgeführt", False),
        ("", False),
    ],
)
def test_a_text_that_says_only_that_a_command_worked_is_known(text: str, bare: bool):
    """Any other word may be the output, or say where it is."""
    assert ("bare" in signs_in(text)) == bare


@pytest.mark.parametrize(
    ("text", "well"),
    [
        ("Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess. Updated the following files:\nM notes.txt\n", True),
        ('{"output": "Success. Updated notes.txt", "metadata": {"exit_code": 0, "duration_seconds": 0.1}}', True),
        ("<exit_code>0</exit_code>\n<output>Done: notes.txt</output>", True),
        ("Process exited with code 0\nOutput:\nDone", True),
        ("Exit code: 0\nOutput:\nSuccess. Updated line 2 of notes.txt", False),
        ("Exit code: 0\nOutput:\nMonday\nwork at 10\n", False),
        ("Exit code: 0\nOutput:\nThe file is unchanged", False),
        ("Exit code: 1\nWall time: 0 seconds\nOutput:\nDone", False),
        ("Exit code: 0\nOutput:\nInvalid patch", False),
        ("Success. Updated notes.txt", False),
    ],
)
def test_a_number_and_a_word_of_a_failure_may_be_only_those_of_an_exit_code_0(text: str, well: bool):
    """They say nothing of what a tool has done."""
    assert ("ended_well" in signs_in(text)) == well


def test_a_long_text_is_read_at_its_ends():
    """A mark at its end is found, and half a megabyte takes no time."""
    assert "part" not in signs_in("1\n" * 200_000)
    assert "part" in signs_in("1\n" * 200_000 + "[cut]")


@pytest.mark.parametrize(
    ("command", "first"),
    [
        ("echo started; sleep 600", "started"),
        ("echo half done; exit 7", "half done"),
        ("seq 1 80000", "1\n2\n3"),
        ("seq 2", "1\n2"),
        ("sleep 1; echo late", ""),
        ("echo $HOME", ""),
        ("echo started; sleep 25 &", ""),
    ],
)
def test_what_a_scripted_command_prints_first_is_known_by_its_beginning(command: str, first: str):
    """As it stands in the arguments that the agent sends back; anything that the shell could change is not known."""
    arguments = json.dumps({"command": wrapped(command, "wqbcd1x1x1", Path("x/trace"))})
    assert prints_first(arguments) == first


@pytest.mark.parametrize(("command", "silent"), [("true", True), (":", True), ("echo true", False), ("false", False)])
def test_a_silent_command_is_known_by_the_arguments_that_come_back(command: str, silent: bool):
    """Its empty result lacks nothing."""
    arguments = json.dumps({"command": wrapped(command, "wqbcd1x1x1", Path("x/trace"))})
    assert is_silent(arguments) is silent


@pytest.mark.parametrize(("text", "has"), [("1\r\n2\r\n3\r\n4", True), ("output: 1 2 3", True), ("[stopped]", False)])
def test_the_first_lines_are_found_whatever_ends_them(text: str, has: bool):
    """A terminal ends its lines with CR and LF."""
    assert has_first(text, "1\n2\n3") is has
    assert has_first(text, "") is None


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("InvalidInput: the parameter `command` is missing", True),
        ("Error: 'int' object has no attribute 'strip'", True),
        ("sh: 1: 7: not found", True),
        ("Ошибка: неверный запрос", True),
        ("x" * 301, True),
        ("Error: Argument parsing failed.", False),
        ("tool input was not fully received", False),
        ('{"error": "Invalid input"}', False),
    ],
)
def test_a_result_may_name_what_is_wrong_with_the_arguments(text: str, named: bool):
    """The words of a check, of an exception or of the shell that ran it all the same; a long one may hold anything."""
    assert names_arguments(text) is named


@pytest.mark.parametrize(
    ("sign", "texts"),
    [
        ("answered", ("The user answered: yes", "They answered your question: yes")),
        ("success", ("A success.", "It succeeded.", "It completed.")),
        (
            "only_failed",
            ("Error: 7", "tool failed", "Exception: 7", "couldn't write", "unable to write", "rejected", "not found"),
        ),
        ("only_failed", ("no change",)),
        ("was_stopped", tuple(f"wqbcd1x1x1\nit {it}" for it in ("was killed", "had been killed", "got killed"))),
        ("was_stopped", ("wqbcd1x1x1\nit timed out",)),
        ("ended_well", ("Exit code: 0", "return code 0", "Wall time: 3.5 s", "duration: 2 s")),
    ],
)
def test_each_sign_is_found_by_each_of_its_words(sign: str, texts: tuple[str, ...]):
    """A literal part of a pattern is looked for first."""
    assert [text for text in texts if sign not in signs_in(f"1\n2\n{text}" if sign == "success" else text)] == []
