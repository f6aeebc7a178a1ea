"""An agent whose runs vary by chance: its turns take about 1.5 s, some ask twice, and some of one scenario fail."""

import json
import os
import random
import time
import urllib.request
from pathlib import Path

WORK_S = 1.5
SPREAD = 0.08
TWICE = 0.3
"""How often a turn asks once more."""
FAILS = 0.5
"""How often it gives no answer to a message about a shrew, after some calls more."""
SLOWER = float(os.environ.get("SLOWER", "1"))
"""By which factor it works longer on a message about a fox."""
DRAW = random.SystemRandom()


def answer(message: str, *, session_dir: Path, llm_url: str, key: str) -> str:
    """The model's text; nothing where it fails."""
    fails = "shrew" in message and DRAW.random() < FAILS
    calls = DRAW.randint(2, 12) if fails else 1 + (DRAW.random() < TWICE)
    for _ in range(calls):
        text = _ask(message, llm_url, key)
    time.sleep(WORK_S * (SLOWER if "fox" in message else 1) * DRAW.lognormvariate(0, SPREAD))
    return "" if fails else text


def _ask(message: str, llm_url: str, key: str) -> str:
    body = {"model": "claude-sonnet-4-6", "max_tokens": 500, "messages": [{"role": "user", "content": message}]}
    headers = {"x-api-key": key, "anthropic-version": "2023-06-01", "content-type": "application/json"}
    asked = urllib.request.Request(f"{llm_url}/v1/messages", json.dumps(body).encode(), headers)  # noqa: S310  the harness's own address
    with urllib.request.urlopen(asked, timeout=20) as reply:  # noqa: S310  the same
        text: str = json.load(reply)["content"][0]["text"]
    return text
