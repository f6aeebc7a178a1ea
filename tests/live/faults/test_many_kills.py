"""Many kills, each at another moment: no wrong verdict, no stray process, no lost event.

Ten of them by default, of a sound agent. `WEDGEHOG_KILLS=100` makes it a hundred, and the fixed specimens of every
stock incident get as many (`WEDGEHOG_SPECIMENS` chooses: `silent-stall/*`), by Toxiproxy where there is one. A first
run without a fault says which moments a story has; each place is aimed at once, until enough of them were hit.
"""

import csv
import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from wedgehog.harness.campaign.selection import stock_folder
from wedgehog.harness.record.events.call import ReplyEnded, RequestArrived
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.events.turn import AgentKilled, StimulusGiven, TurnEnded
from wedgehog.harness.record.history import History, read

KILLS = int(os.environ.get("WEDGEHOG_KILLS", "10"))
TRIES = 3
"""A place behind a reply's last byte, or a late one, may find no process: other places are used instead, so often."""
TOOL = {"tool": "shell", "args": {"command": "sleep 0.2; echo well"}}
WELL = {"text": "It went well, as far as I can see. {nonce}"}
AND = {"user": "And?", "model": [{"text": "Yes. {nonce}"}]}
TURNS = [{"user": "Run it.", "model": [[{"text": "I shall. "}, TOOL], WELL]}, AND]
UNITS = [{"user": "Update three.", "model": [{"tool": "update_units", "args": {"count": 3}}, WELL]}, AND]
STORIES = {"endless-loop": UNITS}
"""Of agents that have no shell."""
PLAYS_AGAIN = {"silent-stall/chat"}
"""What polls for its messages gets the one that it was killed over once more, and runs its tools once more."""
LAST_EVENT = "lag_seen"


def places(rehearsed: History, seed: int) -> list[dict[str, Any]]:
    """Every moment of the first turn that can be named, in an order of its own: of its replies, tools, files, clock."""
    draw = random.Random(seed)
    calls = [call for call in rehearsed.of(RequestArrived) if (call.turn, call.background) == (1, "")]
    written = {reply.call: reply.body_bytes for reply in rehearsed.of(ReplyEnded)}
    began = next(given.at_s for given in rehearsed.of(StimulusGiven) if given.turn == 1)
    found = [{"step": call.step, **at} for call in calls for at in _of_reply(call, written[call.call], draw)]
    found += _of_beacons(rehearsed)
    moments_ms = range(50, max(300, int(1000 * (calls[-1].at_s - began))))
    found += [{"after_s": ms / 1000} for ms in draw.sample(moments_ms, KILLS // 8)]
    draw.shuffle(found)
    return found


def _of_reply(call: RequestArrived, size: int, draw: random.Random) -> Iterator[dict[str, Any]]:
    yield from ({}, {"phase": "body"}, {"phase": "terminal"}, {"phase": "linger"}, {"session": "written"})
    yield from ({"event": event} for event in range(1, 7) if call.stream)
    yield from ({"byte": byte} for byte in draw.sample(range(1, size), min(KILLS, size - 1)))


def _of_beacons(rehearsed: History) -> Iterator[dict[str, Any]]:
    for beacon in rehearsed.of(BeaconSeen):
        turn, step, tool = map(int, beacon.token.split("."))
        delays = range(KILLS // 5) if beacon.phase == "started" else range(2)
        if turn == 1:
            yield from ({"step": step, "tool": tool, "when": beacon.phase, "after_s": late / 100} for late in delays)


def kills(draw: random.Random) -> dict[str, Any]:
    """How to kill."""
    signal, whom = draw.choice(["SIGKILL"] * 4 + ["SIGTERM"]), draw.choice(["tree"] * 5 + ["leader"] * 2)
    return {"signal": signal, "whom": whom, "tear": False}


def whole(path: Path) -> History:
    """A history from which no event is missing: ids without a gap, every turn with an end, and its own last event."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["id"] for line in lines] == list(range(len(lines)))
    assert lines[-1]["event"] == LAST_EVENT
    history = read(path)
    given = [event.turn for event in history.of(StimulusGiven)]
    assert given == [event.turn for event in history.of(TurnEnded)]
    return history


@pytest.fixture
def campaign(wedgehog: Any, told: Any, tmp_path: Path) -> Any:
    """Plays one story with each of many faults against one agent; the folder and its rows."""

    def played(spec: Path, turns: Any, faults: dict[str, list[Any]], network: str) -> tuple[Path, Any]:
        names = [told(name, turns=turns, faults=planned) for name, planned in faults.items()]
        ran = wedgehog("run", *names, "--agent", str(spec), network, "--jobs=4", timeout=600 + 15 * len(names))
        assert ran.returncode in (0, 1, 3) and "Traceback" not in ran.stderr, ran.stderr
        folder = (tmp_path / "runs" / "latest").resolve()
        with (folder / "summary.csv").open(newline="") as file:
            return folder, list(csv.DictReader(file))

    return played


@pytest.fixture
def many(campaign: Any, marked: Any) -> Any:
    """Kills one agent at so many places of a story; those that were hit, and how its first turn ended."""

    def killed(spec: Path, turns: Any, count: int, network: str, seed: int, *, again: bool = False) -> Counter[str]:
        folder, [row] = campaign(spec, turns, {"rehearsal": []}, network)
        assert row["verdict"] == "pass", row
        left = places(whole(folder / row["run_dir"] / "history.jsonl"), seed)
        assert len({json.dumps(at, sort_keys=True) for at in left}) == len(left)
        draw, ends = random.Random(seed), Counter[str]()
        for attempt in range(TRIES):
            aimed, left = left[: count - ends.total()], left[count - ends.total() :]
            plan = {
                f"kill-{attempt}-{number:03d}": [{"link": "agent", "at": at, "do": {"kill": kills(draw)}}]
                for number, at in enumerate(aimed)
            }
            if plan:
                folder, rows = campaign(spec, turns, plan, network)
                assert len(rows) == len(plan)
                struck = (judged(folder, row, plan[row["scenario"]][0], again=again) for row in rows)
                ends += Counter(filter(None, struck))
                assert not marked(folder)
        return ends

    return killed


def judged(folder: Path, row: dict[str, str], aimed: dict[str, Any], *, again: bool) -> str:
    """How the first turn of a run ended in which the fault fired, empty where it did not; all that is wrong is told."""
    history = whole(folder / row["run_dir"] / "history.jsonl")
    said = json.loads((folder / row["run_dir"] / "verdicts.json").read_text())["says"]
    fired = list(history.of(FaultFired))
    if not fired:
        assert (row["verdict"], "never fired" in said) == ("inconclusive", True), (row["run_dir"], said)
        return ""
    started = Counter(beacon.token for beacon in history.of(BeaconSeen) if beacon.phase == "started")
    twice = any(count > 1 for count in started.values())
    right = ("fail", "at_most_once_tools") if twice and again else ("pass", "")
    assert (row["verdict"], row["violated"]) == right, (row["run_dir"], said, [event.as_json() for event in fired])
    assert list(history.of(AgentKilled))
    if aimed["do"]["kill"]["signal"] == "SIGKILL" and "byte" in aimed["at"]:
        calls = {call.call for call in history.of(RequestArrived) if (call.turn, call.step) == (1, aimed["at"]["step"])}
        sizes = [reply.body_bytes for reply in history.of(ReplyEnded) if reply.call in calls]
        assert aimed["at"]["byte"] in sizes, (row["run_dir"], sizes, aimed)
    return next(event.ended for event in history.of(TurnEnded) if event.turn == 1)


@pytest.mark.parametrize("way", ["command", "http", "callable"])
def test_a_sound_agent_is_killed_at_many_moments(many: Any, ways: Any, sound_spec: Any, way: str):
    """Wherever it is hit, it is judged right: a kill that struck leaves a green run, one that came too late none."""
    count = KILLS if way == "command" or KILLS > 10 else 4
    ends = many(Path(sound_spec(**ways[way])), TURNS, count, "--network=embedded", len(way))
    print(way, ends)
    assert ends.total() == count and ends["killed"] >= count // 2


@pytest.mark.skipif(KILLS <= 10, reason="WEDGEHOG_KILLS is small")
@pytest.mark.parametrize(
    "specimen",
    [f"{path.parts[-3]}/{path.stem}" for path in sorted((stock_folder() / "incidents").glob("*/agents/*.yaml"))],
)
def test_fixed_specimens_are_killed_at_many_moments(many: Any, specimen: str, tmp_path: Path):
    """Those of every incident, each with the story that it can play, at as many different places."""
    if not fnmatch(specimen, os.environ.get("WEDGEHOG_SPECIMENS", "*/*")):
        pytest.skip("WEDGEHOG_SPECIMENS names others")
    incident, name = specimen.split("/")
    (tmp_path / f"{name}.yaml").write_text(fixed(stock_folder() / "incidents" / incident / "agents" / f"{name}.yaml"))
    story, again = STORIES.get(incident, TURNS), specimen in PLAYS_AGAIN
    ends = many(Path(f"{name}.yaml"), story, KILLS, "--network=auto", len(specimen), again=again)
    print(specimen, ends)
    assert ends.total() == KILLS and ends["killed"] >= KILLS // 2


def fixed(spec: Path) -> str:
    """The spec of a specimen with its fixes and nothing else to choose."""
    words = yaml.safe_load(spec.read_text())
    chosen = ",".join(words.pop("fixed", []))
    words |= {"name": f"fixed{words.pop('suffix', '')}", "fixes": {}, "recover_s": 0, "known": {}}
    return str(yaml.safe_dump(words)).replace("{fixes}", chosen).replace("{here}", str(spec.parent))
