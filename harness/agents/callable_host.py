"""A callable's process, `python -P callable_host.py FD TARGET FOLDER`: JSON lines on FD, standard library only."""

import asyncio
import importlib
import importlib.util
import inspect
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Awaitable, Callable
from operator import attrgetter
from typing import Any


def load(target: str) -> Callable[..., Any]:
    """The function named by `package.module:function` or `/path/file.py:function`."""
    name, _, attribute = target.rpartition(":")
    if not name.endswith(".py"):
        return attrgetter(attribute)(importlib.import_module(name))  # type: ignore[no-any-return]
    spec = importlib.util.spec_from_file_location("agent_under_test", name)
    if spec is None or spec.loader is None:
        raise ImportError(f"{name} is not a Python file")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return attrgetter(attribute)(module)  # type: ignore[no-any-return]


async def awaited(result: Awaitable[Any]) -> Any:
    """The result of an async callable."""
    return await result


def text_of(result: Any) -> str:
    """The answer; None becomes an empty answer."""
    if not isinstance(result, str | None):
        raise TypeError(f"the callable returned {type(result).__name__}, expected str")
    return result or ""


def replied(call: Callable[[], Any], runner: asyncio.Runner) -> dict[str, str]:
    """The reply to one call. SIGINT interrupts only the call."""
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        result = call()
        if inspect.isawaitable(result):
            result = runner.run(awaited(result))
        return {"answer": text_of(result)}
    except BaseException as bad:
        traceback.print_exc()
        return {"raised": f"{type(bad).__name__}: {bad}" if str(bad) else type(bad).__name__}
    finally:
        signal.signal(signal.SIGINT, lambda *_: None)


def main(descriptor: int, target: str, folder: str) -> None:
    """Answer calls until the socket is closed."""
    signal.signal(signal.SIGINT, lambda *_: None)
    os.set_inheritable(descriptor, False)
    sys.path.insert(0, folder)
    function: list[Callable[..., Any]] = []

    def call(message: str, **given: str) -> Any:
        if not function:
            function.append(load(target))
        return function[0](message, **given)

    with (
        socket.socket(fileno=descriptor) as line,
        line.makefile("rw", encoding="utf-8") as calls,
        asyncio.Runner() as runner,
    ):
        for asked in calls:
            reply = replied(lambda asked=asked: call(**json.loads(asked)), runner)  # type: ignore[misc]
            sys.stdout.flush()
            sys.stderr.flush()
            calls.write(json.dumps(reply) + "\n")
            calls.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
