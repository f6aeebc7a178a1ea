"""The tool runs of a history, each once: several replies of a step can offer the same call."""

from collections.abc import Iterator
from dataclasses import dataclass

from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.history import History
from wedgehog.harness.record.views import ToolUse


@dataclass(frozen=True, slots=True)
class ToolRun:
    """One run of a tool call."""

    use: ToolUse
    """The call as the last reply offered it before the run; as the first one offered it if none came before."""
    began: BeaconSeen
    done: BeaconSeen | None
    """None if it did not end."""


def tool_runs(history: History) -> list[ToolRun]:
    """All runs of tool calls, in the order of their starts."""
    return sorted((run for offers in _offers(history) for run in _runs(offers)), key=lambda run: run.began.id)


def tool_calls(history: History) -> tuple[ToolUse, ...]:
    """Each tool call once, as the first reply offered it."""
    return tuple(offers[0] for offers in _offers(history))


def _offers(history: History) -> list[list[ToolUse]]:
    """The offers of each tool call, in order."""
    offers: dict[str, list[ToolUse]] = {}
    for use in history.tool_uses:
        offers.setdefault(use.token, []).append(use)
    return list(offers.values())


def _runs(offers: list[ToolUse]) -> Iterator[ToolRun]:
    started, done = offers[0].started, offers[0].done
    for number, began in enumerate(started):
        before = [use for use in offers if use.reply.id < began.id]
        use = before[-1] if before else offers[0]
        yield ToolRun(use, began, done[number] if number < len(done) else None)
