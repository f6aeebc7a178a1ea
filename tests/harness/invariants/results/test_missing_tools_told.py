"""Where a tool server can not be reached, the user or the model hears that its tools are missing."""

from collections.abc import Sequence

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.service import ToolAsked
from wedgehog.harness.testing import HistoryBuilder

SHELL, BOTH = ("bash",), ("bash", "weather")


def _status(
    *,
    asked: str = "",
    says: str = "",
    link: str = "tool:mcp",
    offers: Sequence[str] = SHELL,
    later: Sequence[str] = BOTH,
    notices: Sequence[str] | None = (),
    usual: Sequence[str] | None = (),
) -> str:
    """A fault strikes a tool server in the first turn; the second one is healthy."""
    tell = HistoryBuilder()
    tell.message()
    struck = {"fault": 0, "name": "refuse", "turn": 1, "step": 0, "attempt": 0, "call": None, "proof": "port"}
    tell.add(FaultFired(link=link, **struck))
    tell.reply(tell.ask(1, tools=offers, tool_notices=notices), f"Done {tell.nonce}")
    tell.end(f"Done {tell.nonce}", error=says)
    tell.message()
    tell.reply(tell.ask(1, tools=later, tool_notices=usual), f"Done {tell.nonce}")
    if asked:
        tell.add(ToolAsked(tool=asked, token="", server=7))
    return check("missing_tools_told", tell.end().seal()).status


def test_a_turn_that_lacks_tools_without_a_word_is_red():
    """The model answers as if it had used them."""
    assert _status() == "fail"


@pytest.mark.parametrize(
    "says",
    [
        "MCP server 'weather' failed: connection refused",
        "1 tool is not available",
        "MCP issues detected. Run /mcp list for status.",
        "ERROR rmcp::transport::worker: worker quit with fatal: Transport channel closed",
        "Werkzeug fehlt für Wetter",
    ],
)
def test_any_words_about_missing_tools_in_the_output_are_enough(says: str):
    """Those of another language may say it too."""
    assert _status(says=says) == "pass"


def test_the_model_may_be_told_in_place_of_the_user():
    """But words that its requests always have tell nothing."""
    assert _status(notices=("a", "b"), usual=("a",)) == "pass"
    assert _status(notices=("a",), usual=("a",)) == "fail"


def test_a_turn_with_all_its_tools_is_not_judged():
    """Nor one of an agent that never has more, a fault elsewhere, or a history without what its requests say."""
    assert _status(offers=BOTH) == "nothing"
    assert _status(later=SHELL) == "nothing"
    assert _status(link="llm") == "nothing"
    assert _status(notices=None) == "nothing"


def test_another_server_may_change_its_tools_meanwhile():
    """What is known of our host's tools are those that were called: they were there in the turn with the fault."""
    more = ("bash", "mcp__host__weather", "mcp__other__news")
    assert _status(offers=more[:2], later=more, asked="weather") == "nothing"
    assert _status(offers=SHELL, later=more, asked="weather") == "fail"
    assert _status(offers=more[:2], later=more) == "fail"
