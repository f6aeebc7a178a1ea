"""Whether a spec fits its agent: a text turn, a tool turn and a resume without any fault, and what they showed."""

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.campaign import Campaign, Options
from wedgehog.harness.control import ControlFacts
from wedgehog.harness.history import History, read
from wedgehog.harness.network.choose import Mode
from wedgehog.harness.outcome import outcome_of
from wedgehog.harness.store import Judgement


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked for; what is optional only makes scenarios not apply."""

    ok: bool
    says: str
    optional: bool = False

    @property
    def sign(self) -> str:
        """How a thing that is not there is marked."""
        return "n/a " if self.optional else "MISS"


class _Silent:
    """Nobody watches a run of seconds."""

    def begins(self, what: str) -> None:
        """Nothing."""

    def ended(self, what: str, judgement: Judgement | None) -> None:
        """Nothing."""


async def check(agent: AgentSpec, network: Mode, keep: Path | None = None) -> list[Finding]:
    """Play the agent's control run and tell what it showed. Errors: as a campaign's."""
    with tempfile.TemporaryDirectory() if keep is None else contextlib.nullcontext(str(keep)) as out:
        campaign = Campaign([], Options(Path(out), network), _Silent(), lambda line: None)
        facts = await campaign.control_of(agent)
        history = read(campaign.store.folder / "control" / f"{agent.family}-{agent.name}" / "history.jsonl")
    return list(findings(agent, facts, history))


def findings(agent: AgentSpec, facts: ControlFacts, history: History) -> Iterator[Finding]:
    """What a control run showed, one line each, in words that the spec's author can act on."""
    if not facts.passed:
        yield Finding(False, facts.says)
        return
    first = history.turns[0]
    call = next(call for call in first.calls if call.paid)
    stream = "streamed" if call.arrived.stream else "not streamed"
    yield Finding(True, f"a message was answered: {call.arrived.wire}, {stream}, model {call.arrived.model!r}")
    yield Finding(True, f"its first request came {facts.start_up_s:.1f} s after the message", optional=True)
    yield from _tools(facts, history)
    yield Finding(
        facts.resumes,
        "the next message continued the session"
        if facts.resumes
        else "the session was not continued: the second message's request does not hold the first; is `resume:` right?",
        optional=True,
    )
    yield from _recovery(history)
    background = [call for turn in history.turns for call in turn.calls if not call.main]
    if background or facts.background:
        yield Finding(True, "it makes calls beside the conversation; they are answered and counted apart")
    for refusal in sorted(facts.refusals):
        yield Finding(False, f"the provider refused a request without any fault: {refusal}", optional=True)


def _tools(facts: ControlFacts, history: History) -> Iterator[Finding]:
    names = ", ".join(sorted(facts.tools)) or "none"
    if not facts.shell:
        says = f"no tool that takes a shell command is advertised (tools: {names}): scenarios with tools are skipped"
        yield Finding(False, says, optional=True)
        return
    carried = any(result.token for turn in history.turns[1:] for call in turn.calls for result in call.arrived.results)
    says = f"a shell command was run and its result sent back (tools: {names})"
    missing = f"a shell tool is advertised (tools: {names}), but no request carried the command's result"
    yield Finding(carried, says if carried else missing)


def _recovery(history: History) -> Iterator[Finding]:
    for turn in history.turns[1:]:
        outcome = outcome_of(turn, history)
        if outcome.kind != "answered":
            yield Finding(False, f"message {turn.number} was not answered ({outcome.kind}: {outcome.how})")
