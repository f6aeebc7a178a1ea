"""`wedgehog-pipe [--name NAME] -- COMMAND…`: find the harness, start COMMAND, and stand between the two."""

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
from wedgehog.harness.stdio_proxy.harness_address import HarnessAddress, find_harness
from wedgehog.harness.stdio_proxy.harness_connection import HarnessConnection, HarnessGoneError
from wedgehog.harness.stdio_proxy.stream import ProxyStream

USAGE = """usage: wedgehog-pipe [--name NAME] -- COMMAND [ARGUMENT]...

Runs COMMAND. Where a Wedgehog run is around, its stdin and stdout cross the link `ipc:NAME`, so that a scenario can
stall, cut, drip or delay them; NAME is COMMAND's own name unless it is given. Otherwise nothing is different.
"""
RECEIVE_BUFFER = 1 << 20


class PipeUsageError(Exception):
    """The command line makes no sense."""


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
    control = called(harness) if harness else None
    if harness is None or control is None:
        sys.exit(become(argv))
    try:
        stand_between(name, argv, harness, control)
    except HarnessGoneError as wrong:
        control.say("trouble", f"the pipe {name} could not be opened: {wrong}")
        sys.stderr.write(f"wedgehog-pipe: the harness left in the middle of a word: {wrong}\n")
        os._exit(70)


def parse(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """The pipe's name and COMMAND; without a COMMAND, help was asked for. Errors: PipeUsageError."""
    rest, name = list(arguments), ""
    while rest and rest[0].startswith("-"):
        option, equals, value = rest.pop(0).partition("=")
        if option in ("-h", "--help"):
            return "", []
        if option == "--":
            break
        if option != "--name" or not (equals or rest):
            raise PipeUsageError(f"there is no option {option!r}" if option != "--name" else "--name needs a NAME")
        name = value if equals else rest.pop(0)
        if not re.fullmatch(r"[A-Za-z0-9._-]+", name):
            raise PipeUsageError(f"a NAME is made of letters, digits and . _ -, found {name!r}")
    if not rest:
        raise PipeUsageError("there is no COMMAND to run")
    return name or re.sub(r"[^A-Za-z0-9._-]", "-", os.path.basename(rest[0])) or "command", rest  # noqa: PTH119


def called(harness: HarnessAddress) -> HarnessConnection | None:
    """The control connection; a harness that is gone is like none."""
    mark_ourselves(harness.mark)
    try:
        return HarnessConnection(harness.host, harness.port)
    except OSError as wrong:
        sys.stderr.write(f"wedgehog-pipe: no harness at {harness.host}:{harness.port}, running without ({wrong})\n")
        return None


def mark_ourselves(mark: str) -> None:
    """Begin again with the run's mark in our environment, where who started us has washed it off.

    All that belongs to a run is known by it, also when the harness has been killed and only its warden is left.
    """
    if mark and RUN_VARIABLE not in os.environ:
        with suppress(OSError):
            env = {**os.environ, RUN_VARIABLE: mark}
            os.execve(sys.executable, sys.orig_argv, env)  # noqa: S606  ourselves once more, no shell


def stand_between(name: str, argv: list[str], harness: HarnessAddress, control: HarnessConnection) -> NoReturn:
    """Be the pipe. Errors: HarnessGoneError before all is connected."""
    fill_gaps()
    guard, signals = Guard(), Signals()
    outward, inward = listener(), listener()
    control.say("open", harness.secret, name, os.getpid(), outward.getsockname()[1], inward.getsockname()[1])
    try:
        child = Child(argv, dict(os.environ))  # it starts up while the harness opens the links
    except OSError as wrong:
        code = refusal(argv[0], wrong)
        control.say("exit", code)
        control.say("closed", 0, 0)
        guard.dismiss()
        os._exit(code)
    guard.protect(child.pid)
    out_link, in_link = control.ask("links")
    out_near, out_far = crossing(outward, out_link)
    in_near, in_far = crossing(inward, in_link)
    control.say("child", child.pid, out_near.getpeername()[1], in_near.getpeername()[1])
    relay = ProxyLoop(
        control,
        child,
        guard,
        signals,
        ProxyStream("out", child.stdout, OutputEnd(1), out_near, out_far),
        ProxyStream("in", InputEnd(0), child.stdin, in_near, in_far),
    )
    relay.run()
    raise AssertionError("a relay ends with its process")


def fill_gaps() -> None:
    """Where we were given no stdin, stdout or stderr at all, their numbers must not become something else's."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


def listener() -> socket.socket:
    """Where a link's upstream end will arrive."""
    return socket.create_server(("127.0.0.1", 0), backlog=1)


def crossing(upstream: socket.socket, link: str) -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection through a link. Errors: HarnessGoneError."""
    host, _, port = link.rpartition(":")
    far = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
    try:
        far.settimeout(10)
        far.connect((host, int(port)))
        upstream.settimeout(10)
        near, _ = upstream.accept()
    except OSError as wrong:
        raise HarnessGoneError(f"no way through the link at {link}: {wrong}") from wrong
    upstream.close()
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    near.setblocking(False)
    far.setblocking(False)
    return near, far


if __name__ == "__main__":
    main()
