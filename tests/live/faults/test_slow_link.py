"""An agent that gives up before a slow link has delivered anything is as red as under silence."""

import json
from pathlib import Path
from typing import Any

from wedgehog.harness.record.events.call import HungUp, ReplyEnded
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.history import read

HASTY = """\
import json, os, sys
from plain_http import post
url, session, message = sys.argv[1:4]
body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": message}]}
headers = {"x-api-key": os.environ["KEY"], "anthropic-version": "2023-06-01"}
for attempt in range(12):
    try:
        print(json.loads(post(url + "/v1/messages", body, headers, timeout_s=0.5).read())["content"][0]["text"])
        break
    except OSError as wrong:
        said = wrong
else:
    sys.exit(f"Error: {said}")
"""


FAULTS: dict[str, dict[str, Any]] = {"latency": {"latency": 60}, "stall": {"stall": "forever"}}


def test_twelve_attempts_of_which_nothing_arrives_are_too_many(
    wedgehog: Any, told: Any, agent: Any, network: str, tmp_path: Path
):
    """Nothing is delivered, and every attempt ends in a hang-up. Both faults are one campaign, which mostly waits."""
    stories = [told(name, faults=[{"do": do, "times": "always"}]) for name, do in FAULTS.items()]
    ran = wedgehog("run", *stories, "--agent", agent(code=HASTY), network)
    assert ran.returncode == 1 and "paid_call_bound" in ran.stdout, ran.stderr + ran.stdout
    struck = range(1, 13)
    for name in FAULTS:
        folder = tmp_path / "runs" / "latest" / name / "mine"
        assert "paid_call_bound" in json.loads((folder / "verdicts.json").read_text())["violated"], name
        history = read(folder / "history.jsonl")
        replies = [(it.tokens_delivered, it.bytes_delivered) for it in history.of(ReplyEnded) if it.call in struck]
        assert replies == [(0, 0)] * 12, name
        assert [it.call for it in history.of(HungUp) if it.call in struck] == list(struck), name
        assert {it.call for it in history.of(FaultFired)} <= set(struck) and history.first(FaultFired), name
