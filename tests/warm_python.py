"""`warm_python.py SOCKET MODULE…`: runs Python programs in processes forked from this one, which imported the modules.

Importing them takes a second of each process. `warm_start.py` asks for a program, and ends as that ends:

    {"words": ["agent.py", "Hello"], "folder": "/…", "environment": {"PATH": "/…", …}, "niceness": 0}

with three open files.

The modules are imported when the first program is asked for: all workers of a run of the suite share this process. The
program's process has these files, the folder, the environment and the niceness of who asks; one more process waits for
it, and kills it and its process group when `warm_start.py` is killed. What tests must not need of such a program: its
environment in /proc, the process group of `warm_start.py`.
"""

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
from typing import Any

LONGEST_REQUEST_BYTES = 2**18


def serve(path: str, modules: list[str]) -> list[str]:
    """Fork two processes for each request, until standard input ends; return in the program's, with its words."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(path)
        listening.listen()
        print("ready", flush=True)
        while sys.stdin not in select.select([sys.stdin, listening], [], [])[0]:
            with listening.accept()[0] as asking:
                warm(modules)
                if not os.fork():
                    return forked(asking)
            reap()
    os._exit(0)


def warm(modules: list[str]) -> None:
    """Import the modules, unless that is done."""
    if modules:
        for module in modules:
            importlib.import_module(module)
        modules.clear()
        gc.freeze()


def reap() -> None:
    """Forget processes that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def forked(asking: socket.socket) -> list[str]:
    """Fork the program's process, and wait for it; return in it."""
    request, files, *_ = socket.recv_fds(asking, LONGEST_REQUEST_BYTES, 3)
    pid = os.fork()
    with contextlib.suppress(OSError):  # (the other of the two was first, and the program has begun)
        os.setpgid(pid, pid)
    if not pid:
        return become(json.loads(request), files)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a signal to the whole session ends `warm_start.py`, and so the program
    for file in files:
        os.close(file)
    ended = os.pidfd_open(pid)
    while ended not in select.select([asking, ended], [], [])[0]:
        with contextlib.suppress(ProcessLookupError):
            if number := _received(asking):
                os.kill(pid, int(number))
            else:
                os.killpg(pid, signal.SIGKILL)
                break
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(OSError):
        asking.send(str(code).encode())
    os._exit(0)


def _received(asking: socket.socket) -> bytes:
    """The number of a signal for the program; empty when `warm_start.py` is gone."""
    try:
        return asking.recv(99)
    except ConnectionError:
        return b""


def become(told: dict[str, Any], files: list[int]) -> list[str]:
    """Make this process that of the program."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(told["folder"])
    os.setpriority(os.PRIO_PROCESS, 0, told["niceness"])
    os.environ.clear()
    os.environ.update(told["environment"])
    return list(told["words"])


def run(words: list[str]) -> None:
    """Run `[-P] -m MODULE …` or `FILE …`, as `python` does."""
    words = words[words[0] == "-P" :]
    if words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path.insert(0, os.path.dirname(words[0]))  # noqa: PTH120
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    run(serve(sys.argv[1], sys.argv[2:]))
