"""The specimen's turn: a global timeout around a loop of model calls and shell commands, and its clean-up."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from history import History
from provider import Provider, ProviderError

FIXES = ("catch-cancel", "cleanup-in-run")
ROUNDS = 10

T = TypeVar("T")
Json = dict[str, Any]


class UserAbortError(Exception):
    """The user pressed Ctrl-C."""


class GlobalRequestTimeoutError(Exception):
    """The turn took longer than the user's setting allows."""


class Agent:
    """Plays one turn on a history, which it changes in place.

    The two fixes are at the places that the report proposes: with *catch-cancel* (option A) the inner handler catches
    more exceptions, with *cleanup-in-run* (option B) the outer handler cleans up too.
    """

    def __init__(self, provider: Provider, history: History, fixes: frozenset[str], *, timeout_s: float | None) -> None:
        """`timeout_s` limits the whole turn, in real seconds; None: no timeout."""
        self._provider = provider
        self._history = history
        self._timeout_s = timeout_s
        self._aborted = asyncio.Event()
        self._cleaned_up_after = (
            (UserAbortError, asyncio.CancelledError) if "catch-cancel" in fixes else (UserAbortError,)
        )
        self._cleans_up_in_run = "cleanup-in-run" in fixes

    def abort_on_interrupt(self) -> None:
        """From now on Ctrl-C ends the turn with `UserAbortError`."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._aborted.set)

    async def run(self, text: str) -> str:
        """The answer, within the timeout. `wait_for` cancels the turn at its timeout, or if it is cancelled."""
        if self._timeout_s is None:
            return await self._run_impl(text)
        try:
            return await asyncio.wait_for(self._run_impl(text), self._timeout_s)
        except TimeoutError as error:
            if self._cleans_up_in_run:
                self._clean_up()
            raise GlobalRequestTimeoutError(f"no answer after {self._timeout_s:g} s") from error

    async def _run_impl(self, text: str) -> str:
        self._history.messages.append({"role": "user", "content": text})
        try:
            for _round in range(ROUNDS):
                reply = await self._until_abort(self._provider.complete(self._history.messages))
                self._history.add_reply(reply)
                if "tool_calls" not in reply:
                    return reply["content"] or ""
                self._history.add_results(await self._until_abort(_results(reply["tool_calls"])))
        except self._cleaned_up_after:
            self._clean_up()
            raise
        raise ProviderError(f"no answer after {ROUNDS} rounds of tools")

    def _clean_up(self) -> None:
        if self._history.remove_dangling_tool_calls():
            self._history.count_tokens()

    async def _until_abort(self, work: Coroutine[Any, Any, T]) -> T:
        """The work's result. The user's abort cancels the work, and so does a cancel of this call."""
        working, aborting = asyncio.ensure_future(work), asyncio.ensure_future(self._aborted.wait())
        try:
            await asyncio.wait({working, aborting}, return_when=asyncio.FIRST_COMPLETED)
            if self._aborted.is_set():
                raise UserAbortError("the user stopped the turn")
            return working.result()
        finally:
            working.cancel()
            aborting.cancel()
            await asyncio.gather(working, aborting, return_exceptions=True)


async def _results(calls: list[Json]) -> list[Json]:
    """One call after another; the results of the round are returned together, after the last one."""
    return [{"role": "tool", "tool_call_id": call["id"], "content": await _bash(call)} for call in calls]


async def _bash(call: Json) -> str:
    """The command's output with its exit code. A cancel of the call kills the command."""
    try:
        command = json.loads(call["function"]["arguments"])["command"]
    except (ValueError, KeyError, TypeError) as error:
        return f"bad arguments: {error!r}"
    if not isinstance(command, str):
        return f"bad arguments: the command {command!r} is no text"
    shell = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        # A process group of its own: Ctrl-C reaches only the agent, and a cancel kills the command with its children.
        process_group=0,
    )
    try:
        output, _ = await shell.communicate()
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
        await shell.wait()
        raise
    return f"exit code {shell.returncode}\n{output.decode(errors='replace')}"
