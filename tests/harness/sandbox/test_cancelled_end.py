"""A run that is stopped twice still ends its processes."""

import asyncio
import os
import signal
import sys
import threading
from pathlib import Path

import psutil

from wedgehog.harness.sandbox.owned import Tree


async def test_a_cancelled_end_ends_everything_first(tmp_path: Path):
    """Also while every thread of the shared pool is busy."""
    tree = Tree(f"test-cancelled-end-{os.getpid()}/1")
    code = "import time; time.sleep(60)"
    owned = await tree.start([sys.executable, "-c", code], env={}, cwd=tmp_path, log=tmp_path / "log")
    go_on = threading.Event()
    busy = [asyncio.get_running_loop().run_in_executor(None, go_on.wait, 20) for _ in range(40)]
    try:
        ending = asyncio.create_task(tree.end())
        await asyncio.sleep(0)
        for _ in range(2):
            ending.cancel()
            await asyncio.sleep(0)
        done, _ = await asyncio.wait({ending}, timeout=10)
        assert done and ending.cancelled(), "it did not wait for busy pool threads"
        assert not psutil.pid_exists(owned.pid)
        assert owned.exit_code == -signal.SIGKILL, "the process was not reaped"
    finally:
        go_on.set()
        await asyncio.gather(*busy)
