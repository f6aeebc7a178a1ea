"""The pytest plugin: scenario files as tests of your agent, and the fake provider as a fixture.

pytest loads this module in every session, so it imports nothing of ours before it is used.

```toml
[tool.pytest.ini_options]
wedgehog_agent = "my-agent.yaml"      # now every scenario file below `testpaths` is a test
```
"""

import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

_TURNS = re.compile(rb"^turns:", re.MULTILINE)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options; an agent may also stand in the configuration."""
    group = parser.getgroup("wedgehog", "scenarios that break an LLM agent (wedgehog)")
    group.addoption("--wedgehog-agent", action="append", metavar="SPEC", help="agent spec or known runtime; repeatable")
    group.addoption("--wedgehog-network", default="auto", metavar="auto|toxiproxy|embedded", help="default: auto")
    group.addoption("--wedgehog-seed", type=int, metavar="N", help="seed of the runs' random words and drawn faults")
    group.addoption(
        "--wedgehog-budget",
        type=_seconds,
        metavar="TIME",
        help="how long each given_faults test searches: 60s, 5m, 1h; in place of its number of scenarios",
    )
    parser.addini("wedgehog_agent", "agent specs or known runtimes that play the scenario files", type="args")


def _seconds(text: str) -> float:
    from wedgehog.harness.commands.fuzz import seconds

    try:
        return seconds(text)
    except ValueError as wrong:
        raise ArgumentTypeError(str(wrong)) from None


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker of scenario tests."""
    config.addinivalue_line("markers", "wedgehog: a scenario that an agent plays")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The scenarios in a folder of finished runs are copies, and no tests."""
    return True if agents_of(config) and (collection_path / "campaign.json").is_file() else None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A scenario file is a test for each agent."""
    if file_path.suffix not in (".yaml", ".yml") or not agents_of(parent.config):
        return None
    if not _TURNS.search(file_path.read_bytes()):
        return None
    from wedgehog.harness.commands.pytest_scenarios import ScenarioItems

    return ScenarioItems.from_parent(parent, path=file_path)


def pytest_itemcollected(item: pytest.Item) -> None:
    """A test of `given_faults` takes seed and budget of the command line."""
    options = getattr(getattr(item, "obj", None), "wedgehog_options", None)
    if options is not None:
        options.seed, options.budget_s = (
            item.config.getoption("--wedgehog-seed"),
            item.config.getoption("--wedgehog-budget"),
        )


def agents_of(config: pytest.Config) -> list[str]:
    """The agents that play the scenario files."""
    return list(config.getoption("--wedgehog-agent") or config.getini("wedgehog_agent"))


@pytest.fixture
def fake_llm() -> Iterator[Callable[..., Any]]:
    """Start a fake provider: `llm = fake_llm({"replies": […]})`; its address is `llm.url`. It ends with the test."""
    from wedgehog.harness.commands.serve import Provider

    with ExitStack() as stack:
        yield lambda script, **more: stack.enter_context(Provider(script, **more))


@pytest.fixture
def chaos_agent(request: pytest.FixtureRequest) -> Callable[[str], Any]:
    """Play a scenario, a file or a stock name: `assert chaos_agent("stall-once").verdict == "pass"`."""
    from wedgehog.harness.commands.pytest_scenarios import play_named

    return lambda scenario: play_named(request.config, scenario)


@pytest.fixture
def sim_world() -> Iterator[Any]:
    """Virtual time for this test: `sim_world.run(main, seed=1)` runs the coroutine that `main()` returns."""
    from wedgehog.harness.sim.world import SimWorld

    with SimWorld() as world:
        yield world
