"""What a simulated event loop refuses: real sockets, descriptors and pipes."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

from wedgehog.harness.sim.errors import SimUnsupportedError


def _refuses(what: str) -> Callable[..., Any]:
    def refuse(self: "RefusesRealThings", *args: Any, **options: Any) -> Any:
        raise self.refusal(what)

    return refuse


class RefusesRealThings:
    """The methods of an event loop that cannot be simulated, and what was refused."""

    @cached_property
    def unsupported(self) -> list[SimUnsupportedError]:
        """What was refused, in order: code may catch the error and go on."""
        return []

    def refusal(self, what: str) -> SimUnsupportedError:
        """The error of code that does what is not simulated; it is noted."""
        self.unsupported.append(SimUnsupportedError(what))
        return self.unsupported[-1]

    add_reader: Any = _refuses("a real file descriptor")
    add_writer: Any = add_reader
    sock_accept = sock_recv = sock_recv_into = sock_sendall = _refuses("a real socket")
    connect_accepted_socket = _refuses("a real socket")
    create_datagram_endpoint = _refuses("UDP")
    create_unix_connection = create_unix_server = _refuses("a Unix socket")
    connect_read_pipe = connect_write_pipe = _refuses("a pipe")

    def remove_reader(self, fd: Any) -> bool:
        """There is no reader."""
        return False

    def remove_writer(self, fd: Any) -> bool:
        """There is no writer."""
        return False
