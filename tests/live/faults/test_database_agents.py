"""Agents whose session is a SQLite database that another process locks: each bug of them has its name."""

import json
import sys
from pathlib import Path
from shutil import copy
from typing import Any

import pytest
import yaml

from tests.live.conftest import PLAIN_HTTP
from tests.live.together import JOBS

HERE = Path(__file__).parent
SOUND = ("waits", "logs", "retries", "warns", "hurries")
RED = {
    ("database-locked-for-a-moment", "silent"): ("error_surfaced",),
    ("database-locked-in-mid-turn", "silent"): ("error_surfaced",),
    ("database-locked-for-a-moment", "forgets"): ("memory_loss_told",),
    ("database-locked-in-mid-turn", "forgets"): ("memory_loss_told",),
    ("database-locked-in-mid-turn", "patient"): ("turn_deadline",),
}


@pytest.mark.skipif(sys.platform == "win32", reason="locks of POSIX")
def test_a_lock_is_waited_for_or_told(wedgehog: Any, tmp_path: Path):
    """To wait, to try again, to answer with a warning and to give up with an error are all correct."""
    words = []
    for file in (HERE / "database_agents.py", PLAIN_HTTP):
        copy(file, tmp_path)
    for name in (*SOUND, "silent", "forgets", "patient"):
        command = ["{python}", "{here}/database_agents.py", name, "{llm_url}", "{session_dir}", "{message}"]
        spec = {"name": name, "wire": "anthropic", "command": command, "recover_s": 0, "limits": {"turn_s": 12}}
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(spec))
        words += ["--agent", f"{name}.yaml"]
    wedgehog("run", "database-locked-for-a-moment", "database-locked-in-mid-turn", *words, "--network=embedded", JOBS)
    found = {}
    for file in (tmp_path / "runs" / "latest").glob("*/*/verdicts.json"):
        told = json.loads(file.read_text())
        found[told["scenario"], told["agent"]] = tuple(told["violated"]) or (told["verdict"],)
    assert {of: violated for of, violated in found.items() if violated != ("pass",)} == RED
