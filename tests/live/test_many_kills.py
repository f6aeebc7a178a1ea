"""Many kills, each at another moment: no wrong verdict, no stray process, no lost event.

Ten of them by default. `WEDGEHOG_KILLS=100` makes it a hundred per agent, the fixed specimens of every stock incident
among them (`WEDGEHOG_SPECIMENS` chooses: `silent-stall/*`), through Toxiproxy where there is one.
"""

import csv
import json
import os
import random
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from wedgehog.harness.event import AgentKilled, FaultFired, StimulusGiven, TurnEnded
from wedgehog.harness.history import History, read
from wedgehog.harness.selection import stock_folder

KILLS = int(os.environ.get("WEDGEHOG_KILLS", "10"))
TOOL = {"tool": "shell", "args": {"command": "sleep 0.2; echo well"}}
WELL = {"text": "It went well, as far as I can see. {nonce}"}
TURNS = [
    {"user": "Run it.", "model": [[{"text": "I shall. "}, TOOL], WELL]},
    {"user": "And?", "model": [{"text": "Yes. {nonce}"}]},
]
PLAIN = [{"user": "Say it.", "model": [WELL]}]
LAST_EVENT = "lag_seen"


def moments(count: int, seed: int = 4, *, tools: bool = True) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """So many different moments: of the reply, of the tool, of the clock, of the session file; and how to kill."""
    draw = random.Random(seed)
    wire: list[Any] = [{}, {"phase": "body"}, {"phase": "terminal"}, {"phase": "linger"}, {"session": "written"}]
    wire += [{"event": event} for event in range(1, 9)] + [{"byte": draw.randrange(1, 1500)} for _ in range(count // 3)]
    wire = [{**at, "step": step} for at in wire for step in ((1, 2) if tools else (1,))]
    beacons = [{"tool": 1, "when": when, "after_s": delay / 50} for when in ("started", "done") for delay in range(9)]
    timers = [{"after_s": round(draw.uniform(0.05, 0.5), 3)} for _ in range(count // 5)]
    found = [*wire, *(beacons if tools else []), *timers]
    draw.shuffle(found)
    ways = ["tree"] * 5 + ["leader"] * 2
    return [
        (at, {"signal": draw.choice(["SIGKILL"] * 4 + ["SIGTERM"]), "whom": draw.choice(ways), "tear": False})
        for at in found[:count]
    ]


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
def many(wedgehog: Any, told: Any, tmp_path: Path) -> Any:
    """Plays one story with every kill against one agent."""

    def played(spec: Path, turns: Any, kills: Any, *options: str) -> Path:
        names = []
        for number, (at, kill) in enumerate(kills):
            fault = {"link": "agent", "at": at, "do": {"kill": kill}}
            names.append(told(f"kill-{number:03d}", turns=turns, faults=[fault]))
        ran = wedgehog("run", *names, "--agent", str(spec), *options, timeout=60 + 15 * len(kills))
        assert ran.returncode in (0, 1, 3) and "Traceback" not in ran.stderr, ran.stderr
        return (tmp_path / "runs" / "latest").resolve()

    return played


def judged(folder: Path) -> list[dict[str, str]]:
    """The rows of a campaign; what is in each run's folder is whole."""
    with (folder / "summary.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["verdict"] == "skipped":
            continue
        history = whole(folder / row["run_dir"] / "history.jsonl")
        said = json.loads((folder / row["run_dir"] / "verdicts.json").read_text())["says"]
        fired = list(history.of(FaultFired))
        if fired:
            assert row["verdict"] == "pass", (row["scenario"], said, [event.as_json() for event in fired])
            assert list(history.of(AgentKilled))
        else:
            assert (row["verdict"], "never fired" in said) == ("inconclusive", True), (row["scenario"], said)
    return rows


def strays(folder: Path) -> list[psutil.Process]:
    """Whoever still carries the campaign's mark."""
    mark = f"wedgehog-{'[0-9a-f]' * 4}{folder.name[-4:]}"[:9]
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("WEDGEHOG_RUN", "").startswith(mark):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return [process for process in found if process.environ()["WEDGEHOG_RUN"].split("/")[0][-4:] == folder.name[-4:]]


@pytest.mark.parametrize("way", ["command", "http", "callable"])
def test_a_sound_agent_is_killed_at_many_moments(many: Any, ways: Any, sound_spec: Any, way: str):
    """Wherever it is hit, it is judged right: a kill that struck leaves a green run, one that came too late none."""
    spec = Path(sound_spec(**ways[way]))
    count = KILLS if way == "command" or KILLS > 10 else 4
    folder = many(spec, TURNS, moments(count, seed=len(way)), "--network=embedded")
    rows = judged(folder)
    assert len(rows) == count and sum(row["verdict"] == "pass" for row in rows) >= count // 2
    assert strays(folder) == []


@pytest.mark.skipif(KILLS <= 10, reason="WEDGEHOG_KILLS is small")
@pytest.mark.parametrize("incident", sorted(path.name for path in (stock_folder() / "incidents").iterdir()))
def test_fixed_specimens_are_killed_at_many_moments(many: Any, incident: str, tmp_path: Path):
    """Those of every incident, each with the story that it can play."""
    wanted = os.environ.get("WEDGEHOG_SPECIMENS", "*/*")
    found = sorted((stock_folder() / "incidents" / incident / "agents").glob("*.yaml"))
    specs = [spec for spec in found if "fixes" in yaml.safe_load(spec.read_text())]
    for number, spec in enumerate(spec for spec in specs if fnmatch(f"{incident}/{spec.stem}", wanted)):
        (tmp_path / spec.name).write_text(fixed(spec))
        folder = many(Path(spec.name), TURNS, moments(KILLS, seed=number), "--network=auto")
        rows = judged(folder)
        if {row["verdict"] for row in rows} == {"skipped"}:  # it has no shell, or no second turn
            folder = many(Path(spec.name), PLAIN, moments(KILLS, seed=number, tools=False), "--network=auto")
            rows = judged(folder)
        print(incident, spec.name, Counter(row["verdict"] for row in rows))
        assert strays(folder) == []


def fixed(spec: Path) -> str:
    """The spec of a specimen with its fixes and nothing else to choose."""
    words = yaml.safe_load(spec.read_text())
    chosen = ",".join(words.pop("fixed", []))
    del words["fixes"]
    words |= {"name": f"fixed{words.pop('suffix', '')}", "recover_s": 0, "known": {}}
    return str(yaml.safe_dump(words)).replace("{fixes}", chosen).replace("{here}", str(spec.parent))
