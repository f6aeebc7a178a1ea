"""What the pytest plugin needs once there is a scenario to play: one campaign for the whole session."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from wedgehog.harness.agents.spec import AgentSpec, variants
from wedgehog.harness.campaign.campaign import Campaign
from wedgehog.harness.campaign.options import NoProgress, OpenCampaign, Options
from wedgehog.harness.campaign.selection import Entry, UsageError, check_invariant, named_agent, path_of_name
from wedgehog.harness.commands.loop_thread import LoopThread
from wedgehog.harness.commands.pytest_plugin import agents_of
from wedgehog.harness.network.base import NetworkError
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.record.store import read_run
from wedgehog.harness.scenario.document import BadFileError
from wedgehog.harness.scenario.scenario_file import find_scenarios, load_scenario
from wedgehog.reports.event_lines import event_lines

MOST_LINES = 40
"""A failure shows so many lines of the timeline: its beginning and its end."""


class ScenarioFailedError(Exception):
    """A scenario did not pass; its text is what pytest shows."""


class ScenarioItems(pytest.File):
    """One scenario file."""

    def collect(self) -> Iterator["ScenarioItem"]:
        """A test for each agent.

        Raises:
            CollectError: the file or a spec can't be read.
        """
        try:
            for name in agents_of(self.config):
                for agent in variants(named_agent(name)):
                    entry = Entry(load_scenario(self.path, check_invariant), agent)
                    title = f"{self.path.stem}[{agent.name}]"
                    # The cache of pytest reads the brackets as a parameter; an id from this text equals that.
                    yield ScenarioItem.from_parent(self, name=title, nodeid=f"{self.nodeid}::{title}", entry=entry)
        except (BadFileError, UsageError) as wrong:
            raise self.CollectError(str(wrong)) from None


class ScenarioItem(pytest.Item):
    """One scenario on one agent."""

    def __init__(self, *, entry: Entry, **more: Any) -> None:
        super().__init__(**more)
        self.entry = entry
        self.add_marker("wedgehog")

    def runtest(self) -> None:
        """Play it; a failure says what was played and what happened."""
        player = _player(self.config)
        judgement = player.play(self.entry)
        if judgement.skipped:
            raise pytest.skip.Exception(judgement.skipped, _use_item_location=True)
        if judgement.verdict not in ("pass", "nothing"):
            raise ScenarioFailedError("\n".join(player.lines(self.entry, judgement)))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """A scenario's failure is its text, without a traceback of ours."""
        if isinstance(excinfo.value, ScenarioFailedError | NetworkError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """The file and the name of the test in pytest's report."""
        return self.path, 0, f"scenario {self.name}"


def play_named(config: pytest.Config, scenario: str) -> Judgement:
    """Play a scenario by file or stock name on the one agent of the configuration.

    Raises:
        UsageError: there is no such scenario, or not exactly one agent.
    """
    agents = agents_of(config)
    if len(agents) != 1:
        raise UsageError("chaos_agent needs one agent: set wedgehog_agent, or pass --wedgehog-agent SPEC")
    path = next(find_scenarios(path_of_name(scenario)))
    return _player(config).play(Entry(load_scenario(path, check_invariant), named_agent(agents[0])))


_PLAYER = pytest.StashKey["SessionPlayer"]()


def _player(config: pytest.Config) -> "SessionPlayer":
    if _PLAYER not in config.stash:
        agents = [agent for name in agents_of(config) for agent in variants(named_agent(name))]
        out = config.rootpath / "runs"
        options = Options(out, config.getoption("--wedgehog-network"), 1, config.getoption("--wedgehog-seed") or 0)
        config.stash[_PLAYER] = player = SessionPlayer(agents, options)
        config.add_cleanup(player.close)
    return config.stash[_PLAYER]


class SessionPlayer:
    """A campaign that stays open on an event loop of its own while pytest runs."""

    def __init__(self, agents: list[AgentSpec], options: Options) -> None:
        self._thread = LoopThread()
        self._said: list[str] = []
        self.campaign = Campaign([], options, NoProgress(), self._said.append)
        self._open = self._opened(agents)
        self._plays: OpenCampaign = self._thread.do(self._open.__aenter__())
        self._numbers: dict[tuple[str, str], int] = {}

    def play(self, entry: Entry) -> Judgement:
        """Play one scenario; the same one again gets a number of its own."""
        key = entry.scenario.name, entry.agent.name
        self._numbers[key] = number = self._numbers.get(key, 0) + 1
        return self._thread.do(self._plays.play(Entry(entry.file, entry.agent, repeat=number)))

    def lines(self, entry: Entry, judgement: Judgement) -> Iterator[str]:
        """What a failed test shows: the sentence, the script, the faults, the timeline and the replay command."""
        verdict = "failed" if judgement.verdict == "fail" else f"was not decided ({judgement.verdict})"
        yield f"{judgement.scenario} x {judgement.agent} {verdict}: {judgement.says}"
        words = yaml.safe_load(entry.file.path.read_text(encoding="utf-8"))
        for key in ("turns", "faults"):
            if words.get(key):
                yield f"{key}:"
                yield from (f"  {line}" for line in yaml.safe_dump(words[key], sort_keys=False).splitlines())
        folder = self.campaign.store.run_folder(judgement.scenario, judgement.agent, judgement.repeat)
        yield "timeline:"
        yield from _shortened(
            [f"  {max(0.0, at_s):8.2f} s  {said}" for at_s, said, _ in event_lines(read_run(folder).history)]
        )
        yield f"again: {judgement.replay}"

    def close(self) -> None:
        """Close the network and end the loop."""
        self._thread.do(self._open.__aexit__(None, None, None))
        self._thread.end()

    @asynccontextmanager
    async def _opened(self, agents: list[AgentSpec]) -> AsyncIterator[OpenCampaign]:
        async with self.campaign.opened(agents) as opened:
            yield opened


def _shortened(lines: list[str]) -> list[str]:
    half = MOST_LINES // 2
    return lines if len(lines) <= MOST_LINES else [*lines[:half], f"  … {len(lines) - 2 * half} more …", *lines[-half:]]
