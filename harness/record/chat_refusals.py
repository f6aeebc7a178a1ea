"""Messages of an agent that the chat service refused."""

from wedgehog.harness.record.events.service import ChatAsked
from wedgehog.harness.record.history import History
from wedgehog.harness.record.views import Turn


def refused_last(turn: Turn, history: History) -> str:
    """Why the chat refused the last message that the agent sent in a turn; empty if it took it."""
    if turn.end is None or turn.stimulus is None:
        return ""
    sent = [it for it in history.of(ChatAsked) if turn.stimulus.id < it.id < turn.end.id and it.what != "poll"]
    return sent[-1].text if sent and sent[-1].what == "refused" else ""
