"""`given_faults`: draws conversations with faults for an agent in a test, plays them in virtual time, shrinks a
failure."""

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from wedgehog.harness.agents.spec import AgentSpec, load_spec
from wedgehog.harness.campaign.options import Options
from wedgehog.harness.campaign.selection import Entry, check_invariant
from wedgehog.harness.commands.fuzz import Fuzz, FuzzOptions
from wedgehog.harness.scenario.scenario_file import load_scenario
from wedgehog.harness.search.corpus import Finding

Agent = Callable[..., Awaitable[str | None]]
LONGEST_S = 3600.0
"""The number of scenarios ends the search, not a time."""


@dataclass
class GivenOptions:
    """Options of the pytest command line, which replace what the decorator says."""

    seed: int | None = None
    budget_s: float | None = None


def given_faults(
    *, wire: str, scenarios: int = 100, seed: int = 0, folder: Path | str = "fuzz", **spec: Any
) -> Callable[[Agent], Callable[[], None]]:
    """Make a test of an agent: it fails if a drawn conversation with faults violates an invariant.

    The decorated function is the agent. It gets a message and `session_dir`, `llm_url` and `key`, and returns the
    answer:

        @wedgehog.given_faults(wire="openai-chat", scenarios=200, limits={"turn_s": 30})
        async def test_my_agent(message, *, session_dir, llm_url, key):
            return await my_agent.answer(message, base_url=f"{llm_url}/v1", key=key)

    `scenarios` are drawn from `seed`; with `pytest --wedgehog-budget 5m` as many as there is time for. Failures found
    before are played first. `spec` are more keys of an agent's spec. The test fails with the smallest scenario, its
    timeline and the command that plays it again. Found scenarios and the spec are kept in `folder`.
    """

    def decorated(function: Agent) -> Callable[[], None]:
        if "<locals>" in function.__qualname__:
            raise ValueError(f"given_faults: {function.__name__} must stand at the top of its module, to be imported")

        options = GivenOptions()

        def test() -> None:
            __tracebackhide__ = True
            chosen = seed if options.seed is None else options.seed
            most = scenarios if options.budget_s is None else None
            budget_s = options.budget_s or LONGEST_S
            try:
                found = _Search(function, {"wire": wire, **spec}, most, budget_s, chosen, Path(folder)).failure()
            except ValueError as wrong:  # such as an agent that cannot be imported
                found = str(wrong)
            if found:
                _fail(found)

        for name in ("__name__", "__qualname__", "__doc__", "__module__"):
            setattr(test, name, getattr(function, name))
        test.agent = function  # type: ignore[attr-defined]
        test.wedgehog_options = options  # type: ignore[attr-defined]
        return test

    return decorated


def _fail(text: str) -> None:
    """Fail the test with this text and without a traceback of ours."""
    __tracebackhide__ = True
    try:
        import pytest
    except ImportError:  # another runner, such as unittest
        raise AssertionError(text) from None
    pytest.fail(text, pytrace=False)


@dataclass(frozen=True)
class _Search:
    function: Agent
    spec: dict[str, Any]
    scenarios: int | None
    budget_s: float
    seed: int
    folder: Path

    def failure(self) -> str:
        """Search; what a failed test shows, or an empty text."""
        place, agent = self._agent()
        options = FuzzOptions((agent,), (str(place),), self.budget_s, self.folder, world="sim", most=self.scenarios)
        with Path(os.devnull).open("w") as nowhere:
            search = Fuzz(options, self._options(), Console(file=nowhere))
            asyncio.run(search.run())
        findings = sorted(search.search.result.findings, key=lambda it: it.path.stem) if search.search else []
        if findings:
            return "\n".join([*_scenario(findings[0], agent, search.campaign_options("sim")), "", *search.lines()])
        return "\n".join(search.lines()) if search.exit_code else ""

    def _options(self) -> Options:
        return Options(self.folder / "runs", "embedded", 1, self.seed, world="sim")

    def _agent(self) -> tuple[Path, AgentSpec]:
        """The agent's spec, as a file that a replay can name."""
        name = self.function.__name__
        place = self.folder / name / "agent.yaml"
        place.parent.mkdir(parents=True, exist_ok=True)
        code = Path(inspect.getfile(self.function)).resolve()
        words = {"name": name, "callable": f"{code}:{self.function.__qualname__}.agent", "recover_s": 0, **self.spec}
        place.write_text(yaml.safe_dump(words, sort_keys=False), encoding="utf-8")
        return place, load_spec(place)


def _scenario(finding: Finding, agent: AgentSpec, options: Options) -> Iterator[str]:
    """The smallest scenario of the first failure: script, faults, timeline, and the command that plays it again."""
    from wedgehog.harness.commands.pytest_scenarios import SessionPlayer

    player = SessionPlayer([agent], options)
    try:
        entry = Entry(load_scenario(finding.path, check_invariant), agent)
        yield from player.lines(entry, player.play(entry))
    finally:
        player.close()
