"""Starts the process of a callable as a fork of one that has imported the agent's SDK.

To import an SDK takes a second of CPU or two; so it is done once, and not in each run. A fork has the environment, the
folders and the output of a new process, and no module of the agent: only what the agent's file imports first (see
`first_imports`). `warm_host` refuses if a fork would differ from a new process. Each run then starts a process of its
own. So it does on a system other than Linux, in a private network, and on a small disk.
"""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from wedgehog.harness.agents.callables import warm_host
from wedgehog.harness.agents.callables.first_imports import first_imports
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.sandbox.cleanup import FORKS, RUN_VARIABLE
from wedgehog.harness.sandbox.forked import Forked

OFF = "WEDGEHOG_FORK"
"""With `no` in this variable, each run starts a process of its own."""
READY_WITHIN_S = 120.0
FORKS_WITHIN_S = 10.0
AT_START = ("PYTHON", "LD_", "LC_", "MALLOC_", "GLIBC_", "OPENSSL_", "TZ")
"""What a process reads before its first import. Variables with such names must be the same in each run."""
ALWAYS = {"PATH", "LANG", "TERM"}


@dataclass(frozen=True)
class _Wanted:
    """What a process has to import, and with what; runs that want the same share it."""

    argv: tuple[str, ...]
    imports: tuple[str, ...]
    fixed: frozenset[tuple[str, str]]
    """The variables that are the same in each run."""


class _WarmHost:
    """One process that forks."""

    def __init__(self, process: asyncio.subprocess.Process, line: socket.socket) -> None:
        self._process, self._line, self._asking = process, line, asyncio.Lock()

    async def forked(self, message: bytes, files: Sequence[int]) -> Forked | None:
        """A process with these files; None: it cannot be forked."""
        async with self._asking:
            try:
                socket.send_fds(self._line, [message], files)
                pid = await _heard(self._line, FORKS_WITHIN_S)
            except (OSError, TimeoutError):
                self.end()  # a late reply would be taken for the next one
                return None
            return Forked(int(pid)) if pid.isdigit() else None

    def end(self) -> None:
        """End it; what it forked runs on."""
        self._line.close()
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                # `Process.kill` would reap one that has just ended, and asyncio would say that it does not know it.
                os.kill(self._process.pid, signal.SIGKILL)

    async def ended(self) -> None:
        """End it, and wait for that."""
        self.end()
        await self._process.wait()


class WarmHosts:
    """The processes of one campaign that fork."""

    def __init__(self, mark: str) -> None:
        """`mark`: the campaign's."""
        self._mark = f"{mark}/{FORKS}"
        self._hosts: dict[_Wanted, asyncio.Task[_WarmHost | None]] = {}

    async def __aenter__(self) -> "WarmHosts":
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        for starting in self._hosts.values():
            starting.cancel()
            with suppress(asyncio.CancelledError):
                if host := await starting:
                    await host.ended()

    async def forked(
        self, spec: AgentSpec, argv: Sequence[str], entry: str | None, env: Mapping[str, str], cwd: Path, *files: int
    ) -> Forked | None:
        """A process of the host's `argv` (see `callable_host`) with these variables and files; None: start one.

        `entry` is the agent's file, the `files` are its line, stdout and stderr.
        """
        wanted = _wanted(spec, argv, entry, env)
        message = json.dumps({"env": dict(env), "cwd": str(cwd)}).encode()
        if wanted is None or len(message) >= warm_host.LONGEST_REQUEST_BYTES:
            return None
        if wanted not in self._hosts:
            self._hosts[wanted] = asyncio.create_task(self._started(wanted, env))
        host = await asyncio.shield(self._hosts[wanted])
        return await asyncio.shield(host.forked(message, files)) if host else None

    async def _started(self, wanted: _Wanted, env: Mapping[str, str]) -> _WarmHost | None:
        fixed = dict(wanted.fixed)
        variables = json.dumps([name for name in env if name not in fixed])
        python, program, target, folder = wanted.argv
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        printed, prints = os.pipe()
        ours.setblocking(False)
        os.set_blocking(printed, False)
        words = [python, program, "warm", str(its.fileno()), target, folder, json.dumps(wanted.imports), variables]
        room = "x" * (4096 + sum(len(name) + len(value) + 2 for name, value in env.items()))
        try:
            with its:
                process = await asyncio.create_subprocess_exec(
                    *words,
                    env={**env, RUN_VARIABLE: self._mark, warm_host.RESERVED: room},
                    cwd="/",
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=prints,
                    stderr=prints,
                    start_new_session=True,
                    pass_fds=[its.fileno()],
                )
            host = _WarmHost(process, ours)
            with suppress(TimeoutError):
                if await _heard(ours, READY_WITHIN_S) == warm_host.READY and not _was_printed(printed):
                    return host
            await host.ended()
        except OSError:
            ours.close()
        finally:
            os.close(printed)
            os.close(prints)
        return None


def _wanted(spec: AgentSpec, argv: Sequence[str], entry: str | None, env: Mapping[str, str]) -> _Wanted | None:
    """What to import for this agent; None if each run starts a process of its own."""
    if sys.platform != "linux" or os.environ.get(OFF) == "no":
        return None
    python, program, _, target, folder = argv
    here = [spec.here, *([Path(entry).parent] if entry else [])]
    imports = first_imports(target, entry, here)
    same = {*ALWAYS, *spec.inherit_env, *(name for name, text in spec.env.items() if "{" not in _without_here(text))}
    fixed = frozenset((name, value) for name, value in env.items() if name in same)
    others = [name for name in env if name not in same]
    if not imports or any(name.startswith(AT_START) for name in others):
        return None
    return _Wanted((python, program, target, folder), imports, fixed)


def _without_here(text: str) -> str:
    return text.replace("{here}", "")


async def _heard(line: socket.socket, within_s: float) -> bytes:
    return await asyncio.wait_for(asyncio.get_running_loop().sock_recv(line, 64), within_s)


def _was_printed(output: int) -> bool:
    try:
        return bool(os.read(output, 1))
    except BlockingIOError:
        return False
