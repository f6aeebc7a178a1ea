"""Tools for files of other shapes: sound agents pass, and their edits are made; the bugs of such shapes are seen."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.live.together import Found, entry
from wedgehog.harness.campaign.selection import Wanted, select

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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has a spec of each agent."""
    made = tmp_path_factory.mktemp("shapes")
    for name in (*SOUND, *SEEN):
        spec = {"name": name, "wire": "openai-chat", "callable": f"{AGENTS}:{name}", "recover_s": 0}
        (made / f"{name}.yaml").write_text(yaml.safe_dump(spec))
    return made


@pytest.fixture(scope="module")
def sound(simulate: Any, folder: Path) -> Found:
    """All stories of files with the sound agents, played once."""
    agents = tuple(str(folder / f"{name}.yaml") for name in SOUND)
    wanted = Wanted(agents=agents, everything=True, words="files", level="strict")
    return simulate(select(wanted), folder / "sound")


def test_sound_agents_pass_all_stories_of_files_at_each_level(sound: Found):
    """Whether an edit is made at once, when the turn ends, or with the next message."""
    told = {pair: it.violated or it.verdict for pair, it in sound.items() if not it.skipped}
    cut = {("write-cut-by-max-tokens", agent): ("turn_answered",) for agent in SOUND}  # they end it with an error
    assert {pair: it for pair, it in told.items() if it != "pass"} == cut
    assert {it.skipped.split()[0] for it in sound.values() if it.skipped} == {"the"}
    assert len(told) > 100


@pytest.mark.parametrize("agent", SOUND)
def test_their_edits_are_made(sound: Found, agent: str):
    """The model knows the form that each tool takes; else nothing would be judged."""
    (kept,) = [it for it in sound["two-edits-of-one-file", agent].verdicts if it.name == "files_kept"]
    assert (kept.status, "notes.txt holds what the model wrote" in kept.because) == ("pass", True), kept


def test_each_bug_is_seen(simulate: Any, folder: Path):
    """By the story that was written for it."""
    wanted = {(story, name): invariant for name, stories in SEEN.items() for story, invariant in stories.items()}
    found = simulate([entry(story, folder / f"{name}.yaml") for story, name in sorted(wanted)], folder / "seen")
    assert not [(pair, found[pair]) for pair, invariant in wanted.items() if invariant not in found[pair].violated]
