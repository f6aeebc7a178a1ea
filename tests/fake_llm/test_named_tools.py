"""A tool of the script is the agent's tool of that name, with or without a prefix."""

import pytest

from wedgehog.fake_llm.conversation import ToolSpec
from wedgehog.fake_llm.script.roles import find_named


@pytest.mark.parametrize(
    ("advertised", "found"),
    [
        (["bash", "weather"], "weather"),
        (["mcp__host__weather", "weather"], "weather"),
        (["bash", "mcp__host__weather"], "mcp__host__weather"),
        (["weather_report", "bash"], None),
        ([], None),
    ],
)
def test_the_exact_name_comes_first_then_one_that_ends_so(advertised: list[str], found: str | None):
    """A name that only begins so is another tool."""
    tool = find_named([ToolSpec(name) for name in advertised], "weather")
    assert (tool.name if tool else None) == found
