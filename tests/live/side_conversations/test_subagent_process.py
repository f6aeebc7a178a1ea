"""A subagent with a process of its own dies, and its parent must see that."""

import json
from pathlib import Path
from typing import Any

import yaml

from tests.live.together import JOBS

AGENT = Path(__file__).with_name("subagent_process.py")
STORY = "subagent-process-dies"


def test_the_end_of_a_subagents_process_is_seen_by_its_parent(wedgehog: Any, tmp_path: Path):
    """One that polls a file waits for ever, and so does one that reads an output which a helper holds open.

    One that reads what was printed believes in an empty success.

    Where subagents have no process, nothing can be killed, and the scenario is skipped.
    """
    words = []
    for how in ("sound", "again", "looks", "in-one", "polls", "reads-on", "believes"):
        line = ["{python}", "-S", "-E", str(AGENT), how, "{llm_url}", "{session_dir}", "{message}"]
        spec = {"name": how, "wire": "anthropic", "command": line, "recover_s": 0, "limits": {"turn_s": 15}}
        (tmp_path / f"{how}.yaml").write_text(yaml.safe_dump(spec))
        words += ["--agent", f"{how}.yaml"]
    done = wedgehog("run", STORY, *words, "--network", "embedded", JOBS)
    assert done.returncode == 1, done.stdout + done.stderr
    told = [json.loads(it.read_text()) for it in (tmp_path / "runs" / "latest").glob(f"{STORY}/*/verdicts.json")]
    assert {it["agent"]: (it["verdict"], it["violated"]) for it in told} == {
        "sound": ("pass", []),
        "again": ("pass", []),
        "looks": ("pass", []),
        "in-one": ("nothing", []),
        "polls": ("fail", ["turn_deadline"]),
        "reads-on": ("fail", ["turn_deadline"]),
        "believes": ("fail", ["subagent_failure_told"]),
    }
