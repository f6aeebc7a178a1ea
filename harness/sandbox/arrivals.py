"""Output as it arrives, with the time of each piece: what follows an answer is no time that its user waits.

  beginning          (lost)          last megabyte         a byte came with the piece that holds it
├─────────────┼─ ─ ─ ─ ─ ─ ─ ─ ─ ─┼───────────────┤
"""

import asyncio
import sys
from bisect import bisect_left, bisect_right

TAIL_BYTES = 1_000_000
LOST = b"\n[\xe2\x80\xa6 the middle is in the log]\n"


class Arrivals:
    """Bytes that arrive piece by piece, and when each piece came."""

    def __init__(self, head_bytes: int = sys.maxsize) -> None:
        """Keep so much of the beginning; of what follows, the last `TAIL_BYTES`. Needs a running event loop."""
        self._loop = asyncio.get_running_loop()
        self._head_bytes = head_bytes
        self._head, self._tail = bytearray(), bytearray()
        self._ends: list[int] = []
        self._times: list[float] = []
        self._lost = 0
        """How many bytes between beginning and end are lost."""

    def add(self, piece: bytes) -> None:
        """Take a piece that arrives now."""
        room = max(0, self._head_bytes - len(self._head))
        self._head += piece[:room]
        self._tail += piece[room:]
        self._ends.append(self._lost + len(self._head) + len(self._tail))
        self._times.append(self._loop.time())
        if len(self._tail) > TAIL_BYTES:
            self._lose(len(self._tail) - TAIL_BYTES)

    @property
    def data(self) -> bytes:
        """All that is kept; a line of our own stands for what is lost."""
        return bytes(self._head + (LOST if self._lost else b"") + self._tail)

    @property
    def lines(self) -> list[str]:
        """The lines of the data; the last one has no end, and may be empty."""
        return self.data.decode("utf-8", "replace").split("\n")

    @property
    def last_s(self) -> float | None:
        """When the last byte came, by the time of the event loop; None before the first."""
        return self._times[-1] if self._times else None

    def line_s(self, index: int) -> float | None:
        """When this line of the data and all before it had come, but for blanks at the end."""
        return self._whole_s(b"\n".join(self.data.split(b"\n")[: index + 1]))

    @property
    def words_s(self) -> float | None:
        """When the last byte that is no blank came."""
        return self._whole_s(self.data)

    def _whole_s(self, beginning: bytes) -> float | None:
        """When this much of the data had come, but for blanks at its end; None if it is nothing else."""
        last = len(beginning.rstrip()) - 1
        if last >= len(self._head):
            last += self._lost - (len(LOST) if self._lost else 0)
        return self._times[bisect_right(self._ends, last)] if last >= 0 else None

    def _lose(self, count: int) -> None:
        """Drop the first bytes after the beginning, and the times of pieces of which nothing is kept."""
        del self._tail[:count]
        self._lost += count
        first = bisect_left(self._ends, len(self._head)) + 1
        last = bisect_right(self._ends, len(self._head) + self._lost)
        del self._ends[first:last], self._times[first:last]


def seconds_since(then_s: float | None) -> float | None:
    """Seconds since a time of the running event loop; None if that is not known."""
    return None if then_s is None else asyncio.get_running_loop().time() - then_s
