"""What `wedgehog agents check` asks about the spec of an agent that makes it wait."""

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator

from wedgehog.harness.agents.pages.page_spec import PageAgent
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.campaign.common_bound import DEADLINE
from wedgehog.harness.commands.console import CheckFinding
from wedgehog.harness.commands.unended_lines import lines_hint
from wedgehog.harness.invariants.registry import find
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of

NOTE_AFTER_S = 10.0


def question(agent: AgentSpec) -> str:
    """Which keys of the spec may not fit an agent that takes no message, or does not end its turn; empty for others.

    >>> question(AgentSpec.model_validate({"name": "a", "wire": "ollama", "tui": {"start": ["a"], "ready": "^> "}}))
    "does its screen show '^> ' while it waits (`ready`)?"
    """
    if agent.http:
        return "does the service listen on {port}, and are `url` and `body` right?"
    if agent.page:
        return _about_page(agent.page)
    if agent.lines:
        send, done = map(_written, (agent.lines.send, agent.lines.done))
        return f"does it understand {send} (`send`), and does the last line of its answer fit {done} (`done`)?"
    if agent.tui:
        busy = f", and no longer {agent.tui.busy!r} (`busy`)" if agent.tui.busy else ""
        return f"does its screen show {agent.tui.ready!r} while it waits (`ready`){busy}?"
    return ""


def _about_page(page: PageAgent) -> str:
    working, answer = page.busy or page.stop, page.answer
    shows = f", does {answer!r} hold its answer (`answer`)" if answer else ""
    busy = f", and can nothing be seen then that fits {working!r} (`busy`)" if working else ""
    return f"can a message be typed in {page.input!r} (`input`){shows}{busy}?"


def _written(line: object) -> str:
    return repr(line) if isinstance(line, str) else json.dumps(line, ensure_ascii=False)


@contextlib.contextmanager
def noted(agent: AgentSpec, say: Callable[[str], None], waits_for: str) -> Iterator[None]:
    """If the work inside takes long, say once what it waits for, how long that may take, and what may be wrong."""
    asked = question(agent)
    turn_s = agent.limits.turn_s or find(DEADLINE).parameters["turn_s"].default
    bounds = f"the first request may take {agent.start_s:g} s, a turn {turn_s:g} s"
    waits = f"after {NOTE_AFTER_S:g} s still waiting for {waits_for}; {bounds}"
    note = asyncio.get_running_loop().call_later(NOTE_AFTER_S, say, f"{waits}{f': {asked}' if asked else ''}")
    try:
        yield
    finally:
        note.cancel()


def unended(agent: AgentSpec, history: History) -> Iterator[CheckFinding]:
    """Yield the turns that were answered and did not end."""
    turns = [it for it in history.turns if it.deadline is not None and outcome_of(it, history).kind == "answered"]
    if not turns or turns[0].deadline is None:
        return
    numbers = ", ".join(str(turn.number) for turn in turns)
    says = f"turn {numbers}: answered, but it did not end within {turns[0].deadline.bound_s:g} s"
    asked = lines_hint(agent, turns[0]) or question(agent) or "does the agent end after its answer?"
    yield CheckFinding(False, f"{says}: {asked}")
