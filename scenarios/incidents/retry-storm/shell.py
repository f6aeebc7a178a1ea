"""The agent's one tool."""

from __future__ import annotations

import asyncio

from wires import parsed

EXEC_S = 30.0


async def run_command(arguments: str) -> str:
    """The output of the command, or why there is none."""
    command = parsed(arguments).get("command")
    if not isinstance(command, str):
        return f'not run: {arguments!r} is not {{"command": …}}'
    shell = await asyncio.create_subprocess_shell(
        command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        out, _ = await asyncio.wait_for(shell.communicate(), EXEC_S)
    except TimeoutError:
        shell.kill()
        return f"no result after {EXEC_S:.0f} s"
    return out.decode(errors="replace") or f"exit code {shell.returncode}"
