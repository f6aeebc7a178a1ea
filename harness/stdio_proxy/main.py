"""`wedgehog-pipe [--name NAME] -- COMMAND…`: find the harness, start COMMAND, and proxy its pipes."""

import os
import re
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from wedgehog.harness.stdio_proxy import RUN_VARIABLE
from wedgehog.harness.stdio_proxy.child import Child, become, refusal
from wedgehog.harness.stdio_proxy.ends import InputEnd, OutputEnd
from wedgehog.harness.stdio_proxy.event_loop import ProxyLoop, Signals
from wedgehog.harness.stdio_proxy.guard import Guard
from wedgehog.harness.stdio_proxy.harness_connection import (
    HarnessAddress,
    HarnessConnection,
    HarnessGoneError,
    find_harness,
)
from wedgehog.harness.stdio_proxy.stream import ProxyStream

USAGE = """usage: wedgehog-pipe [--name NAME] -- COMMAND [ARGUMENT]...

Runs COMMAND. Inside a Wedgehog run, its stdin and stdout cross the link `ipc:NAME`, so that a scenario can stall, cut,
drip or delay them; NAME defaults to COMMAND's own name. Outside a run nothing changes.
"""
RECEIVE_BUFFER = 1 << 20


class PipeUsageError(Exception):
    """The command line is not valid."""


def main() -> None:
    """The console script."""
    try:
        name, argv = parse(sys.argv[1:])
    except PipeUsageError as wrong:
        sys.stderr.write(f"wedgehog-pipe: {wrong}\n{USAGE}")
        sys.exit(2)
    if not argv:
        sys.stdout.write(USAGE)
        return
    harness = find_harness(os.environ)
    control = connect(harness) if harness else None
    if harness is None or control is None:
        sys.exit(become(argv))
    try:
        run_proxy(name, argv, harness, control)
    except HarnessGoneError as wrong:
        control.say("trouble", f"the pipe {name} could not be opened: {wrong}")
        sys.stderr.write(f"wedgehog-pipe: the harness closed the connection too early: {wrong}\n")
        os._exit(70)


def parse(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """The pipe's name and COMMAND; an empty COMMAND means that help was asked for. Errors: PipeUsageError."""
    rest, name = list(arguments), ""
    while rest and rest[0].startswith("-"):
        option, equals, value = rest.pop(0).partition("=")
        if option in ("-h", "--help"):
            return "", []
        if option == "--":
            break
        if option != "--name" or not (equals or rest):
            raise PipeUsageError(f"unknown option {option!r}" if option != "--name" else "--name needs a NAME")
        name = value if equals else rest.pop(0)
        if not re.fullmatch(r"[A-Za-z0-9._-]+", name):
            raise PipeUsageError(f"a NAME consists of letters, digits and . _ -, found {name!r}")
    if not rest:
        raise PipeUsageError("COMMAND is missing")
    return name or re.sub(r"[^A-Za-z0-9._-]", "-", os.path.basename(rest[0])) or "command", rest  # noqa: PTH119


def connect(harness: HarnessAddress) -> HarnessConnection | None:
    """The control connection; None if the harness does not answer."""
    ensure_marked(harness.mark)
    try:
        return HarnessConnection(harness.host, harness.port)
    except OSError as wrong:
        sys.stderr.write(f"wedgehog-pipe: no harness at {harness.host}:{harness.port}, running without ({wrong})\n")
        return None


def ensure_marked(mark: str) -> None:
    """Restart this process with the run's mark if the agent removed it: the processes of a run are found by it."""
    if mark and RUN_VARIABLE not in os.environ:
        with suppress(OSError):
            env = {**os.environ, RUN_VARIABLE: mark}
            os.execve(sys.executable, sys.orig_argv, env)  # noqa: S606  our own command line, no shell


def run_proxy(name: str, argv: list[str], harness: HarnessAddress, control: HarnessConnection) -> NoReturn:
    """Start COMMAND and proxy its pipes until it ends. Errors: HarnessGoneError before all is connected."""
    reserve_standard_descriptors()
    guard, signals = Guard(), Signals()
    outward, inward = listener(), listener()
    control.say("open", harness.secret, name, os.getpid(), outward.getsockname()[1], inward.getsockname()[1])
    try:
        child = Child(argv, dict(os.environ))  # starts while the harness opens the links
    except OSError as wrong:
        code = refusal(argv[0], wrong)
        control.say("exit", code)
        control.say("closed", 0, 0)
        guard.dismiss()
        os._exit(code)
    guard.protect(child.pid)
    out_link, in_link = control.ask("links")
    out_near, out_far = connect_through(out_link, outward)
    in_near, in_far = connect_through(in_link, inward)
    control.say("child", child.pid, out_near.getpeername()[1], in_near.getpeername()[1])
    ProxyLoop(
        control,
        child,
        guard,
        signals,
        ProxyStream("out", child.stdout, OutputEnd(1), out_near, out_far),
        ProxyStream("in", InputEnd(0), child.stdin, in_near, in_far),
    ).run()


def reserve_standard_descriptors() -> None:
    """Open /dev/null for a missing stdin, stdout or stderr, so that no other file gets its number."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


def listener() -> socket.socket:
    """Listens for a link's upstream end."""
    return socket.create_server(("127.0.0.1", 0), backlog=1)


def connect_through(link: str, upstream: socket.socket) -> tuple[socket.socket, socket.socket]:
    """The upstream and the downstream end of a connection through `link`. Errors: HarnessGoneError."""
    host, _, port = link.rpartition(":")
    far = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
    try:
        far.settimeout(10)
        far.connect((host, int(port)))
        upstream.settimeout(10)
        near, _ = upstream.accept()
    except OSError as wrong:
        raise HarnessGoneError(f"cannot connect through the link at {link}: {wrong}") from wrong
    upstream.close()
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    near.setblocking(False)
    far.setblocking(False)
    return near, far


if __name__ == "__main__":
    main()
