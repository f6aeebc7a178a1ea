"""Ports for servers that have to be told theirs: none is given twice, and none that the system may give to others.

Between the choice of a port and the server's own bind somebody else could take it. Ports below the system's ephemeral
range are given to nobody by chance; each process gives those of a block of its own, one after the other, so that one
comes back only when all the others have had their turn.
"""

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
    """A loopback port on which nobody listens.

    Raises:
        OSError: none was found.
    """
    ports = _ports(os.getpid())
    for port in itertools.islice(ports, BLOCK):
        if (probe := _bound(port)) is not None:
            probe.close()
            return port
    raise OSError(f"no free port between {FIRST} and {LAST}")


def somebody_listens(port: int) -> bool:
    """Whether a connection to it is accepted; one that lingers there is nobody who listens."""
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


@functools.cache
def _ports(pid: int) -> Iterator[int]:
    """This process's ports, over and over, beginning anywhere; a fork has others."""
    block = _claimed()
    beginning = secrets.randbelow(len(block))
    return itertools.cycle((*block[beginning:], *block[:beginning]))


def _claimed() -> range:
    """A block whose first port is ours as long as this process lives, which keeps others of our kind away."""
    blocks = list(range(FIRST, LAST, BLOCK))
    secrets.SystemRandom().shuffle(blocks)
    for first in blocks:
        if (stake := _bound(first)) is not None:
            _stakes.append(stake)
            break
    return range(first + 1, first + BLOCK)


_stakes: list[socket.socket] = []


def _bound(port: int) -> socket.socket | None:
    sock = socket.socket()
    try:
        sock.bind((HOST, port))
    except OSError:
        sock.close()
        return None
    return sock
