"""When an answer arrived; the time after that does not count as time that its user waits."""

import asyncio
from bisect import bisect_left
from collections.abc import Callable


class Arrivals:
    """Bytes that arrive piece by piece, and when each piece came."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._ends: list[int] = []
        self._times: list[float] = []

    def add(self, piece: bytes) -> None:
        """Take a piece that arrives now."""
        self._data += piece
        self._ends.append(len(self._data))
        self._times.append(asyncio.get_running_loop().time())

    @property
    def data(self) -> bytes:
        """All that has arrived."""
        return bytes(self._data)

    def since(self, holds: Callable[[bytes], bool]) -> float | None:
        """When `holds` was first true of all that had arrived, by the time of the event loop; None if it never was.

        It must stay true when more arrives.
        """
        index = bisect_left(self._ends, True, key=lambda end: holds(bytes(self._data[:end])))
        return self._times[index] if index < len(self._times) else None


def seconds_since(then_s: float | None) -> float | None:
    """Seconds since a time of the running event loop; None if that is not known."""
    return None if then_s is None else asyncio.get_running_loop().time() - then_s
