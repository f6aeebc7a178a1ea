"""One direction of a TCP connection in memory.

```
write ─▶ │ on its way, `latency_s` long │ ─▶ │ unread │ ─▶ data_received
         ╰────────── at most BUFFER_BYTES together ───╯
```
"""

import errno
import os
from collections import deque
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from wedgehog.harness.sim.loop import SimLoop
    from wedgehog.harness.sim.tcp import SimTransport

BUFFER_BYTES = 1 << 18
"""What the buffers of both kernels take before a writer feels back pressure."""
ByteStreamEnd = Literal["fin", "rst"]


class ByteStream:
    """Bytes from one transport to the other, then FIN or RST, in order."""

    __slots__ = (
        "_coming",
        "_loop",
        "_scheduled",
        "_timer_is_set",
        "broken",
        "ended",
        "receiver",
        "sender",
        "taken",
        "unread",
    )
    _cancelled = False
    """Bytes on their way always arrive."""

    def __init__(self, loop: "SimLoop", sender: "SimTransport", receiver: "SimTransport") -> None:
        self._loop, self.sender, self.receiver = loop, sender, receiver
        self._coming: deque[tuple[float, bytes | ByteStreamEnd]] = deque()
        self._scheduled = self._timer_is_set = False
        self.unread: deque[bytes] = deque()
        self.taken = 0
        """Bytes that were sent and not read yet."""
        self.ended: ByteStreamEnd | None = None
        """How it ended for a reader, behind the unread bytes."""
        self.broken: OSError | None = None
        """What a writer the other way gets since an RST came: the reader has read a FIN, or it was reset."""

    @property
    def room(self) -> int:
        """How many more bytes the kernels take."""
        return max(0, BUFFER_BYTES - self.taken)

    def send(self, part: bytes | ByteStreamEnd) -> None:
        """Send bytes or an end; it arrives `latency_s` later."""
        loop = self._loop
        net, now = loop.net, loop.time()
        if isinstance(part, bytes):
            self.taken += len(part)
        if net.observe is not None:
            net.observe(now, self.sender.label, part)
        due = now + net.latency_s
        self._coming.append((due, part))
        if not self._timer_is_set:
            self._timer_is_set = True
            loop.run_at(due, self)

    def read(self, limit: int) -> bytes:
        """Take at most `limit` unread bytes; the sender may write as many again."""
        unread = self.unread
        if len(unread) == 1 and len(unread[0]) <= limit:
            part = unread.popleft()
            self._release(len(part))
            return part
        found, size = [], 0
        while unread and size < limit:
            part = unread.popleft()
            if size + len(part) > limit:
                unread.appendleft(part[limit - size :])
                part = part[: limit - size]
            found.append(part)
            size += len(part)
        self._release(size)
        return b"".join(found)

    def _release(self, size: int) -> None:
        self.taken -= size
        if size and self.sender.waits_for_room:
            self._loop.call_soon(self.sender.flush, context=self.sender.context)

    def _run(self) -> None:
        """The loop calls it when the first part is due."""
        try:
            self.receiver.context.run(self._arrive)
        except Exception as bug:
            trouble = {"message": "bytes could not be delivered", "exception": bug, "transport": self.receiver}
            self._loop.call_exception_handler(trouble)

    def _arrive(self) -> None:
        """Take what is due now; one timer serves all that is still on its way, so nothing is overtaken."""
        now, coming = self._loop.time(), self._coming
        while coming and coming[0][0] <= now:
            self._take(coming.popleft()[1])
        self._timer_is_set = bool(coming)
        if coming:
            self._loop.run_at(coming[0][0], self)
        self.receiver.arrived()

    def _take(self, part: bytes | ByteStreamEnd) -> None:
        if self.broken:
            return
        if part == "rst":
            number = errno.EPIPE if self.ended else errno.ECONNRESET
            self.broken = OSError(number, os.strerror(number))
        if not isinstance(part, bytes):
            self.ended = self.ended or part
        elif self.receiver.is_shut:  # a closed socket answers bytes with RST
            self._release(len(part))
            self.receiver.reset_peer()
        else:
            self.unread.append(part)
