"""The fake model of one run: where a request stands in the scenario, and what the script says there."""

from collections.abc import Mapping

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.reply import Reply
from wedgehog.fake_llm.script.calls_in_text import CallsInText
from wedgehog.fake_llm.script.position import Positions
from wedgehog.fake_llm.script.results_in_text import ResultsInText
from wedgehog.fake_llm.script.script_file import conversation_of
from wedgehog.fake_llm.script.turns import Beacon, FinishCall, ScriptedTurn, TurnScript
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.run.control import shape_in
from wedgehog.harness.run.job import Job


def positions_of(job: Job, salt: str) -> Positions:
    """Finds the position of each request, by what the control run showed; `salt` begins the tokens of tool calls."""
    control, calls = job.control, job.agent.calls_in_text

    def declared(conversation: Conversation) -> str:
        found = conversation_of(job.scenario.conversations, conversation)
        return found.name if found is not None else ""

    return Positions(
        salt,
        shape_in(job.scenario, control) if control else None,
        declared,
        ResultsInText.of(calls, control.frame if control else None) if calls else None,
        results_as_words=control is not None and control.results_in_text,
        never_aside=control is not None and not control.background,
    )


def script_of(
    job: Job,
    positions: Positions,
    turns: Mapping[int, ScriptedTurn],
    conversations: Mapping[str, tuple[Reply, ...]],
    values: Mapping[str, str],
    beacon: Beacon,
) -> TurnScript:
    """The script of a run, as its agent's model writes it. A control run may change `turns` while it is played."""
    calls = job.agent.calls_in_text
    return TurnScript(
        positions,
        turns,
        values,
        beacon,
        nonce_per_call=job.control is None,
        conversations=conversations,
        finish=_finish(job.agent),
        calls_in_text=CallsInText(calls) if calls else None,
    )


def _finish(spec: AgentSpec) -> FinishCall | None:
    """How the model ends a turn by a tool call, if the spec says so."""
    finish = spec.finish
    return FinishCall(finish.tool, finish.arg, finish.text, finish.chosen) if finish else None
