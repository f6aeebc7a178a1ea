"""Ctrl-C ends a command with its cleanup."""

import asyncio
import os
import signal

from wedgehog.harness.commands.stop_signals import run_until_stopped


def test_a_second_ctrl_c_does_not_stop_the_cleanup_that_the_first_one_began():
    """An impatient user must not leave servers and agents behind."""
    steps: list[str] = []

    async def work() -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(os.kill, os.getpid(), signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(3):
                await asyncio.sleep(0)
            steps.append("cleaned up")

    assert run_until_stopped(work()) and steps == ["cleaned up"]
