"""A connect of our own, which proves that a port refuses connections."""

import socket

from wedgehog.harness.network.base import Address


def refused(address: Address, timeout_s: float = 2.0) -> bool:
    """Return whether a TCP connect is refused (blocking; call it through `asyncio.to_thread`)."""
    try:
        socket.create_connection(address, timeout=timeout_s).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False
