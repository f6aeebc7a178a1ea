"""What `wedgehog agents check` says of a turn that did not end: which lines came, and which `done` fits them."""

import json
import re
from contextlib import suppress
from typing import Any, Final

from wedgehog.fake_llm.request import mapped
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.commands.console import CheckFinding
from wedgehog.harness.record.history import History
from wedgehog.harness.record.views import Turn

KINDS: Final = ("event", "type", "kind", "status", "state", "role")
"""The usual names of the key that says what a JSON line is, the likeliest first."""
_SHOWN, _LONG = 3, 90


def refused_unended(agent: AgentSpec, control: History, refused: History) -> list[CheckFinding]:
    """The finding of a turn that did not end after a refused key; a user of such an agent waits for ever."""
    turn = refused.turns[0]
    if turn.deadline is None:
        return []
    says = f"after a refused key the turn did not end within {turn.deadline.bound_s:g} s"
    hint = lines_hint(agent, turn, control.turns[0]) or "does the agent report the error and end its turn?"
    return [CheckFinding(False, f"{says}: {hint}", optional=True)]


def lines_hint(agent: AgentSpec, turn: Turn, well: Turn | None = None) -> str:
    """The last lines of a turn that did not end, and the keys that would fit; `well` is a turn that did end.

    Empty for an agent that does not talk in lines.
    """
    if agent.lines is None or turn.end is None:
        return ""
    lines = _lines(turn)
    if not lines:
        return "no line came"
    shown = ", ".join(line if len(line) <= _LONG else f"{line[:_LONG]}…" for line in lines[-_SHOWN:])
    came = f"{'these lines' if len(lines) > 1 else 'this line'} came and none fits `done`: {shown}"
    if not _object(lines[-1]):
        return f"{came}; write a pattern of the line that ends each answer, such as a prompt"
    sign = _sign(lines[-1], _lines(well))
    return f"{came}; if the last one ends the turn, write `done: {sign}`{_error(agent, lines)}"


def _lines(turn: Turn | None) -> list[str]:
    return [line for line in turn.end.stdout.splitlines() if line.strip()] if turn and turn.end else []


def _sign(line: str, well: list[str]) -> str:
    """A `done` that recognises this line, and the last one of a turn that ended."""
    said, before = _object(line), _object(well[-1]) if well else {}
    for key in (it for it in KINDS if isinstance(said.get(it), str)):
        ends = [str(it[key]) for it in (before, said) if isinstance(it.get(key), str)]
        if well and len(ends) == 1:
            continue
        both = "|".join(dict.fromkeys(map(re.escape, ends)))
        return json.dumps({key: said[key]}) if len(ends) == 1 else f"""'"{key}": *"({both})"'"""
    keys = [str(next(iter(it))) for it in (before, said) if it]
    return f"""'^\\{{"({"|".join(dict.fromkeys(map(re.escape, keys)))})":'"""


def _error(agent: AgentSpec, lines: list[str]) -> str:
    """Which key of the last line may hold an error, if it is not the answer's."""
    said = _object(lines[-1])
    texts = [key for key, it in said.items() if isinstance(it, str) and key not in KINDS]
    talks = agent.lines
    if talks is None or not texts or talks.answer == f"jsonl:{texts[-1]}" or talks.error == f"jsonl:{texts[-1]}":
        return ""
    return f", and `error: jsonl:{texts[-1]}` or `answer: jsonl:{texts[-1]}`"


def _object(line: str) -> dict[str, Any]:
    with suppress(ValueError):
        return mapped(json.loads(line))
    return {}
