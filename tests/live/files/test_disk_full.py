"""A full disk under a real agent: its writes fail, it says so, and when there is room again its session goes on."""

import errno
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from wedgehog.harness.record.events.fault import FaultFired, FaultHealed
from wedgehog.harness.record.events.run import SessionKept, SessionPlanted
from wedgehog.harness.sandbox.disk import SmallDisk, disk_unavailable_reason

LONG = {"tool": "shell", "args": {"command": "head -c 9000 /dev/zero | tr '\\0' x"}}
TURNS = [
    {"user": "Run it.", "model": [LONG, {"text": "It was long. {nonce}"}]},
    {"user": "And?", "model": [{"text": "Yes. {nonce}"}]},
]

PLANTED = [
    {"role": "user", "content": "Remember the seven."},
    {"role": "assistant", "content": [{"type": "text", "text": "I shall remember it."}]},
]


@pytest.fixture(autouse=True)
def _needs_namespaces() -> None:
    if disk_unavailable_reason():
        pytest.skip(disk_unavailable_reason())


@pytest.mark.parametrize("way", ["command", "http", "callable"])
def test_an_agent_whose_disk_is_full_says_so_and_goes_on_when_there_is_room(sound: Any, way: str):
    """Half a line stays of what it wrote; healed at the end of the turn, the next message is answered."""
    full = {"link": "agent", "at": {"event": 1}, "do": "disk_full"}
    played = sound(way, "--network=embedded", full={"turns": TURNS, "faults": [full]})["full"]
    assert played.verdict == "pass", played.says
    assert played.kinds == ["surfaced", "answered", "answered"], played.says
    (fired,), (healed,) = played.history.of(FaultFired), played.history.of(FaultHealed)
    assert "ENOSPC" in fired.proof and fired.id < healed.id < played.history.turns[1].stimulus.id
    assert "No space left on device" in played.history.turns[0].end.error
    second = played.history.turns[1].main_calls[0]
    assert second.arrived.turns_seen == (1, 2), "the session went on"
    kept = [event for event in played.history.of(SessionKept) if event.path == "session/messages.jsonl"]
    assert kept and (played.folder / "session" / kept[0].path).read_bytes()


def test_a_planted_session_lies_on_the_disk_that_fills(sound: Any, tmp_path: Path):
    """The agent starts from it, finds what is added to it later, and goes on from it when there is room again."""
    (tmp_path / "planted.jsonl").write_text("".join(json.dumps(message) + "\n" for message in PLANTED))
    full = {"link": "agent", "at": {"turn": 2, "event": 1}, "do": "disk_full"}
    turns = [TURNS[1], {**TURNS[0], "append": "planted.jsonl"}, TURNS[1]]
    story = {"turns": turns, "faults": [full], "session": "planted.jsonl"}
    played = sound("command", "--network=embedded", planted=story)["planted"]
    assert (played.verdict, played.kinds) == ("pass", ["answered", "surfaced", "answered", "answered"]), played.says
    assert [planted.turn for planted in played.history.of(SessionPlanted)] == [0, 2]
    first, second = (turn.main_calls[0].arrived.messages for turn in played.history.turns[:2])
    assert (first, second) == (2 + 1, 2 + 2 + 2 + 1), "what was planted, question and answer, and the message"
    kept = (played.folder / "session" / "session/messages.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in kept[:2]] == PLANTED == [json.loads(line) for line in kept[4:6]]


def test_an_agent_on_a_small_disk_that_is_never_filled_notices_nothing(sound: Any):
    """Exit codes, signals and files are as ever; the fault that never fired is no pass."""
    full = {"link": "agent", "at": {"event": 99}, "do": "disk_full"}
    kill = {"link": "agent", "at": {"tool": 1}, "do": "kill"}
    runs = sound(
        "command",
        "--network=embedded",
        never={"turns": TURNS, "faults": [full]},
        killed={"turns": TURNS, "faults": [kill, {**full, "at": {"turn": 2, "event": 1}}]},
    )
    assert runs["never"].verdict == "inconclusive" and set(runs["never"].kinds) == {"answered"}
    assert runs["killed"].kinds[0] == "killed"
    assert runs["killed"].history.turns[0].end.exit_code == -signal.SIGKILL


async def test_a_disk_is_full_for_its_agent_alone_and_has_room_again(tmp_path: Path):
    """What lay in its folder is there; outside, nothing has changed."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "old").write_text("before")
    disk = SmallDisk(tmp_path, [folder])
    await disk.open("test-disk/run")
    try:
        seen = disk.outside(folder)
        assert (seen / "old").read_text() == "before"
        (seen / "new").write_text("on it")
        assert not (folder / "new").exists()
        assert "ENOSPC" in await disk.fill(0)
        with pytest.raises(OSError) as wrong:
            (seen / "more").write_bytes(b"x")
        assert wrong.value.errno == errno.ENOSPC
        (folder / "beside").write_bytes(b"x")
        assert "ENOSPC" in await disk.fill(8192)
        (seen / "more").write_bytes(b"x" * 8192)
        await disk.heal()
        (seen / "more").write_bytes(b"x" * 99_999)
    finally:
        await disk.close()


def test_what_keeps_the_disk_is_no_process_of_the_agent(wedgehog: Any, told: Any, agent: Any, tmp_path: Path):
    """What an agent waited for is read from its own processes."""
    full = {"link": "agent", "at": {"phase": "headers"}, "do": "disk_full"}
    stalls = {"at": {"byte": 20}, "do": {"stall": "forever"}}
    story = told("full", {"text": "It was long. {nonce}"}, faults=[full, stalls])
    wedgehog("run", story, "--agent", agent(limits={"turn_s": 3}), "--network=embedded")
    (seen,) = (tmp_path / "runs" / "latest").glob("full/*/hang-1.json")
    processes = json.loads(seen.read_text())["processes"]
    assert len(processes) == 1 and not any("hold" in it["argv"] for it in processes), processes
