"""Pipes in whole runs: an agent whose tool stands behind `wedgehog-pipe` meets the faults that its scenario names."""

import json
from pathlib import Path
from typing import Any

import pytest

AGENT = '''\
"""Asks its tool once over stdio, waits two seconds for it at most, then asks the model with what it got."""
import json, os, select, subprocess, sys, urllib.request
url, session, message, *tool = sys.argv[1:]
washed = {"HOME": os.environ["HOME"], "PATH": os.environ["PATH"]}  # as an MCP client does it
got, how = b"", "silence"
if tool:
    process = subprocess.Popen(tool, env=washed, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    process.stdin.write(b"x" * 1000)
    while len(got) < 1000 and select.select([process.stdout], [], [], 2)[0]:
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
request = urllib.request.Request(url + "/v1/messages", json.dumps(body).encode(), {
    "content-type": "application/json", "x-api-key": os.environ["KEY"], "anthropic-version": "2023-06-01"})
answer = json.load(urllib.request.urlopen(request, timeout=100))["content"][0]["text"]
json.dump([*talk, {"role": "assistant", "content": answer}], open(path, "w"))
print(answer, f"[{len(got)} bytes, {how}]")
'''
TOOL = ["{pipe}", "--name", "tool", "--", "cat"]


@pytest.fixture
def play(wedgehog: Any, told: Any, agent: Any, network: str, tmp_path: Path) -> Any:
    """Plays one story with such an agent; its history and the command's result."""

    def played(*faults: Any, tool: list[str] = TOOL, **words: Any) -> tuple[list[dict[str, Any]], Any]:
        command = ["{python}", "-S", "-E", "{here}/mine.py", "{llm_url}", "{session_dir}", "{message}", *tool]
        spec = agent("mine", AGENT, command=command, session_files=[])
        ran = wedgehog("run", told("story", faults=list(faults), **words), "--agent", spec, network)
        path = (tmp_path / "runs" / "latest").resolve() / "story" / "mine" / "history.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()], ran

    return played


def of(history: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Events of one kind."""
    return [event for event in history if event["event"] == kind]


def answers(history: list[dict[str, Any]]) -> list[str]:
    """What the agent said of its tool in each turn."""
    return [event["answer"].partition("[")[2].rstrip("]\n") for event in of(history, "turn_ended")]


def test_a_pipe_without_a_fault_is_told_with_its_bytes(play: Any):
    """Opened and closed, so many bytes each way, in every turn."""
    history, ran = play()
    assert ran.returncode == 0, ran.stderr
    assert answers(history) == ["1000 bytes, silence, exit 0"] * 2
    opened, closed = of(history, "pipe_opened"), of(history, "pipe_closed")
    assert [event["name"] for event in opened] == ["tool", "tool"] and opened[0]["child"] != opened[0]["pid"]
    for event in closed:
        assert (event["exit_code"], event["stdout_bytes"], event["stdin_bytes"]) == (0, 1000, 1000)


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


def test_each_fault_strikes_the_pipe_of_its_turn_at_its_byte_and_is_healed(play: Any):
    """The agent sees what the fault means; it is proved; the last turn's tool is well again."""
    faults = [
        {"link": "ipc:tool", "at": {"turn": turn, **at}, "do": do} for turn, (do, at) in enumerate(STRUCK.values(), 1)
    ]
    turns = [{"user": "Go on.", "model": [{"text": "Done {nonce}"}]} for _ in faults]
    history, ran = play(*faults, turns=turns)
    assert ran.returncode == 0, ran.stderr
    assert answers(history) == [*(" ".join(sees.split()) for sees in STRUCK), "1000 bytes, silence, exit 0"]
    fired = of(history, "fault_fired")
    assert [(event["link"], event["turn"], event["bytes"]) for event in fired] == [
        ("ipc:tool", turn, at.get("byte", 0)) for turn, (_, at) in enumerate(STRUCK.values(), 1)
    ]
    assert len(of(history, "fault_armed")) == len(of(history, "fault_healed")) == len(STRUCK)
    assert of(history, "trouble") == []


def test_a_reset_pipe_is_a_killed_tool(play: Any):
    """So many bytes, then the end and death by SIGKILL; the next turn's tool is well."""
    history, ran = play({"link": "ipc:tool", "at": {"byte": 123}, "do": {"cut": "rst"}})
    assert ran.returncode == 0, ran.stderr
    assert answers(history) == ["123 bytes, the end, exit -9", "1000 bytes, silence, exit 0"]
    (fired,) = of(history, "fault_fired")
    assert (fired["bytes"], of(history, "trouble")) == (123, [])


def test_a_pipe_that_the_agent_never_opens_decides_nothing(play: Any):
    """The fault never fired: inconclusive, neither passed nor failed."""
    history, ran = play({"link": "ipc:other", "at": {"byte": 1}, "do": "stall"})
    assert ran.returncode == 3, ran.stderr
    assert "the fault never fired" in ran.stdout + ran.stderr
    assert of(history, "fault_fired") == []


def test_a_fault_can_meet_a_later_pipe_of_a_turn_only(play: Any):
    """`attempt: 2` spares the first pipe of its name, and this agent opens one a turn."""
    history, ran = play({"link": "ipc:tool", "at": {"attempt": 2, "byte": 1}, "do": "cut"})
    assert ran.returncode == 3, ran.stderr
    assert of(history, "fault_fired") == []


def test_without_the_harness_around_it_the_executable_is_the_command(play: Any, tmp_path: Path):
    """An agent that passes not even HOME on gets its tool all the same, and no pipe is seen."""
    history, ran = play(tool=["env", "-i", *TOOL])
    assert ran.returncode == 0, ran.stderr
    assert answers(history) == ["1000 bytes, silence, exit 0"] * 2
    assert of(history, "pipe_opened") == []
