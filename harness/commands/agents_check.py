"""Check that a spec fits its agent: play a text turn, a tool turn and a resume without faults, and list findings."""

import contextlib
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console

from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.campaign.campaign import Campaign
from wedgehog.harness.campaign.options import Options
from wedgehog.harness.campaign.selection import Entry, stock_folder
from wedgehog.harness.commands.check_hints import noted
from wedgehog.harness.commands.console import CheckFinding, LineProgress
from wedgehog.harness.commands.control_findings import findings
from wedgehog.harness.commands.unended_lines import refused_unended
from wedgehog.harness.network.choose import Mode
from wedgehog.harness.record.history import History, read
from wedgehog.harness.record.turn_outcome import outcome_of, surfaced_by_number
from wedgehog.harness.scenario.scenario_file import load_scenario

REFUSED = "key-refused.yaml"
"""The scenario that shows how the agent reports an error."""
SHOWN, SHORTEST = 80, 6


def _silent(note: str) -> None:
    """Show no notes."""


async def check(
    agent: AgentSpec, network: Mode, keep: Path | None = None, say: Callable[[str], None] = _silent
) -> list[CheckFinding]:
    """Play the agent's control run and return the findings. Raises the errors of a campaign.

    `say` gets a note if the agent does nothing for long.
    """
    with tempfile.TemporaryDirectory() if keep is None else contextlib.nullcontext(str(keep)) as out:
        progress = LineProgress(1, Console(quiet=True))
        campaign = Campaign([], Options(Path(out), network), progress, progress.say)
        async with campaign.opened([agent]) as playing:
            with noted(agent, say, "the answers to its first messages"):
                facts = await playing.control(agent)
            played = campaign.store.folder / "control" / f"{agent.family}-{agent.name}" / "history.jsonl"
            if not played.exists():
                return [CheckFinding(False, facts.says)]
            refused = Entry(load_scenario(stock_folder() / "catalogue" / REFUSED), agent)
            if facts.passed and all(turn.deadline is None for turn in read(played).turns):  # else only one more wait
                with noted(agent, say, "the end of a turn whose key was refused"):
                    await playing.play(refused)
        failed = campaign.store.run_folder(refused.file.scenario.name, agent.name) / "history.jsonl"
        control = read(played)
        said = _after_a_refused_key(agent, control, read(failed)) if failed.exists() else []
        return [*findings(agent, facts, control), *said]


def _after_a_refused_key(agent: AgentSpec, control: History, refused: History) -> list[CheckFinding]:
    return refused_unended(agent, control, refused) or list(unknown_errors(refused))


def unknown_errors(history: History) -> Iterator[CheckFinding]:
    """Yield a pattern for `errors:` if no known pattern fits the agent's words about a refused key."""
    turn = history.turns[0]
    words = turn.end.answer.strip() if turn.end is not None else ""
    hidden, by_number = (outcome_of(turn, history).kind == "hidden", surfaced_by_number(turn, history))
    if not words or not (hidden or by_number):
        return
    first = words.splitlines()[0]
    known = "only its number shows that it is an error" if by_number else "no pattern knows these words as an error"
    says = f"after a refused key it said {first[:SHOWN]!r}, and {known}"
    pattern = pattern_for(first).replace("'", "''")
    yield CheckFinding(False, f"{says}: if they name one, write `errors: ['{pattern}']`", optional=True)


def pattern_for(line: str) -> str:
    """Return a pattern for a line: its first words up to a number or a mark, if they are long enough.

    >>> pattern_for("I could not reach the language model: status 401")
    'I could not reach the language model'
    """
    beginning = re.split(r"[\d:;.,!?(<{\[\u3002\uff1a\uff0c\uff1b\uff01\uff1f]", line, maxsplit=1)[0].strip()
    return re.escape(beginning if len(beginning) >= SHORTEST else line[:SHOWN]).replace(r"\ ", " ")
