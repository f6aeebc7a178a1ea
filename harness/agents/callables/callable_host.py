"""A callable's process, `python callable_host.py FD TARGET FOLDER`: JSON lines on FD. With `warm` see `warm_host`.

Standard library only, Python 3.9 or newer: it runs in the user's own Python too, which has no package of ours.
"""

import sys

if __name__ == "__main__" and not getattr(sys.flags, "safe_path", False):
    del sys.path[0]  # the folder of this file, which is no place to import from

import asyncio
import importlib
import importlib.util
import inspect
import json
import os
import signal
import socket
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import closing, contextmanager, suppress
from operator import attrgetter
from typing import Any

STACK_BELOW = "wedgehog: the function raised this exception:"
"""The line before the stack that this host prints."""


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


class OneLoop:
    """One event loop for all calls, as `asyncio.Runner`, which begins with Python 3.11."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)

    def close(self) -> None:
        """Close the loop."""
        asyncio.set_event_loop(None)
        self._loop.close()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """The result. If the call is interrupted, the coroutine is cancelled, and may clean up."""
        task = self._loop.create_task(coroutine)
        try:
            return self._loop.run_until_complete(task)
        finally:
            if not task.done():
                task.cancel()
                with suppress(asyncio.CancelledError):
                    self._loop.run_until_complete(task)


@contextmanager
def runner() -> Iterator[Callable[[Coroutine[Any, Any, Any]], Any]]:
    """What runs a coroutine, on one event loop for all calls."""
    if sys.version_info < (3, 11):  # noqa: UP036  the user's Python may be older than ours
        with closing(OneLoop()) as one:
            yield one.run
    else:
        with asyncio.Runner() as loop:
            yield loop.run


def text_of(result: Any) -> str:
    """The answer; None becomes an empty answer."""
    if result is not None and not isinstance(result, str):
        raise TypeError(f"the callable returned {type(result).__name__}, expected str")
    return result or ""


def taken(function: Callable[..., Any], given: dict[str, str]) -> dict[str, str]:
    """Those of the given values that the function takes beside the message; all if that is not known."""
    try:
        others = list(inspect.signature(function).parameters.values())[1:]
    except (TypeError, ValueError):
        return given
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in others):
        return given
    named = {it.name for it in others if it.kind in (it.POSITIONAL_OR_KEYWORD, it.KEYWORD_ONLY)}
    return {name: value for name, value in given.items() if name in named}


def replied(call: Callable[[], Any], run: Callable[[Coroutine[Any, Any, Any]], Any]) -> dict[str, str]:
    """The reply to one call. SIGINT interrupts only the call."""
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        result = call()
        if inspect.isawaitable(result):
            result = run(awaited(result))
        return {"answer": text_of(result)}
    except BaseException as bad:
        print(STACK_BELOW, file=sys.stderr)
        traceback.print_exc()
        return {"raised": f"{type(bad).__name__}: {bad}" if str(bad) else type(bad).__name__}
    finally:
        signal.signal(signal.SIGINT, lambda *_: None)


def look_in(target: str, folder: str) -> None:
    """Import from the folder of the spec, and from that of the program, as `python program.py` does."""
    script = os.path.join(folder, target.rpartition(":")[0])  # noqa: PTH118  (`pathlib` would take each start longer)
    sys.path[:0] = [os.path.dirname(script), folder] if script.endswith(".py") else [folder]  # noqa: PTH120


def forked(descriptor: str, target: str, folder: str, imports: str, variables: str) -> None:
    """Return in a process that was forked for a run, with its words in `sys.argv`."""
    look_in(target, folder)
    program = os.path.join(os.path.dirname(__file__), "warm_host.py")  # noqa: PTH118, PTH120
    spec = importlib.util.spec_from_file_location("warm_host", program)
    assert spec is not None and spec.loader is not None  # noqa: S101  it is a Python file
    warm_host = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(warm_host)
    warm_host.serve(int(descriptor), json.loads(imports), json.loads(variables))


def main(descriptor: int, target: str, folder: str) -> None:
    """Answer calls until the socket is closed."""
    signal.signal(signal.SIGINT, lambda *_: None)
    os.set_inheritable(descriptor, False)
    function: list[Callable[..., Any]] = []

    def call(message: str, **given: str) -> Any:
        if not function:
            function.append(load(target))
        return function[0](message, **taken(function[0], given))

    with socket.socket(fileno=descriptor) as line, line.makefile("rw", encoding="utf-8") as calls, runner() as run:
        for asked in calls:
            reply = replied(lambda asked=asked: call(**json.loads(asked)), run)  # type: ignore[misc]
            sys.stdout.flush()
            sys.stderr.flush()
            calls.write(json.dumps(reply) + "\n")
            calls.flush()


if __name__ == "__main__":
    if sys.argv[1] == "warm":
        forked(*sys.argv[2:])
    else:
        look_in(*sys.argv[2:])
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
