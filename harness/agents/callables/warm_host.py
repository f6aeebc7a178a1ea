"""Imports once what a callable's file imports first, and forks a process for each run.

`callable_host.py warm SOCKET TARGET FOLDER IMPORTS VARIABLES`: the last two are lists in JSON. It says `ready` on the
socket. It ends instead if a fork would differ from a new process: if an import raised or printed something, began a
thread, left a file open, or read one of the VARIABLES, whose values change from run to run. Then it gets the
environment and the folder of each run, with its line, stdout and stderr, and tells the pid.

Standard library only, Python 3.9 or newer, Linux only.
"""

import gc
import json
import os
import socket
import sys
import sysconfig
from collections.abc import Iterator
from typing import Any

LONGEST_REQUEST_BYTES = 2**17
READY, NONE = b"ready", b"none"
RESERVED = "WEDGEHOG_RESERVED"
"""The variable that makes the environment, as others see it, long enough for that of any run."""

_read: set[str] = set()
"""The names of variables that were read."""


class _Watched(os._Environ):  # type: ignore[type-arg]
    def __getitem__(self, name: str) -> str:
        _read.add(name)
        return str(super().__getitem__(name))

    def __iter__(self) -> Iterator[str]:
        _read.update(name.decode() for name in self._data)  # type: ignore[attr-defined]
        return super().__iter__()


def serve(descriptor: int, imports: list[str], variables: list[str]) -> None:
    """Fork a process for each request; return in that process, with `sys.argv[1]` as its line."""
    os.environ.pop(RESERVED, None)
    home = os.environ.get("HOME", "")
    sysconfig.get_config_vars()  # it has HOME, and an import may need another part of it
    if any(home and path.startswith(home) for path in sys.path) or not _imported(imports, variables):
        sys.exit()
    with socket.socket(fileno=descriptor) as asked:
        asked.send(READY)
        while True:
            message, files, *_ = socket.recv_fds(asked, LONGEST_REQUEST_BYTES, 3)
            if not message:
                os._exit(0)
            told = _forked(asked, json.loads(message), files)
            if told is None:
                return
            for file in files:
                os.close(file)
            asked.send(told)


def _imported(imports: list[str], variables: list[str]) -> bool:
    """Import; whether a fork is then what a new process would be that imports the same."""
    files, plain = len(os.listdir("/proc/self/fd")), type(os.environ)  # noqa: PTH208  (`pathlib` takes long)
    gc.disable()
    os.environ.__class__ = _Watched
    try:
        for statement in imports:
            exec(statement, {})  # noqa: S102  the agent's own first statements
    except BaseException:
        return False
    finally:
        os.environ.__class__ = plain
    sys.stdout.flush()
    sys.stderr.flush()
    gc.freeze()
    alone = len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208
    return alone and len(os.listdir("/proc/self/fd")) == files and _read.isdisjoint(variables)  # noqa: PTH208


def _forked(asked: socket.socket, told: dict[str, Any], files: list[int]) -> "bytes | None":
    """Fork a process of which our parent becomes the parent: the one between ends at once. None: this is the fork."""
    reading, writing = os.pipe()
    between = os.fork()
    if not between:
        if os.fork():
            os._exit(0)
        try:
            os.close(reading)
            _become(told, files)
            os.write(writing, str(os.getpid()).encode())
        except BaseException:
            os._exit(1)
        os.close(writing)
        asked.close()
        return None
    os.close(writing)
    os.waitpid(between, 0)
    pid = os.read(reading, 32)  # (it is the parent's by now, and has the environment of its run)
    os.close(reading)
    return pid or NONE


def _become(told: dict[str, Any], files: list[int]) -> None:
    """Make this process that of the run."""
    line, *outputs = files
    for number, file in enumerate(outputs, 1):
        os.dup2(file, number)
        os.close(file)
    os.setsid()
    os.chdir(told["cwd"])
    before = os.environ.get("HOME", "")
    env: dict[str, str] = told["env"]
    os.environ.clear()  # (the C library's list has pointers to what is written next)
    _show(env)
    os.environ.update(env)
    has = sysconfig.get_config_vars()
    if before and before in str(has.get("userbase")):
        has["userbase"] = str(has["userbase"]).replace(before, env.get("HOME", ""))
    sys.argv[1:] = [str(line), *sys.argv[3:5]]
    gc.enable()


def _show(env: dict[str, str]) -> None:
    """Write the environment to where others see it: by that they know to which run a process belongs."""
    with open("/proc/self/stat", "rb") as stat:  # noqa: PTH123
        fields = stat.read().rpartition(b")")[2].split()
    begin, end = int(fields[47]), int(fields[48])
    shown = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in env.items())
    if len(shown) > end - begin:
        raise ValueError("the environment is too long")
    memory = os.open("/proc/self/mem", os.O_WRONLY)
    os.pwrite(memory, shown.ljust(end - begin, b"\0"), begin)
    os.close(memory)
