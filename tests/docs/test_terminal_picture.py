"""The picture of a terminal in the README shows the words that the tool prints today."""

import html
import re
from pathlib import Path


def test_money_is_called_simulated_in_the_picture(docs: Path):
    """In the head of each table, and in the last line."""
    svg = (docs / "terminal.svg").read_text(encoding="utf-8")
    words = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", svg)).split())
    heads = re.findall(r"delivered ([a-z. ]+) turn", words)
    assert heads and set(heads) == {"sim. cost"}
    assert re.search(r"\d+ passed, \d+ failed, \d+ skipped ?, simulated cost", words)
