"""The open connections of a chat service, and how many bytes it has written on each."""

from aiohttp import web

from wedgehog.harness.network.base import Address


class Connections:
    """By the protocol of aiohttp that serves it."""

    def __init__(self) -> None:
        self._written: dict[object, tuple[Address, int]] = {}

    def of(self, request: web.BaseRequest) -> tuple[Address, int]:
        """The peer's address of a request's connection, and the bytes written on it so far."""
        peer = request.transport.get_extra_info("peername")[:2] if request.transport else ("", 0)
        return self._written.setdefault(request.protocol, (peer, 0))

    def wrote(self, request: web.BaseRequest, count: int) -> None:
        """So many bytes more; of a connection that is gone nothing is kept."""
        if request.protocol in self._written:
            conn, written = self._written[request.protocol]
            self._written[request.protocol] = (conn, written + count)

    def gone(self, protocol: object) -> Address | None:
        """The connection has ended; return its peer's address, None if it had no request."""
        return self._written.pop(protocol, (None, 0))[0]
