"""Runs official SDKs, each in a process and an environment of its own, against the real fake provider.

The current Python generation is that of the test environment; others, and JavaScript's, are in the folder that
`WEDGEHOG_SDKS` names, as `nox -s sdk` makes it.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.reply import Answer, Failure, Reply, Text, ToolCall, Usage
from wedgehog.fake_llm.server import FakeLLM

DRIVERS = Path(__file__).parent / "drivers"
PATIENCE_S = 300


def pytest_configure(config: pytest.Config) -> None:
    """Know the marker."""
    config.addinivalue_line("markers", "sdk: drives official SDKs (`nox -s sdk` installs all of them)")


class Quiz:
    """Answers by the last thing said: a word names a reply, a number an error."""

    MODELS = ("model-a", "model-b")
    TEXT = "A hedgehog 🦔, a crew 👩‍🚀👨‍👩‍👧, a flag 🇫🇷, a cafe\u0301, a u\u0308\u0301, a thumb 👍🏽, and 中文."
    CITIES = ("Zu\u0308rich 👩‍🚀", 'A "quoted"\ncity')
    USAGE = Usage(1234, 56)

    def answer(self, call: int, conversation: Conversation) -> Answer:
        last = conversation.messages[-1]
        if last.tool_results:
            results = [result.text for message in conversation.messages for result in message.tool_results]
            return Reply((Text(f"{len(results)} results: {', '.join(results)}"),), self.USAGE)
        calls = tuple(ToolCall("get_weather", {"city": city}) for city in self.CITIES)
        match last.text:
            case "tool":
                return Reply(calls[:1], self.USAGE)
            case "tools":
                return Reply((Text(self.TEXT), *calls), self.USAGE)
            case status if status.isdecimal():
                return Failure(int(status), message=f"No: {status} 🦔", retry_after=7 if status == "429" else None)
        return Reply((Text(self.TEXT),), self.USAGE)


Told = dict[str, dict[str, Any]]


@pytest.fixture
def quiz() -> type[Quiz]:
    """What is asked."""
    return Quiz


@pytest.fixture(scope="session")
def told_by() -> Callable[[str, str], Told]:
    """What a driver told with an SDK, by case: `told_by("openai_chat.py", "openai-1")`; each is run once."""
    done: dict[tuple[str, str], Told] = {}

    def told(driver: str, sdk: str) -> Told:
        if (driver, sdk) not in done:
            command, environment = runner(driver, sdk)
            with ThreadPoolExecutor(1) as thread:
                done[driver, sdk] = thread.submit(asyncio.run, played(command, environment)).result()
        return done[driver, sdk]

    return told


async def played(command: list[str], environment: dict[str, str]) -> Told:
    """Run a driver against a fake provider, and gather what it printed."""
    async with FakeLLM(Quiz(), models=Quiz.MODELS) as llm, asyncio.timeout(PATIENCE_S):
        pipes = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}
        process = await asyncio.create_subprocess_exec(*command, env=environment | {"FAKE_URL": llm.url}, **pipes)
        try:
            out, err = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    lines = [json.loads(line) for line in out.decode().splitlines()]
    assert process.returncode == 0, f"{command}: {err.decode()}"
    return {line.pop("case"): line for line in lines}


def runner(driver: str, sdk: str) -> tuple[list[str], dict[str, str]]:
    """The command and the environment in which a driver finds its SDK."""
    bare = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    if sdk.startswith("js-"):
        return javascript(driver, folder(sdk)), bare
    command = [sys.executable, str(DRIVERS / driver)]
    return command, bare if is_of_this_environment(sdk) else bare | {"PYTHONPATH": str(folder(sdk))}


def javascript(driver: str, place: Path) -> list[str]:
    """Put the drivers where Node looks for their SDKs: beside them."""
    node = shutil.which("node") or "node"
    shutil.copytree(DRIVERS, place / "drivers", dirs_exist_ok=True)
    name, *arguments = driver.split()
    return [node, str(place / "drivers" / name), *arguments]


def is_of_this_environment(sdk: str) -> bool:
    """Whether this environment has the generation of a Python SDK."""
    package, _, generation = sdk.rpartition("-")
    try:
        return metadata.version(package).split(".")[0] == generation
    except metadata.PackageNotFoundError:
        return False


def is_there(sdk: str) -> bool:
    """Whether it can be run."""
    return is_of_this_environment(sdk) or folder(sdk).is_dir()


def folder(sdk: str) -> Path:
    """The folder of an SDK that is not in this environment."""
    return Path(os.environ.get("WEDGEHOG_SDKS") or os.devnull) / sdk
