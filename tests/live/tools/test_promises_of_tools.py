"""What becomes of tool calls in the background and through kills, with real shells and real agents."""

import re
from typing import Any

import pytest

ANSWER = {"text": "It went well. {nonce}"}
AND = {"user": "And?", "model": [[{"text": "Yes. {nonce}"}]]}


def runs(command: str, *more: Any) -> dict[str, Any]:
    """A story in which the model asks for one command."""
    turn = {"user": "Run it.", "model": [{"tool": "shell", "args": {"command": command}}, ANSWER]}
    return {"turns": [turn, *more]}


def test_a_job_that_holds_its_shells_output_holds_an_agent_that_reads_it_to_its_end(sound: Any):
    """The same job without it does not; one that is over at once says nothing; the beacon is the job's own."""
    played = sound(
        "command",
        "--network=embedded",
        held=runs("sleep 9 &"),
        free=runs("sleep 9 > /dev/null 2>&1 &"),
        short=runs("sleep 0.3 &"),
        front=runs("sleep 3"),
    )
    assert {name: it.row["violated"] for name, it in played.items()} == {
        "held": "background_returns",
        "free": "",
        "short": "",
        "front": "",
    }
    assert re.search(r"did not come back in (8\.[5-9]|9\.\d|1\d\.\d) s", played["held"].says)
    started, done = played["held"].beacons
    assert (started.background, done.phase) == (True, "done") and 8.8 < done.at_s - started.at_s < 15
    carried = [call for call in played["free"].history.calls if call.arrived.results]
    assert carried[0].arrived.results[0].token == "1.1.1" and carried[0].at_s < started.at_s + 8


def kill(name: str, at: dict[str, Any], command: str = "true") -> dict[str, Any]:
    return runs(command, AND) | {
        "faults": [{"link": "agent", "at": at, "do": "kill"}],
        "invariants": {name: {}},
    }


@pytest.mark.parametrize("forgets", [False, True])
def test_a_result_that_was_sent_survives_a_kill_or_is_missed(sound: Any, unsound: dict[str, str], forgets: bool):
    """An agent that drops tool results when it loads its session is found out, and the sound one is not."""
    if forgets:
        unsound["yield json.loads(line)"] = FORGETFUL
    story = kill("result_durable", {"step": 2, "phase": "headers"})
    sent = sound("command", "--network=embedded", sent=story)["sent"]
    assert sent.row["violated"] == ("result_durable" if forgets else ""), sent.says
    assert ("does not carry the result of tool call 1.1.1 (sent before the kill)" in sent.says) is forgets


FORGETFUL = """message = json.loads(line)
                    parts = message["content"] if isinstance(message["content"], list) else []
                    for part in parts:
                        if part["type"] == "tool_result":
                            part.update(content=LOST, is_error=True)
                    yield message"""


def test_an_agent_that_runs_a_dangling_call_again_after_a_kill_is_found_out(sound: Any, unsound: dict[str, str]):
    """The sound one calls it lost."""
    at = {"tool": 1, "when": "started"}
    good = sound("command", "--network=embedded", again=kill("at_most_once_tools", at, "sleep 0.5"))["again"]
    assert good.row["violated"] == "", good.says
    unsound["[result(call, LOST, error=True) for"] = "[run(call) for"
    bad = sound("command", "--network=embedded", again=kill("at_most_once_tools", at, "sleep 0.5"))["again"]
    assert bad.row["violated"] == "at_most_once_tools", bad.says
    assert "ran twice" in bad.says and "with a kill of the agent in between" in bad.says
