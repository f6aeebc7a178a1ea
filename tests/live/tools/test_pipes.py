"""Pipes in whole runs: an agent whose tool stands behind `wedgehog-pipe` meets the faults that its scenario names."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

AGENT = '''\
"""Asks its tool once over stdio, waits for as many bytes as it is told and two seconds, then asks the model."""
import json, os, select, subprocess, sys
from plain_http import post
url, session, message, *tool = sys.argv[1:]
washed = {"HOME": os.environ["HOME"], "PATH": os.environ["PATH"]}  # as an MCP client does it
got, how = b"", "silence"
least = int(message.rpartition("#")[2]) if "#" in message else 1000
if tool:
    process = subprocess.Popen(tool, env=washed, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    process.stdin.write(b"x" * 1000)
    while len(got) < 1000 and select.select([process.stdout], [], [], 2 if len(got) >= least else 60)[0]:
        data = os.read(process.stdout.fileno(), 4096)
        got += data
        if not data:
            how = "the end"
            break
    process.stdin.close()
    how = f"{how}, exit {process.wait()}" if len(got) == 1000 or how == "the end" else how
path = os.path.join(session, "session.json")
talk = json.load(open(path)) if os.path.exists(path) else []
talk.append({"role": "user", "content": message})
body = {"model": "m", "max_tokens": 999, "messages": talk}
headers = {"x-api-key": os.environ["KEY"], "anthropic-version": "2023-06-01"}
answer = json.loads(post(url + "/v1/messages", body, headers, timeout_s=100).read())["content"][0]["text"]
json.dump([*talk, {"role": "assistant", "content": answer}], open(path, "w"))
print(answer, f"[{len(got)} bytes, {how}]")
'''
TOOL = ["{pipe}", "--name", "tool", "--", "cat"]


Seen = tuple[list[dict[str, Any]], dict[str, str]]
Tell = Callable[..., dict[str, Seen]]


@pytest.fixture
def play(wedgehog: Any, told: Any, agent: Any, network: str, tmp_path: Path) -> Tell:
    """Plays stories with such an agent, all in one campaign; the history and the row of each."""

    def played(stories: dict[str, dict[str, Any]], tool: list[str] = TOOL) -> dict[str, Seen]:
        command = ["{python}", "-S", "-E", "{here}/mine.py", "{llm_url}", "{session_dir}", "{message}", *tool]
        spec = agent("mine", AGENT, command=command, session_files=[])
        names = [told(name, **words) for name, words in stories.items()]
        ran = wedgehog("run", *names, "--agent", spec, "--jobs=4", network)
        folder = (tmp_path / "runs" / "latest").resolve()
        with (folder / "summary.csv").open(newline="") as file:
            rows = {row["scenario"]: row for row in csv.DictReader(file)}
        assert rows.keys() == stories.keys(), ran.stderr
        exit_code = 0 if {row["verdict"] for row in rows.values()} == {"pass"} else 3
        assert ran.returncode == exit_code, ran.stderr
        return {name: (_events(folder / row["run_dir"]), row | {"said": ran.stdout}) for name, row in rows.items()}

    return played


def _events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]


_ALL: dict[str, dict[str, Seen]] = {}


@pytest.fixture
def seen(play: Tell, network: str) -> dict[str, Seen]:
    """What came of all `STORIES` through a network; played once."""
    if network not in _ALL:
        _ALL[network] = play(STORIES)
    return _ALL[network]


def of(history: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Events of one kind."""
    return [event for event in history if event["event"] == kind]


def answers(history: list[dict[str, Any]]) -> list[str]:
    """What the agent said of its tool in each turn."""
    return [event["answer"].partition("[")[2].rstrip("]\n") for event in of(history, "turn_ended")]


STRUCK = {
    "123 bytes, silence": ("stall", {"byte": 123}),
    "124 bytes, the end, exit 0": ("cut", {"byte": 124}),
    "1000 bytes, silence, exit 0": ({"stall": {"for_s": 0.3}}, {"byte": 125}),
    "1000 bytes, silence,  exit 0": ({"latency": 0.3}, {}),
    "1000 bytes, silence,   exit 0": ({"drip": {"every_s": 0.01, "bytes": 100}}, {"byte": 100}),
    "77 bytes, silence": ("stall", {"phase": "request", "byte": 77}),
    "78 bytes, the end, exit 0": ("cut", {"phase": "request", "byte": 78}),
}
"""What the agent says of its tool, and the fault of the turn."""

STORIES: dict[str, dict[str, Any]] = {
    "well": {},
    "struck": {
        "turns": [{"user": f"Go on. #{sees.split()[0]}", "model": [{"text": "Done {nonce}"}]} for sees in STRUCK],
        "faults": [
            {"link": "ipc:tool", "at": {"turn": turn, **at}, "do": do}
            for turn, (do, at) in enumerate(STRUCK.values(), 1)
        ],
    },
    "reset": {"faults": [{"link": "ipc:tool", "at": {"byte": 123}, "do": {"cut": "rst"}}]},
    "other": {"faults": [{"link": "ipc:other", "at": {"byte": 1}, "do": "stall"}]},
    "later": {"faults": [{"link": "ipc:tool", "at": {"attempt": 2, "byte": 1}, "do": "cut"}]},
}


def test_a_pipe_without_a_fault_is_told_with_its_bytes(seen: dict[str, Seen]):
    """Opened and closed, so many bytes each way, in every turn."""
    history, row = seen["well"]
    assert row["verdict"] == "pass"
    assert answers(history) == ["1000 bytes, silence, exit 0"] * 2
    opened, closed = of(history, "pipe_opened"), of(history, "pipe_closed")
    assert [event["name"] for event in opened] == ["tool", "tool"] and opened[0]["child"] != opened[0]["pid"]
    for event in closed:
        assert (event["exit_code"], event["stdout_bytes"], event["stdin_bytes"]) == (0, 1000, 1000)


def test_each_fault_strikes_the_pipe_of_its_turn_at_its_byte_and_is_healed(seen: dict[str, Seen]):
    """The agent sees what the fault means; it is proved; the last turn's tool is well again."""
    history, row = seen["struck"]
    assert row["verdict"] == "pass"
    assert answers(history) == [*(" ".join(sees.split()) for sees in STRUCK), "1000 bytes, silence, exit 0"]
    fired = of(history, "fault_fired")
    assert [(event["link"], event["turn"], event["bytes"]) for event in fired] == [
        ("ipc:tool", turn, at.get("byte", 0)) for turn, (_, at) in enumerate(STRUCK.values(), 1)
    ]
    assert len(of(history, "fault_armed")) == len(of(history, "fault_healed")) == len(STRUCK)
    assert of(history, "trouble") == []


def test_a_reset_pipe_is_a_killed_tool(seen: dict[str, Seen]):
    """So many bytes, then the end and death by SIGKILL; the next turn's tool is well."""
    history, row = seen["reset"]
    assert row["verdict"] == "pass"
    assert answers(history) == ["123 bytes, the end, exit -9", "1000 bytes, silence, exit 0"]
    (fired,) = of(history, "fault_fired")
    assert (fired["bytes"], of(history, "trouble")) == (123, [])


def test_a_pipe_that_the_agent_never_opens_decides_nothing(seen: dict[str, Seen]):
    """The fault never fired: inconclusive, neither passed nor failed."""
    history, row = seen["other"]
    assert row["verdict"] == "inconclusive"
    assert "the fault never fired: stall on ipc:other" in row["said"]
    assert of(history, "fault_fired") == []


def test_a_fault_can_meet_a_later_pipe_of_a_turn_only(seen: dict[str, Seen]):
    """`attempt: 2` spares the first pipe of its name, and this agent opens one a turn."""
    history, row = seen["later"]
    assert row["verdict"] == "inconclusive"
    assert of(history, "fault_fired") == []


def test_without_the_harness_around_it_the_executable_is_the_command(play: Tell):
    """An agent that passes not even HOME on gets its tool all the same, and no pipe is seen."""
    ((history, row),) = play({"bare": {}}, tool=["env", "-i", *TOOL]).values()
    assert row["verdict"] == "pass"
    assert answers(history) == ["1000 bytes, silence, exit 0"] * 2
    assert of(history, "pipe_opened") == []
