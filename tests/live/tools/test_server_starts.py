"""Agents whose tool server over stdio dies whenever it starts: one tries a few times, one fills the machine."""

import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.live.conftest import PLAIN_HTTP

HERE = Path(__file__).parent
SERVER, END, OFFERED = "server = Server(command)", "server.end()", "ask(messages, server.tools)"
STARTED = '''
def started(command: str) -> Server | None:
    """The server; None if it died each time."""
    for pause_s in {pauses}:
        try:
            return Server(command)
        except OSError:
            sleep(pause_s)
    return None


def main('''
PAUSES = {"waits": "(0.2, 0.4, 0.8)", "storms": "[0.0] * 20"}
"""Seconds before each further start."""
SCENARIO: dict[str, Any] = {
    "tools": {"weather": {"says": "The weather", "input": {"city": "string"}, "answer": "21 °C"}},
    "turns": [{"user": "What is a hedgehog?", "model": [{"text": "A small animal. {nonce}"}]}],
    "faults": [{"link": "ipc:mcp", "at": {"turn": 1, "phase": "request"}, "times": 1000, "do": {"cut": "rst"}}],
    "invariants": {"server_start_bound": {"starts_in_20_s": 5}},
}
"""With a bound that a busy machine reaches too."""


def written(folder: Path, name: str) -> str:
    """The spec of an agent that waits so before it starts its server anew."""
    code = (HERE / "toolsmith.py").read_text()
    for old, new in (
        ("import sys\n", "import sys\nfrom time import sleep\n"),
        ("\ndef main(", STARTED.format(pauses=PAUSES[name])),
        (SERVER, "server = started(command)"),
        (OFFERED, "ask(messages, server.tools if server else [])"),
        (END, "server and server.end()"),
        ('"tools": offered}', '**({"tools": offered} if offered else {})}'),
    ):
        assert code.count(old) == 1, old
        code = code.replace(old, new)
    (folder / f"{name}.py").write_text(code)
    spec = (HERE / "toolsmith.yaml").read_text()
    (folder / f"{name}.yaml").write_text(spec.replace("toolsmith", name).replace("turn_s: 30", "turn_s: 120"))
    return str(folder / f"{name}.yaml")


def test_a_server_that_dies_at_each_start_is_not_started_for_ever(wedgehog: Any, told: Any, tmp_path: Path):
    """Both agents answer without its tools."""
    pytest.importorskip("mcp")
    shutil.copy(PLAIN_HTTP, tmp_path)
    shutil.copytree(HERE / "light", tmp_path / "light")
    agents = [word for name in PAUSES for word in ("--agent", written(tmp_path, name))]
    wedgehog("run", told("starts", **SCENARIO), *agents, "--network=embedded", "--out", str(tmp_path / "runs"))
    rows = pd.read_csv(tmp_path / "runs" / "latest" / "summary.csv", keep_default_na=False).itertuples()
    found = {row.agent: (row.verdict, row.violated) for row in rows}
    assert found == {"waits": ("pass", ""), "storms": ("fail", "server_start_bound")}
