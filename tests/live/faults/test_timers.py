"""Agents whose timers are known, measured from outside."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.live.conftest import PLAIN_HTTP
from wedgehog.harness.agents.spec import load_spec
from wedgehog.harness.commands.timers.chain import Measured, findings, lines
from wedgehog.harness.commands.timers.take import NotMeasuredError, ProbeOptions, take

HEAD = """\
import json, os, sys, threading, time
from plain_http import post
url, message = sys.argv[1:]
body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": message}]}

def ask(timeout_s):
    said = ""
    for line in post(url + "/v1/chat/completions", body, {"authorization": "Bearer k"}, timeout_s):
        data = line.decode().removeprefix("data: ").strip()
        if data.startswith("{"):
            said += "".join(choice["delta"].get("content") or "" for choice in json.loads(data)["choices"])
    return said
"""
NESTED = """
def over():
    time.sleep(float(os.environ["TOTAL_S"]))
    print("total timeout", file=sys.stderr, flush=True)
    os._exit(1)

threading.Thread(target=over, daemon=True).start()
for attempt in range(3):
    time.sleep(float(os.environ["BACKOFF_S"]) * attempt)
    try:
        print(ask(float(os.environ["IDLE_S"])))
        sys.exit(0)
    except OSError as wrong:
        print(f"attempt failed: {wrong}", file=sys.stderr, flush=True)
sys.exit(1)
"""
"""A total around three attempts with an idle timer, and longer waits each time; CONNECT_S is never read."""
IMPATIENT = """
answers = []
for attempt in range(2):
    def work():
        try:
            answers.append(ask(6))
        except OSError:
            pass
    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    worker.join(2)
    if answers:
        print(answers[0], flush=True)
        os._exit(0)
print("gave up", file=sys.stderr, flush=True)
os._exit(1)
"""
"""Waits 2 s for an attempt, whose own timer is of 6 s, and makes a second one beside it."""


async def measured(tmp_path: Path, code: str, look_out_s: float, *words: str) -> Measured:
    """Written, and measured through the embedded network."""
    (tmp_path / "agent.py").write_text(HEAD + code)
    shutil.copy(PLAIN_HTTP, tmp_path)
    command = 'command: ["{python}", "-S", "-E", "{here}/agent.py", "{llm_url}", "{message}"]'
    (tmp_path / "a.yaml").write_text("\n".join(("name: a", "wire: openai-chat", command, *words)))
    return await take(load_spec(tmp_path / "a.yaml"), ProbeOptions(look_out_s, jobs=8), lambda line: None)


def near(found: float | None, s: float) -> bool:
    """On a machine that is busy with other things; a timer that began before its request arrived seems shorter."""
    return found is not None and s - 0.8 <= found <= s + 1.5


DEAD = "knob 'connect' has no effect: turned from 4 to 2 s, total, connect, refused, upload, headers"
TRIES = 3


async def test_a_total_around_attempts_with_an_idle_timer_and_a_dead_knob(tmp_path: Path):
    """Each timer is measured; one that nothing reads is named, and one that outlives its outer one.

    On a busy machine a timer seems to move between two probes: then all are measured again.
    """
    for _ in range(TRIES):
        it = await measured(
            tmp_path,
            NESTED,
            9,
            'env: {TOTAL_S: "5", IDLE_S: "{idle_s}", BACKOFF_S: "{backoff_s}", CONNECT_S: "{connect_s}"}',
            "timeouts:",
            "  - {name: total, s: 5, says: total timeout}",
            "  - {name: idle, s: 2, inside: total}",
            "  - {name: backoff, s: 0.5}",
            "  - {name: connect, s: 4, inside: idle}",
        )
        said = "\n".join([*lines(it), *(f"! {found}" for found in findings(it))])
        if DEAD in said:
            break
    assert near(it.total_s, 5), said
    for name in ("headers", "body", "idle", *(("connect",) if sys.platform == "linux" else ())):
        probe = it.of(name)
        assert probe and near(probe.first_s, 2) and len(probe.attempts) >= 2 and near(probe.total_s, 5), said
    pings, refused = it.of("pings"), it.of("500")
    assert pings and len(pings.attempts) == 1 and near(pings.total_s, 5), said
    assert refused and len(refused.attempts) == 3 and refused.waits_s[0] >= 0.4 and refused.waits_s[1] >= 0.9, said
    assert DEAD in said
    assert "! knob 'idle'" not in said and "! knob 'backoff'" not in said, said
    assert [line for line in lines(it) if line.startswith("knob 'backoff'") and line.endswith("429, 500")], said
    assert "'connect' (4 s) outlives 'idle' (2 s), which contains it: it can never fire" in said


async def test_a_retry_beside_a_request_that_is_still_open_is_seen(tmp_path: Path):
    """Whoever stops waiting for a request has not ended it: its own timer outlives the wait."""
    it = await measured(tmp_path, IMPATIENT, 8)
    headers = it.of("headers")
    assert headers and len(headers.attempts) == 2 and headers.overlaps
    assert any(found.startswith("headers: the next attempt began while") for found in findings(it))


async def test_an_agent_without_a_timer_has_no_end(tmp_path: Path):
    """Said for each stall, and nothing is made up."""
    it = await measured(tmp_path, "print(ask(None))", 3)
    assert it.total_s is None
    assert "no end within 3 s: total, " in next(findings(it))
    assert all(it.of(name) and it.of(name).total_s is None for name in ("headers", "body", "idle", "pings"))  # type: ignore[union-attr]


async def test_an_agent_that_does_not_run_is_one_line(tmp_path: Path):
    """As its control run says it."""
    with pytest.raises(NotMeasuredError, match="its control run failed: no request for the model arrived"):
        await measured(tmp_path, "print('hello')", 2)
