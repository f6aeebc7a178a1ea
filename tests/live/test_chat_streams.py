"""Streams of chat completions in the forms of other services, in virtual time."""

from pathlib import Path
from typing import Any

import pandas as pd

AGENTS = Path(__file__).with_name("chat_streams.py")
LINES, FIELDS = "stream-lines-in-another-form", "stream-with-other-fields"
NAMES = ("sane", "takes_the_last_name", "takes_the_first_choice")
BY_ID = "finds_a_call_by_its_id"


def test_a_reader_of_one_services_chunks_is_red_and_a_correct_one_green(wedgehog: Any, tmp_path: Path):
    """A name that is null, an id that is empty, a chunk without choices; other lines harm neither of them."""
    words = []
    for name in (*NAMES, BY_ID):
        spec = f"name: {name}\nwire: openai-chat\ncallable: '{AGENTS}:{name}'\nrecover_s: 0\n"
        (tmp_path / f"{name}.yaml").write_text(spec)
        words += ["--agent", f"{name}.yaml"]
    wedgehog("run", LINES, FIELDS, *words, "--world", "sim")
    rows = pd.read_csv(tmp_path / "runs" / "latest" / "summary.csv", keep_default_na=False)
    found = {(row.scenario, row.agent): row.violated for row in rows.itertuples()}
    red = {(FIELDS, name): "turn_answered" for name in NAMES[1:]} | {(FIELDS, BY_ID): "whole_call_runs"}
    assert found == {(scenario, name): "" for scenario in (LINES, FIELDS) for name in (*NAMES, BY_ID)} | red
