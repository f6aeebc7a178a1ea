"""An agent that removes a stopped call, and not the thought before it, cannot go on."""

import csv
import json
from pathlib import Path
from typing import Any

AGENT = Path(__file__).with_name("reasoning_items.py")
STOPPED, SOUND = "abort-of-a-call-behind-a-thought", "thoughts-before-a-tool"


def test_a_thought_without_its_call_is_red(wedgehog: Any, tmp_path: Path):
    """In virtual time; with the call and its thought both gone, or both there, it passes."""
    words = []
    for removes in ("nothing", "both", "call"):
        command = ["{python}", str(AGENT), removes, "{llm_url}", "{session_dir}", "{message}"]
        spec = {"name": removes, "wire": "openai-responses", "command": command, "simulate": f"{AGENT}:simulate"}
        (tmp_path / f"{removes}.yaml").write_text(json.dumps({**spec, "recover_s": 0}))
        words += ["--agent", f"{removes}.yaml"]
    ran = wedgehog("run", STOPPED, SOUND, *words, "--world", "sim")
    with (tmp_path / "runs" / "latest" / "summary.csv").open(newline="") as file:
        found = {(row["scenario"], row["agent"]): row["violated"].split(";") for row in csv.DictReader(file)}
    red = found.pop((STOPPED, "call"))
    assert {"thoughts_kept", "session_recovers"} <= set(red), ran.stdout + ran.stderr
    assert set(map(tuple, found.values())) == {("",)}, ran.stdout + ran.stderr
