"""Our own knock at a port: a closed port sees nobody knock, so this is how a refusal is proved."""

import socket

from wedgehog.harness.network.base import Address


def refused(address: Address, timeout_s: float = 2.0) -> bool:
    """Whether a TCP connect is refused (blocking; call it through `asyncio.to_thread`)."""
    try:
        socket.create_connection(address, timeout=timeout_s).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False
