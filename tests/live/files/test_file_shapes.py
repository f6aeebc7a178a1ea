"""Tools for files of other shapes: sound agents pass, and their edits are made; the bugs of such shapes are seen."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.live.tools.test_textual_agents import stands

AGENTS = Path(__file__).with_name("file_shapes.py")
SOUND = ("blocks", "diffs", "formatting", "on_a_copy", "late", "proposing")
SEEN = {
    "ignores_misfits": {"edit-does-not-match": "files_kept"},
    "writes_over_its_user": {"file-changes-before-the-edit": "files_kept"},
    "expands_tabs": {"edit-keeps-tabs": "files_kept"},
    "ends_lines_twice": {"edit-keeps-tabs": "files_kept"},
    "joins_lines": {"edit-keeps-tabs": "files_kept"},
    "takes_the_first_line": {"edit-keeps-line-ends": "files_kept"},
    "never_shortens": {"file-is-written-anew": "files_kept"},
    "forgets_all_but_the_last": {"edit-has-signs-of-patterns": "file_result_true"},
}


@pytest.fixture
def specs(tmp_path: Path) -> Any:
    """Writes specs of these agents; what names them on the command line."""

    def write(*names: str) -> list[str]:
        for name in names:
            spec = {"name": name, "wire": "openai-chat", "callable": f"{AGENTS}:{name}", "recover_s": 0}
            (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(spec))
        return [word for name in names for word in ("--agent", f"{name}.yaml")]

    return write


def test_sound_agents_pass_all_stories_of_files_at_each_level(wedgehog: Any, specs: Any, tmp_path: Path):
    """Whether an edit is made at once, when the turn ends, or with the next message."""
    done = wedgehog("run", "--all", "-k", "files", *specs(*SOUND), "--world", "sim", "--level", "strict")
    found = stands(tmp_path)
    told = {(scenario, agent): told for (scenario, agent), (told, *_) in found.items() if not told.startswith("the ")}
    cut = {("write-cut-by-max-tokens", agent): "turn_answered" for agent in SOUND}  # they end the turn with an error
    assert {of: it for of, it in told.items() if it != "pass"} == cut, done.stdout + done.stderr
    assert len(told) > 100


@pytest.mark.parametrize("agent", SOUND)
def test_their_edits_are_made(wedgehog: Any, specs: Any, tmp_path: Path, agent: str):
    """The model knows the form that each tool takes; else nothing would be judged."""
    wedgehog("run", "two-edits-of-one-file", *specs(agent), "--world", "sim")
    (file,) = (tmp_path / "runs" / "latest").glob(f"two-edits-of-one-file/{agent}/verdicts.json")
    (kept,) = [it for it in json.loads(file.read_text())["verdicts"] if it["name"] == "files_kept"]
    assert (kept["status"], "notes.txt holds what the model wrote" in kept["because"]) == ("pass", True), kept


def test_each_bug_is_seen(wedgehog: Any, specs: Any, tmp_path: Path):
    """By the story that was written for it."""
    wanted = sorted({scenario for stories in SEEN.values() for scenario in stories})
    done = wedgehog("run", *wanted, *specs(*SEEN), "--world", "sim")
    found = stands(tmp_path)
    unseen = {
        (agent, scenario): found[scenario, agent]
        for agent, stories in SEEN.items()
        for scenario, invariant in stories.items()
        if invariant not in found[scenario, agent]
    }
    assert not unseen, done.stdout + done.stderr
