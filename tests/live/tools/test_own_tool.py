"""An agent without a shell plays the scenarios that need no more than a tool call, with a tool of its own."""

from pathlib import Path

import pytest

from tests.live.together import entry, play
from wedgehog.harness.campaign.options import Options
from wedgehog.harness.record.judgement import Judgement

AGENTS = Path(__file__).with_name("order_agents.py")
OWN = "own_tool: {name: look_up_order, args: {order: '{n}'}}\n"
PLANTED = {
    "endless-tool-calls": ("has_no_limit", "tool_round_bound"),
    "many-tools-at-once": ("sends_one_result", "tool_call_pairing"),
    "server-error-after-tool-always": ("stores_a_call_alone", "tool_call_pairing"),
}
OTHERS = ("nothing-fails", "stall-after-tool", "unknown-tool", "many-rounds-of-tools")
NOT_FOR_IT = ("command-fails", "abort-in-mid-tool")


def _spec(folder: Path, agent: str, own: str = OWN) -> Path:
    path = folder / f"{agent}{'' if own else '-without'}.yaml"
    path.write_text(f"name: {path.stem}\nwire: anthropic\ncallable: '{AGENTS}:{agent}'\nrecover_s: 0\n{own}")
    return path


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Judgement]:
    """What came of each agent, in virtual time."""
    folder = tmp_path_factory.mktemp("agents")
    sound, without = _spec(folder, "sound"), _spec(folder, "sound", "")
    pairs = [(scenario, sound) for scenario in (*PLANTED, *OTHERS, *NOT_FOR_IT)]
    pairs += [(scenario, without) for scenario in ("nothing-fails", "command-fails")]
    pairs += [(scenario, _spec(folder, agent)) for scenario, (agent, _) in PLANTED.items()]
    return play([entry(*pair) for pair in pairs], Options(folder / "runs", world="sim"))


def test_a_sound_agent_passes(found: dict[tuple[str, str], Judgement]):
    """Also where calls must differ, or several come at once."""
    assert {scenario: found[scenario, "sound"].verdict for scenario in (*PLANTED, *OTHERS)} == dict.fromkeys(
        (*PLANTED, *OTHERS), "pass"
    )


@pytest.mark.parametrize("scenario", PLANTED)
def test_a_bug_behind_a_tool_is_red(found: dict[tuple[str, str], Judgement], scenario: str):
    """Each was skipped before, as the agent has no shell."""
    agent, invariant = PLANTED[scenario]
    assert invariant in found[scenario, agent].violated


def test_what_a_command_does_needs_a_shell(found: dict[tuple[str, str], Judgement]):
    """An exit code, and a moment at which a command runs."""
    for scenario in NOT_FOR_IT:
        assert found[scenario, "sound"].skipped == "the agent advertises no tool shell"


def test_a_skipped_scenario_says_that_a_tool_of_its_own_would_do(found: dict[tuple[str, str], Judgement]):
    """Where it would."""
    hint = "; one of its own would do (own_tool)"
    assert found["nothing-fails", "sound-without"].skipped == f"the agent advertises no tool shell{hint}"
    assert found["command-fails", "sound-without"].skipped == "the agent advertises no tool shell"
