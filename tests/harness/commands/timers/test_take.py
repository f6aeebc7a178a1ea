"""A knob that moves few probes is tried again, because a busy machine moves some too."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.agents.spec_keys import Timeout
from wedgehog.harness.commands.timers import take
from wedgehog.harness.commands.timers.probe import PROBES, Probe
from wedgehog.harness.commands.timers.taken import Taken, TimedAttempt, Turned

KNOB = Timeout(name="idle", s=4)
HEADERS, BODY, PINGS = (next(it for it in PROBES if it.name == name) for name in ("headers", "body", "pings"))


def lasted(probe: Probe, s: float) -> Taken:
    """A probe whose one attempt was ended after so many seconds."""
    return Taken(probe, attempts=(TimedAttempt(0.0, s),), total_s=s)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What each probe takes when it is played again: without the knob, and with it."""
    times: dict[str, tuple[float, float]] = {}
    asked: list[str] = []

    async def again(jobs: Sequence[tuple[AgentSpec, Probe]], *_: Any) -> list[Taken]:
        asked.extend(probe.name for _, probe in jobs)
        return [lasted(probe, times[probe.name]["+" in agent.name]) for agent, probe in jobs]

    monkeypatch.setattr(take, "_played", again)
    return times, asked


async def confirmed(tmp_path: Path, *moved: Probe) -> list[str]:
    """The probes that a knob moves: these, from 4 to 2 s, when they were first played."""
    spec = AgentSpec.model_validate({"name": "a", "wire": "anthropic", "command": ["x", "{message}"]})
    before = [lasted(probe, 4.0) for probe in (HEADERS, BODY, PINGS)]
    after = tuple(lasted(it.probe, 2.0 if it.probe in moved else 4.0) for it in before)
    knob = Turned(KNOB, 2.0, after)
    how = take.ProbeOptions(9)
    return (await take._confirmed(knob, spec, before, tmp_path, how, lambda line: None)).moves(before)


async def test_a_probe_that_moves_once_and_not_again_was_moved_by_chance(tmp_path: Path, played: Any):
    """Both measurements are made again: either of them may have been disturbed."""
    times, asked = played
    times |= {"headers": (4.0, 2.0), "body": (2.0, 2.0)}
    assert await confirmed(tmp_path, HEADERS, BODY) == ["headers"]
    assert asked == ["headers", "body"] * 2


async def test_a_knob_that_moves_many_probes_is_not_tried_again(tmp_path: Path, played: Any):
    """That is no chance."""
    assert await confirmed(tmp_path, HEADERS, BODY, PINGS) == ["headers", "body", "pings"]
    assert await confirmed(tmp_path) == []
    assert played[1] == []
