"""What `wedgehog agents check` says of a `command` that takes its messages in another way: on stdin, or on a screen."""

import re
from typing import Final

from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.record.events.turn import TurnEnded
from wedgehog.harness.record.history import History

_DRAWS: Final = re.compile(r"\x1b\[(?:\?1049h|2J|\d*;\d*H)")
"""The alternate screen, an empty screen, a place on it."""
_WANTS_A_TERMINAL: Final = re.compile(
    r"_curses\.error|\bnot a (?:tty|terminal)\b|\braw mode is not supported|\binappropriate ioctl|/dev/tty\b",
    re.IGNORECASE,
)
"""What curses, prompt_toolkit, Ink, termios and Bubble Tea say without one."""
_WANTS_A_LINE: Final = "EOFError"
"""What Python's `input()` raises at the end of stdin."""


def other_kind(agent: AgentSpec, history: History) -> str:
    """Which other kind of agent a command without a request may be, as a hint; empty if its output shows none."""
    ended = history.first(TurnEnded)
    if agent.kind != "command" or history.calls or ended is None:
        return ""
    said = f"{ended.stdout}\n{ended.stderr}"
    if _DRAWS.search(said) or _WANTS_A_TERMINAL.search(said):
        return f"it wants a terminal, but a `command` has none: {_instead('tui')}"
    if _WANTS_A_LINE in ended.stderr:
        return f"it reads its messages from stdin, but a `command` gets none there: {_instead('lines')}"
    if ended.exit_code == 0 and not said.strip():
        return f"does the agent use {{llm_url}}? If it reads its messages from stdin, {_instead('lines')}"
    return ""


def _instead(kind: str) -> str:
    return f"write `{kind}` in place of `command` (`wedgehog init --kind {kind}`)"
