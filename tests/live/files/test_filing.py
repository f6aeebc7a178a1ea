"""Agents with tools of their own for files: correct ones pass, and each bug is seen by its name."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.live.together import entry
from tests.live.tools.test_textual_agents import stands
from wedgehog.harness.sandbox.disk import disk_unavailable_reason

AGENTS = Path(__file__).with_name("filing.py")
SOUND = ("flat", "listed", "one_tool", "patching", "looking")
SEEN = {
    "writes_at_once": {"two-edits-of-one-file": "file_result_true"},
    "runs_halves": {"write-cut-by-max-tokens": "files_kept", "connection-closes-inside-a-write": "files_kept"},
    "hides_failures": {"edit-does-not-match": "file_result_true", "one-of-two-edits-fails": "file_result_true"},
    "failed_tool_ends_the_turn": {"edit-does-not-match": "turn_answered", "file-is-not-there": "turn_answered"},
    "opens_pipes": {"file-is-a-pipe": "turn_deadline", "search-meets-a-pipe": "turn_deadline"},
    "reads_all": {"file-is-huge": "tool_result_bound", "search-finds-too-much": "tool_result_bound"},
    "decodes_strictly": {"file-is-no-text": "turn_answered", "edit-of-an-old-encoding": "turn_answered"},
    "loses_writes": {"file-is-written-anew": "file_result_true"},
    "skips_empty_files": {"file-is-empty": "file_result_true"},
    "edits_what_it_remembers": {"file-changes-before-the-edit": "files_kept"},
    "says_nothing_of_no_match": {"edit-does-not-match": "file_result_true"},
    "decodes_entities": {"edit-has-signs-of-patterns": "files_kept"},
    "writes_mojibake": {"file-is-written-anew": "files_kept"},
    "patterns_in_new_text": {"edit-has-signs-of-patterns": "files_kept"},
    "edits_past_the_end": {"edit-keeps-line-ends": "files_kept"},
    "guesses_the_encoding": {"edit-of-an-old-encoding": "files_kept"},
    "forgets_carriage_returns": {"edit-keeps-line-ends": "files_kept"},
    "compares_times": {"file-is-saved-unchanged": "file_calls_work"},
    "sends_any_picture": {
        "document-is-no-pdf": "session_recovers",
        "picture-is-no-picture": "session_recovers",
        "picture-has-another-format": "session_recovers",
        "picture-is-too-wide": "session_recovers",
        "picture-is-too-large": "session_recovers",
    },
    "takes_nothing_for_missing": {"file-is-written-anew": "file_calls_work"},
    "forgets_modes": {"edit-keeps-modes": "modes_kept"},
    "matches_carriage_returns": {"edit-keeps-line-ends": "file_calls_work"},
    "follows_links": {"search-meets-circular-links": "turn_deadline"},
    "edits_the_first_place": {"edit-fits-two-places": "edit_place_told"},
    "looks_again_after_the_edit": {"edit-keeps-line-ends": "edit_failure_told"},
    "hides_why": {"edit-does-not-match": "edit_failure_told"},
}
IN_VIRTUAL_TIME = "the scenario's faults act on processes and disk"
STRICT = (
    "compares_times",
    "takes_nothing_for_missing",
    "matches_carriage_returns",
    "edits_the_first_place",
    "forgets_modes",
    "looks_again_after_the_edit",
    "hides_why",
)


@pytest.fixture
def specs(tmp_path: Path) -> Any:
    """Writes specs of these agents; what names them on the command line."""

    def write(*names: str) -> list[str]:
        for name in names:
            wire = "anthropic" if name in ("looking", "sends_any_picture") else "openai-chat"
            spec = {"name": name, "wire": wire, "callable": f"{AGENTS}:{name}", "recover_s": 0}
            spec["level"] = "strict" if name in STRICT else "safe"
            (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(spec))
        return [word for name in names for word in ("--agent", f"{name}.yaml")]

    return write


def test_sound_agents_of_each_shape_pass_all_stories_of_files(wedgehog: Any, specs: Any, tmp_path: Path):
    """A story is skipped only for an agent without the tool that it calls."""
    done = wedgehog("run", "--all", "-k", "files", *specs(*SOUND), "--world", "sim")
    assert done.returncode == 0, done.stdout + done.stderr
    found = stands(tmp_path)
    assert len(found) == len(SOUND) * len({scenario for scenario, _ in found}) >= 80
    missing = "the agent advertises no tool "
    assert {told for told, *_ in found.values() if not told.startswith((missing, IN_VIRTUAL_TIME))} == {"pass"}
    assert {agent for (_, agent), (told, *_) in found.items() if told.startswith(missing)} == {*SOUND} - {"flat"}


def test_each_bug_is_seen(simulate: Any, specs: Any, tmp_path: Path):
    """By the story that was written for it."""
    specs(*SEEN)
    wanted = {(story, name): invariant for name, stories in SEEN.items() for story, invariant in stories.items()}
    found = simulate([entry(story, tmp_path / f"{name}.yaml") for story, name in sorted(wanted)], tmp_path / "runs")
    unseen = [pair for pair, invariant in wanted.items() if invariant not in found[pair].violated]
    last = max((tmp_path / "runs").glob("*/latest"))
    assert not unseen, "\n".join((last / story / name / "history.jsonl").read_text() for story, name in unseen)


def test_a_file_survives_a_full_disk_if_it_is_replaced_whole(wedgehog: Any, specs: Any, tmp_path: Path):
    """Its tail is lost where it is emptied first, and a success that is said is no success."""
    if why := disk_unavailable_reason():
        pytest.skip(why)
    wedgehog("run", "disk-full-in-an-edit", *specs("flat", "writes_in_place", "hides_failures"), "--level", "strict")
    found = stands(tmp_path)
    assert found["disk-full-in-an-edit", "writes_in_place"] == ("files_survive",)
    assert found["disk-full-in-an-edit", "hides_failures"] == ("file_result_true",)
    assert found["disk-full-in-an-edit", "flat"] == ("pass",)


def test_the_check_says_what_an_agent_can_do_with_files(wedgehog: Any, specs: Any):
    """Then its user knows which stories apply."""
    specs("patching")
    told = wedgehog("agents", "check", "patching.yaml")
    says = "it has tools of its own for files (edit_file, read_file, write_file): the scenarios of the tag files apply"
    assert says in told.stdout, told.stdout + told.stderr


def test_the_search_edits_files_too(wedgehog: Any, specs: Any, tmp_path: Path):
    """Edits at once fail without any fault; sound ones do not."""
    specs("flat", "writes_at_once")
    found = wedgehog("fuzz", "--agent", "writes_at_once.yaml", "--world", "sim", "--scenarios", "8")
    assert found.returncode == 1 and "file_result_true" in found.stdout, found.stdout + found.stderr
    (file,) = (tmp_path / "fuzz" / "writes_at_once" / "found").glob("file-result-true*.yaml")
    assert len(yaml.safe_load(file.read_text())["turns"][0]["model"][0]) == 2, "two edits are left of it"
    sound = wedgehog("fuzz", "--agent", "flat.yaml", "--world", "sim", "--scenarios", "40")
    assert sound.returncode == 0, sound.stdout + sound.stderr
