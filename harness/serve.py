"""The fake provider on its own, with a script file (`wedgehog serve`)."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from wedgehog.fake_llm.server import FakeLLM
from wedgehog.fake_llm.when import ScriptFile, WhenScript
from wedgehog.harness.document import load


async def serve(path: Path, host: str, port: int, *, strict: bool, say: Callable[[str], None]) -> None:
    """Serve until cancelled.

    Raises:
        BadFile: the script can't be read as one.
        OSError: the port is taken.
    """
    script = WhenScript(load(path).into(ScriptFile))
    async with FakeLLM(script, strict=strict, host=host, port=port) as llm:
        say(f"wedgehog: the fake model answers at {llm.url} (Ctrl-C ends it)")
        await asyncio.Event().wait()
