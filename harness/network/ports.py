"""Free ports for servers that need a port number before they bind.

Another process could take a port between its choice and the server's bind. So the ports are below the system's
ephemeral range, which the system never assigns; each process has a block of its own and uses its ports in turn.
"""

import atexit
import functools
import itertools
import os
import secrets
import socket
from collections.abc import Iterator

FIRST, LAST = 20_000, 32_000
BLOCK = 1_000
HOST = "127.0.0.1"


def free_port() -> int:
    """Return a loopback port on which no socket listens; raise OSError if no port of the block is free."""
    ports = _ports(os.getpid())
    for port in itertools.islice(ports, BLOCK):
        if (probe := _bound(port)) is not None:
            probe.close()
            return port
    raise OSError(f"no free port between {FIRST} and {LAST}")


def is_listening(port: int) -> bool:
    """Return whether the port accepts a connection. TIME_WAIT does not count."""
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


@functools.cache
def _ports(pid: int) -> Iterator[int]:
    """Cycle through the ports of this process from a random start; a forked process gets others."""
    block = _claimed()
    start = secrets.randbelow(len(block))
    return itertools.cycle((*block[start:], *block[:start]))


def _claimed() -> range:
    """Claim a block: this process binds its first port for its whole life, so other Wedgehog processes skip it."""
    blocks = list(range(FIRST, LAST, BLOCK))
    secrets.SystemRandom().shuffle(blocks)
    for first in blocks:
        if (claim := _bound(first)) is not None:
            atexit.register(claim.close)
            break
    return range(first + 1, first + BLOCK)


def _bound(port: int) -> socket.socket | None:
    sock = socket.socket()
    try:
        sock.bind((HOST, port))
    except OSError:
        sock.close()
        return None
    return sock
