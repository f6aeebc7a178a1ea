"""JSON lines on loopback: the protocol of the tool servers' control connection and of the database."""

import asyncio
import contextlib
import json
from collections.abc import Mapping
from typing import Any, Self

from wedgehog.harness.network.base import Address
from wedgehog.harness.network.ports import HOST

LONGEST_LINE_BYTES = 64_000_000


class LineServer:
    """Listens on a free loopback port. An async context manager; its exit closes all connections."""

    def __init__(self) -> None:
        self._open: set[asyncio.Task[None]] = set()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection; a peer error closes only that connection."""
        raise NotImplementedError

    @property
    def address(self) -> Address:
        """The address on which it listens."""
        host, port = self._listening.sockets[0].getsockname()[:2]
        return host, port

    async def __aenter__(self) -> Self:
        self._listening = await asyncio.start_server(self._serve, HOST, 0, limit=LONGEST_LINE_BYTES)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._listening.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  asyncio runs us in one
        self._open.add(task)
        try:
            await self._talk(reader, writer)
        except (OSError, ValueError, asyncio.CancelledError):
            pass  # the peer is gone, or sent a bad line
        finally:
            self._open.discard(task)
            with contextlib.suppress(OSError):
                writer.close()


def line_of(words: Mapping[str, Any]) -> bytes:
    """Encode one line; values that JSON does not support are written as text."""
    return json.dumps(words, default=str).encode() + b"\n"
