"""The command as its user runs it: a process of its own, real agents, real Toxiproxy, real signals."""

import csv
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from shutil import copy
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import yaml

from tests.conftest import Command, ForkServer
from tests.live.together import Found, play
from wedgehog.harness.campaign.options import Options
from wedgehog.harness.campaign.selection import Entry
from wedgehog.harness.network.toxiproxy.server import locate
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.history import History, read
from wedgehog.harness.record.judgement import read_judgement
from wedgehog.harness.record.turn_outcome import outcome_of

PATIENCE_S = 300.0
AGENT = '''\
"""A small agent: asks the model once; what it finds in its environment is its session."""
import json, os, sys
from plain_http import post
url, session, message = sys.argv[1:4]
json.dump(dict(os.environ), open(os.path.join(session, "environment.json"), "w"))
body = {"model": "m", "max_tokens": 999, "messages": [{"role": "user", "content": message}]}
headers = {"x-api-key": os.environ["KEY"], "anthropic-version": "2023-06-01"}
if "linger" in message:  # a helper that only we will end: a session of its own, a washed environment
    import subprocess
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
try:
    print(json.loads(post(url + "/v1/messages", body, headers, timeout_s=100).read())["content"][0]["text"])
except OSError as wrong:
    sys.exit(f"Error: {wrong}")
'''


def patiently(met: Callable[[], Any], within_s: float = PATIENCE_S) -> Any:
    """Look again and again until something is found; what was found, falsy if it never was."""
    end = time.monotonic() + within_s
    while not (found := met()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def carrying(campaign: Path, below: str = "") -> list[psutil.Process]:
    """Living processes that carry a campaign's mark."""
    mark = re.compile(rf"wedgehog-[0-9a-f]*{campaign.name[-4:]}(/|$)")
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            carried = process.environ().get("WEDGEHOG_RUN", "")
            if mark.match(carried) and below in carried and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


class Running:
    """A command that is under way, and what it leaves behind."""

    def __init__(self, process: Command, out: Path, err: Path) -> None:
        self.process, self.out, self._err = process, out, err

    @property
    def said(self) -> str:
        """What it has said to people so far."""
        return self._err.read_text()

    @property
    def folder(self) -> Path:
        """Its campaign's folder."""
        return (self.out / "latest").resolve()

    def until(self, met: Callable[[], Any], within_s: float = PATIENCE_S) -> Any:
        """Wait for something that must come while it runs."""
        found = patiently(lambda: met() or self.process.poll() is not None, within_s)
        assert found and self.process.poll() is None, f"it did not come; it said: {self.said}"
        return met()

    def history(self, scenario: str, agent: str = "mine") -> str:
        """What is on disk of one run's history."""
        path = self.folder / scenario / agent / "history.jsonl"
        return path.read_text() if path.is_file() else ""

    def marked(self, below: str = "") -> list[psutil.Process]:
        """Living processes that carry this campaign's mark."""
        return carrying(self.folder, below)

    def ends(self, within_s: float = PATIENCE_S) -> int:
        """Its exit code, once it has ended."""
        return self.process.wait(within_s)


@pytest.fixture
def begin(tmp_path: Path, environment: dict[str, str], fork_server: ForkServer) -> Iterator[Callable[..., Running]]:
    """Starts `wedgehog …` in a folder of its own; whatever is left of it is ended afterwards."""
    started: list[Running] = []

    def start(*words: str, out: Path = tmp_path / "runs", **more: str) -> Running:
        told, said = (tmp_path / f"{name}-{len(started)}" for name in ("stdout", "stderr"))
        process = fork_server.start(words, tmp_path, {**environment, **more}, told, said)
        started.append(Running(process, out, said))
        return started[-1]

    yield start
    for running in started:
        if running.process.poll() is None:
            running.process.kill()
            running.process.wait(PATIENCE_S)
        if running.out.exists():
            for process in running.marked():
                with suppress(psutil.Error):
                    process.kill()


@pytest.fixture
def told(tmp_path: Path) -> Callable[..., str]:
    """Writes a scenario; its name."""

    def write(name: str, *model: Any, user: str = "Go on.", **words: Any) -> str:
        turns = [{"user": user, "model": list(model) or [{"text": "Done {nonce}"}]}]
        story = {"name": name, "why": "It is a test.", "turns": turns} | words
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(story))
        return f"{name}.yaml"

    return write


@pytest.fixture
def agent(tmp_path: Path) -> Callable[..., str]:
    """Writes an agent and its spec; the spec's name."""

    def write(name: str = "mine", code: str = AGENT, **words: Any) -> str:
        (tmp_path / f"{name}.py").write_text(code)
        copy(PLAIN_HTTP, tmp_path)
        command = ["{python}", "-S", "-E", f"{{here}}/{name}.py", "{llm_url}", "{session_dir}", "{message}"]
        spec = {"name": name, "wire": "anthropic", "command": command, "env": {"KEY": "{key}"}, "recover_s": 0}
        spec |= {"session_files": ["{session_dir}/*.json"], **words}
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(spec))
        return f"{name}.yaml"

    return write


PLAIN_HTTP = Path(__file__).with_name("plain_http.py")
"""What agents of tests ask the model with, where the client is not what is tested; beside each agent."""
SOUND = Path(__file__).with_name("sound.py")
WAYS: dict[str, dict[str, Any]] = {
    "command": {"command": ["{python}", "-S", "-E", "{here}/sound.py", "{llm_url}", "{session_dir}", "{message}"]},
    "http": {
        "http": {
            "start": ["{python}", "-S", "-E", "{here}/sound.py", "{llm_url}", "{session_dir}", "--serve", "{port}"],
            "url": "/",
            "body": {"message": "{message}"},
        }
    },
    "callable": {"callable": "{here}/sound.py:call"},
}
"""The sound agent, as its user may talk to it."""


@pytest.fixture
def ways() -> dict[str, dict[str, Any]]:
    """The sound agent's spec, for each way of talking to it."""
    return WAYS


class Played:
    """One run that is over."""

    def __init__(self, folder: Path, row: dict[str, str]) -> None:
        self.row, self.folder = row, folder / row["run_dir"]
        self.history: History = read(self.folder / "history.jsonl") if row["run_dir"] else History()

    @property
    def verdict(self) -> str:
        return self.row["verdict"]

    @property
    def says(self) -> str:
        return str(json.loads((self.folder / "verdicts.json").read_text())["says"])

    @property
    def beacons(self) -> list[BeaconSeen]:
        """Those of the scenario's own tool calls, without the recovery's."""
        turns = {str(turn.number) for turn in self.history.turns if not turn.recovery}
        return [seen for seen in self.history.of(BeaconSeen) if seen.token.partition(".")[0] in turns]

    @property
    def kinds(self) -> list[str]:
        return [outcome_of(turn, self.history).kind for turn in self.history.turns]


@pytest.fixture
def unsound() -> dict[str, str]:
    """What is written otherwise in the sound agent, by its words: empty unless a test puts something in."""
    return {}


@pytest.fixture
def sound_spec(tmp_path: Path, unsound: dict[str, str]) -> Callable[..., str]:
    """Writes the sound agent and a spec of it; the spec's name."""

    def write(**words: Any) -> str:
        code = SOUND.read_text()
        for right, wrong in unsound.items():
            assert right in code
            code = code.replace(right, wrong)
        (tmp_path / "sound.py").write_text(code)
        copy(PLAIN_HTTP, tmp_path)
        spec = {"name": "sound", "wire": "anthropic", "recover_s": 0, "session_files": ["{session_dir}/*.jsonl"]}
        spec["session_file"] = "{session_dir}/messages.jsonl"
        (tmp_path / "sound.yaml").write_text(yaml.safe_dump(spec | words))
        return "sound.yaml"

    return write


@pytest.fixture
def results(tmp_path: Path) -> Callable[[], dict[str, Played]]:
    """Reads what came of the last campaign's runs, by the names of their scenarios."""

    def read_all() -> dict[str, Played]:
        folder = (tmp_path / "runs" / "latest").resolve()
        with (folder / "summary.csv").open(newline="") as file:
            return {row["scenario"]: Played(folder, row) for row in csv.DictReader(file)}

    return read_all


@pytest.fixture
def sound(wedgehog: Any, told: Any, sound_spec: Any, results: Any) -> Callable[..., dict[str, Played]]:
    """Plays stories against the sound agent, all in one campaign: name to what came of it."""

    def played(way: str, *options: str, **stories: dict[str, Any]) -> dict[str, Played]:
        sound_spec(**WAYS[way])
        names = [told(name.replace("_", "-"), **words) for name, words in stories.items()]
        ran = wedgehog("run", *names, "--agent", "sound.yaml", *options)
        assert ran.returncode in (0, 1, 3) and "Traceback" not in ran.stderr, ran.stderr
        return {name.replace("-", "_"): run for name, run in results().items()}

    return played


@pytest.fixture
def wedgehog(wedgehog: Any, tmp_path: Path) -> Callable[..., Any]:
    """Runs `wedgehog …`; a campaign with a run that a busy machine left undecided is played again, twice at most."""

    def ran(*words: str, **more: Any) -> Any:
        out = tmp_path / (words[words.index("--out") + 1] if "--out" in words else "runs") / "latest"
        for last in (False, False, True):
            done = wedgehog(*words, **more)
            if last or words[0] != "run" or not any(map(_undecided, out.glob("*/*/verdicts.json"))):
                break
        return done

    return ran


def _undecided(verdicts: Path) -> bool:
    return read_judgement(verdicts.parent).overloaded


@pytest.fixture(scope="session")
def simulate(simulating_python: str) -> Callable[[Iterable[Entry], Path], Found]:
    """Plays pairs of a scenario and an agent in virtual time, in one campaign of this process, and no other pair."""

    def played(entries: Iterable[Entry], out: Path) -> Found:
        with pytest.MonkeyPatch.context() as patch:
            python = SimpleNamespace(executable=simulating_python)
            patch.setattr("wedgehog.harness.run.simulated.sim_player.sys", python)
            return play(entries, Options(out, world="sim"))

    return played


@pytest.fixture
def toxiproxy() -> str:
    """The option that demands Toxiproxy; skips where there is none, fails where the environment demands one."""
    found = locate()
    if found.path is None:
        reason = f"no Toxiproxy server: {'; '.join(found.tried)}"
        if os.environ.get("WEDGEHOG_REQUIRE_TOXIPROXY") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return "--network=toxiproxy"


@pytest.fixture(params=["embedded", "toxiproxy"])
def network(request: pytest.FixtureRequest) -> str:
    """The option for both networks, one after the other."""
    return "--network=embedded" if request.param == "embedded" else str(request.getfixturevalue("toxiproxy"))


@pytest.fixture
def patience() -> Callable[..., Any]:
    """Looks again and again until something is found."""
    return patiently


@pytest.fixture
def marked() -> Callable[..., list[psutil.Process]]:
    """Living processes that carry a campaign's mark, by the campaign's folder."""
    return carrying
