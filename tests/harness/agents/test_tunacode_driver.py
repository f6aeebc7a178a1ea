"""TunaCode's driver prints what the application shows. TunaCode itself is not installed here: a stub stands for it."""

import asyncio
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from wedgehog.harness.agents import runtimes

DRIVER = Path(runtimes.__path__[0]) / "drivers" / "tunacode_driver.py"


class AssistantMessage:
    def __init__(self, text: str) -> None:
        self.content = [SimpleNamespace(text=text)]


class StateManager:
    """A session of three earlier messages."""

    def __init__(self) -> None:
        messages: list[Any] = [
            SimpleNamespace(content=None),
            AssistantMessage("Earlier."),
            SimpleNamespace(content=None),
        ]
        config: dict[str, dict[str, Any]] = {"env": {}, "settings": {}}
        self.session = SimpleNamespace(conversation=SimpleNamespace(messages=messages), user_config=config)

    async def load_session(self, session_id: str) -> None: ...

    async def save_session(self) -> None: ...


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[list[Any]], list[Any]]], Any]:
    """The driver's module; its agent changes the session's messages in this way."""

    def load(change: Callable[[list[Any]], list[Any]]) -> Any:
        async def process_request(*, state_manager: StateManager, **_: Any) -> None:
            conversation = state_manager.session.conversation
            conversation.messages = change(conversation.messages)

        for name in ("tunacode", "tunacode.core", "tunacode.core.agents"):
            monkeypatch.setitem(sys.modules, name, ModuleType(name))
        main, session = ModuleType("tunacode.core.agents.main"), ModuleType("tunacode.core.session")
        vars(main)["process_request"], vars(session)["StateManager"] = process_request, StateManager
        for module in (main, session):
            monkeypatch.setitem(sys.modules, module.__name__, module)
        spec = importlib.util.spec_from_file_location("tunacode_driver", DRIVER)
        assert spec is not None
        assert spec.loader is not None
        driver = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(driver)
        return driver

    return load


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (lambda messages: [*messages, AssistantMessage("Now.")], "Now.\n"),
        (lambda messages: [SimpleNamespace(content=None), AssistantMessage("After a summary.")], "After a summary.\n"),
        (lambda messages: [*messages, AssistantMessage("")], "\n"),
    ],
)
def test_the_answer_is_the_last_reply_also_where_the_session_has_become_shorter(
    driver: Any, capsys: pytest.CaptureFixture[str], change: Callable[[list[Any]], list[Any]], shown: str
) -> None:
    """A compaction in the turn puts a summary in the place of the earlier messages."""
    assert asyncio.run(driver(change).main("s", "http://127.0.0.1:1", "k", 4.0, "Hello")) == 0
    assert capsys.readouterr().out == shown
