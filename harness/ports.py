"""Ports for servers that have to be told theirs: none is given twice, and none that the system may give to others.

Between the choice of a port and the server's own bind somebody else could take it. Ports below the system's ephemeral
range are given to nobody by chance, and this process never gives one again.
"""

import secrets
import socket

FIRST, LAST = 20_000, 32_000
HOST = "127.0.0.1"
_given: set[int] = set()


def free_port() -> int:
    """A loopback port on which nobody listens.

    Raises:
        OSError: none was found.
    """
    for _ in range(1_000):
        port = FIRST + secrets.randbelow(LAST - FIRST)
        if port not in _given and _is_free(port):
            _given.add(port)
            return port
    raise OSError(f"no free port between {FIRST} and {LAST}")


def somebody_listens(port: int) -> bool:
    """Whether a connection to it is accepted; one that lingers there is nobody who listens."""
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
