"""An agent that fails behind a tool without any fault is red in one scenario; the others are skipped, and say why."""

from pathlib import Path

import pytest

from tests.live.together import entry, play
from wedgehog.harness.campaign.options import Options
from wedgehog.harness.record.judgement import Judgement

AGENTS = Path(__file__).with_name("tool_turn_agents.py")
SCENARIOS = ("nothing-fails", "command-fails")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Judgement]:
    """What came of each agent, in virtual time."""
    folder = tmp_path_factory.mktemp("agents")
    functions = [
        line.split("(")[0].removeprefix("async def ")
        for line in AGENTS.read_text().splitlines()
        if line.startswith("async def ") and not line.startswith("async def _")
    ]
    for name in functions:
        words = f"name: {name}\nwire: anthropic\ncallable: '{AGENTS}:{name}'\nrecover_s: 0\n"
        (folder / f"{name}.yaml").write_text(words)
    entries = [entry(scenario, folder / f"{name}.yaml") for name in functions for scenario in SCENARIOS]
    return play(entries, Options(folder / "runs", world="sim"))


def test_an_agent_that_works_passes(found: dict[tuple[str, str], Judgement]):
    """And the other scenarios with tools are played."""
    assert {found[scenario, "sound"].verdict for scenario in SCENARIOS} == {"pass"}


@pytest.mark.parametrize(
    ("agent", "violated", "how"),
    [
        ("ends_without_a_word", "error_surfaced", "it ended without a word"),
        ("waits_for_ever", "turn_deadline", "it did not end"),
        ("forgets_the_result", "paid_call_bound", "the model was asked 25 times, and no request held a result"),
    ],
)
def test_each_failure_has_its_name(found: dict[tuple[str, str], Judgement], agent: str, violated: str, how: str):
    """Once: a scenario about a fault of a tool could not tell it from this failure."""
    shown, skipped = (found[scenario, agent] for scenario in SCENARIOS)
    assert (shown.verdict, violated in shown.violated, skipped.verdict) == ("fail", True, "nothing"), shown
    says = f"in its control run its turn with a tool failed, though nothing had gone wrong: {how}"
    assert says in skipped.skipped


@pytest.mark.parametrize("agent", ["asks_for_leave", "tells_why_in_its_log", "tells_in_its_own_words"])
def test_what_may_be_its_design_is_not_judged(found: dict[tuple[str, str], Judgement], agent: str):
    """A question to the user, a reason in the log, or a result in words that nothing here knows."""
    for scenario in SCENARIOS:
        judged = found[scenario, agent]
        assert (judged.verdict, "no request carried its result" in judged.skipped) == ("nothing", True), judged
