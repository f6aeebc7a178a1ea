"""One direction of the pipe, from the descriptor that somebody writes to the one that somebody reads.

```
source ──▶ [held] ──▶ near ═══ the harness's link ═══▶ far ──▶ [come] ──▶ sink
                 sent │                                     │ received
```

`near` and `far` are two ends of the link, and both are here: what was sent and not received is on its way, so the end
of the source is passed on exactly when the last byte has crossed, without a half-close, which crosses no proxy. It is
also the gate: no byte is written into the link beyond `until`.
"""

import select
import socket
from collections.abc import Callable, Iterator
from typing import Literal

from wedgehog.harness.stdio_proxy.ends import CHUNK, InputEnd, OutputEnd

WINDOW = 1 << 17
"""So many bytes may be on their way: a proxy's sockets alone would hold megabytes, and be no pipe.

They all fit into the far socket's buffer, so that an RST which overtakes a late reader takes nothing with it."""

GONE = select.POLLERR | select.POLLHUP | select.POLLNVAL
NOW = -1
"""As a stop: where it stands."""


class ProxyStream:
    """Bytes on their way from `source` to `sink`."""

    def __init__(
        self, name: Literal["out", "in"], source: InputEnd, sink: OutputEnd, near: socket.socket, far: socket.socket
    ) -> None:
        """`near` and `far` must not block."""
        self.name = name
        self.source: InputEnd | None = source
        self.sink: OutputEnd | None = sink
        self.near, self.far = near, far
        self.sent = self.received = self.delivered = 0
        self.ended: Literal["", "fin", "rst"] = ""
        """How the link ended, before its time."""
        self.abandoned = False
        """Whether its reader has gone."""
        self.until: int | None = 0
        """Not a byte passes before the harness says so."""
        self.asked = ""
        """The number of its last word about stops, where it still waits for us to stand."""
        self._held = b""
        self._come = b""
        self._source_ended = False
        self._near_gone = False

    # ---- what can be done now

    @property
    def wants_source(self) -> bool:
        """Whether more is wanted from the source: as much as a pipe would hold, and never behind a stop."""
        if self.source is None or self._source_ended or self._held:
            return False
        if self._lost:
            return True
        return not self._near_gone and self.room > 0 and self.sent - self.delivered < WINDOW

    @property
    def wants_near(self) -> bool:
        """Whether bytes wait that may go into the link."""
        return bool(self._held) and self.room > 0 and not self._near_gone

    @property
    def wants_far(self) -> bool:
        """Whether the link may give more: what came before has been written, or the sink is gone."""
        return not self.ended and not self._come and not self.finished

    @property
    def room(self) -> int:
        """How many bytes may be sent before the stop."""
        return CHUNK if self.until is None else max(0, self.until - self.sent)

    @property
    def stands(self) -> bool:
        """Whether it has come to its stop."""
        return self.until is not None and self.sent >= self.until

    @property
    def crossed(self) -> bool:
        """Whether all that was read has been delivered."""
        return not self._held and self.delivered == self.sent

    @property
    def finished(self) -> bool:
        """Whether nothing will be delivered any more."""
        return self.sink is None

    @property
    def reset(self) -> bool:
        """Whether the link was reset, and what had crossed before is where it can be read."""
        return self.ended == "rst" and not self._come

    @property
    def _lost(self) -> bool:
        """Whether what is read has nowhere to go, and is read only so that its writer lives on undisturbed."""
        return self.finished and self.name == "out"

    def interests(self) -> Iterator[tuple[int, int, Callable[[int], None]]]:
        """Descriptors to wait for, for what, and what to do when it comes."""
        if self.wants_source and self.source is not None:
            yield self.source.descriptor, select.POLLIN, self.read_source
        if self.wants_near:
            yield self.near.fileno(), select.POLLOUT, self.write_near
        if self.wants_far:
            yield self.far.fileno(), select.POLLIN, self.read_far
        if self.sink is not None:  # without anything to write: to hear that the reader has gone
            yield self.sink.descriptor, select.POLLOUT if self._come else 0, self.write_sink

    # ---- doing it

    def read_source(self, _: int = 0) -> None:
        """Take a chunk, no more than may be sent."""
        if self.source is None:
            return
        data = self.source.read()
        if data:
            self._held = b"" if self._lost else data
            self.write_near()
        elif data is not None:
            self._source_ended = True
            self._pass_end()

    def write_near(self, _: int = 0) -> None:
        """Send what may be sent."""
        if not self.wants_near:
            return
        room = self.room
        try:
            sent = self.near.send(self._held if len(self._held) <= room else self._held[:room])
        except BlockingIOError:
            return
        except OSError:  # its other end tells how it ended, and how much came through
            self._near_gone, self._held = True, b""
            return
        self.sent += sent
        self._held = self._held[sent:]

    def read_far(self, _: int = 0) -> None:
        """Take what has crossed."""
        try:
            data = self.far.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            self.ended = "rst"
            return
        if not data:
            self.ended = "fin"
            self._pass_end()
            return
        self.received += len(data)
        self._come = data
        self.write_sink()

    def write_sink(self, happened: int = 0) -> None:
        """Deliver what has crossed."""
        if self.sink is not None and happened & GONE and not self._come:
            self.abandon()
        if self.sink is None or not self._come:
            return
        written = self.sink.write(self._come)
        if written is None:
            self.abandon()
            return
        self.delivered += written
        self._come = self._come[written:]
        self._pass_end()

    def abandon(self) -> None:
        """The reader has gone: the writer shall hear of it as it would on a pipe, by EPIPE."""
        self.abandoned = True
        self._close_sink()
        self._close_source()

    def stop(self, until: int | None, asked: str) -> None:
        """Send nothing beyond this byte; NOW for not a byte more, None for no stop."""
        self.until = self.sent if until == NOW else until
        self.asked = asked

    def close(self) -> None:
        """Both ends at once, as when the process has died."""
        self._close_sink()
        self._close_source()
        self.near.close()
        self.far.close()

    # ---- ends

    def _pass_end(self) -> None:
        """The end passes behind the last byte: of the source, or of what a fault let through."""
        if self._come or self.sink is None:
            return
        if self.ended:
            self._close_sink()
            if self.name == "in":
                self._close_source()
        elif self._source_ended and self.crossed:
            self._close_sink()

    def _close_sink(self) -> None:
        if self.sink is not None:
            self.sink.close()
            self.sink = None
        self._come = self._held = b""

    def _close_source(self) -> None:
        if self.source is not None:
            self.source.close()
            self.source = None
