"""The judgement of a run that was not played, or whose control run failed."""

from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.scenario.expect import expected_words
from wedgehog.harness.scenario.model import Scenario


def unplayed(scenario: Scenario, agent: AgentSpec, network: str, *, skipped: str = "", failed: str = "") -> Judgement:
    """Why the scenario was `skipped`, or how the control run `failed`, which is an error."""
    expect = scenario.expect.get(agent.name)
    return Judgement(
        scenario=scenario.name,
        agent=agent.name,
        network=network,
        verdict="nothing" if skipped else "error",
        expected=expected_words(expect),
        as_expected=None if skipped or expect is None else False,
        says=f"skipped: {skipped}" if skipped else f"its control run failed: {failed}",
        skipped=skipped,
        level=agent.level,
    )
