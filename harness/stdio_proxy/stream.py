"""One direction of the pipe, from the source's descriptor to the sink's.

```
source ──▶ [held] ──▶ near ═══ the harness's link ═══▶ far ──▶ [arrived] ▶ sink
                 sent │                                     │ received
```

`near` and `far` are the two ends of the link, and this process has both. What was sent and not received is on its way,
so the end of the source is passed on when the last byte has arrived. That needs no half-close, which proxies do not
forward. No byte is sent into the link beyond `until`.
"""

import select
import socket
from collections.abc import Callable, Iterator
from typing import Literal

from wedgehog.harness.stdio_proxy.ends import CHUNK, InputEnd, OutputEnd

WINDOW = 1 << 17
"""This many bytes may be on their way. A proxy's sockets alone would hold megabytes, unlike a pipe.

They all fit into the far socket's buffer, so that an RST discards no byte that has arrived there."""

GONE = select.POLLERR | select.POLLHUP | select.POLLNVAL
NOW = -1
"""As a stop: the current byte."""


class ProxyStream:
    """Transfers bytes from `source` to `sink`."""

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
        """How the link ended, if it ended early."""
        self.abandoned = False
        """Whether its reader has closed the sink."""
        self.until: int | None = 0
        """The byte at which to stop; nothing is sent before the harness changes it. None: no stop."""
        self.asked = ""
        """The number of the harness's last `until`, as long as the stop has not been reported."""
        self._held = b""
        self._arrived = b""
        self._source_ended = False
        self._near_gone = False

    # ---- what can be done now

    @property
    def wants_source(self) -> bool:
        """Whether to read from the source: no more than a pipe would hold, and nothing beyond a stop."""
        if self.source is None or self._source_ended or self._held:
            return False
        if self._lost:
            return True
        return not self._near_gone and self.room > 0 and self.sent - self.delivered < WINDOW

    @property
    def wants_near(self) -> bool:
        """Whether held bytes may be sent into the link."""
        return bool(self._held) and self.room > 0 and not self._near_gone

    @property
    def wants_far(self) -> bool:
        """Whether to read from the link: the sink has taken all that came before."""
        return not self.ended and not self._arrived and not self.finished

    @property
    def room(self) -> int:
        """How many bytes may be sent before the stop."""
        return CHUNK if self.until is None else max(0, self.until - self.sent)

    @property
    def stopped(self) -> bool:
        """Whether it has reached its stop."""
        return self.until is not None and self.sent >= self.until

    @property
    def crossed(self) -> bool:
        """Whether all that was read has been delivered."""
        return not self._held and self.delivered == self.sent

    @property
    def finished(self) -> bool:
        """Whether nothing more will be delivered."""
        return self.sink is None

    @property
    def reset(self) -> bool:
        """Whether the link was reset and all that came before has been delivered."""
        return self.ended == "rst" and not self._arrived

    @property
    def _lost(self) -> bool:
        """Whether source bytes are read and dropped, so that the writer does not block."""
        return self.finished and self.name == "out"

    def interests(self) -> Iterator[tuple[int, int, Callable[[int], None]]]:
        """Descriptor, poll mask and callback for each event to wait for."""
        if self.wants_source and self.source is not None:
            yield self.source.descriptor, select.POLLIN, self.read_source
        if self.wants_near:
            yield self.near.fileno(), select.POLLOUT, self.write_near
        if self.wants_far:
            yield self.far.fileno(), select.POLLIN, self.read_far
        if self.sink is not None:  # with mask 0, poll still reports that the reader has closed it
            yield self.sink.descriptor, select.POLLOUT if self._arrived else 0, self.write_sink

    # ---- callbacks

    def read_source(self, _: int = 0) -> None:
        """Read a chunk and send what may be sent."""
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
        """Send held bytes, up to the stop."""
        if not self.wants_near:
            return
        room = self.room
        try:
            sent = self.near.send(self._held if len(self._held) <= room else self._held[:room])
        except BlockingIOError:
            return
        except OSError:  # the far end shows how the link ended, and after how many bytes
            self._near_gone, self._held = True, b""
            return
        self.sent += sent
        self._held = self._held[sent:]

    def read_far(self, _: int = 0) -> None:
        """Read what has arrived."""
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
        self._arrived = data
        self.write_sink()

    def write_sink(self, happened: int = 0) -> None:
        """Deliver what has arrived."""
        if self.sink is not None and happened & GONE and not self._arrived:
            self.abandon()
        if self.sink is None or not self._arrived:
            return
        written = self.sink.write(self._arrived)
        if written is None:
            self.abandon()
            return
        self.delivered += written
        self._arrived = self._arrived[written:]
        self._pass_end()

    def abandon(self) -> None:
        """The reader has closed the sink: close the source, so that the writer gets EPIPE as on a pipe."""
        self.abandoned = True
        self._close_sink()
        self._close_source()

    def stop(self, until: int | None, asked: str) -> None:
        """Stop sending at `until`; NOW for at once, None for no stop."""
        self.until = self.sent if until == NOW else until
        self.asked = asked

    # ---- ends

    def _pass_end(self) -> None:
        """Pass on the end, of the source or of a cut link, after the last byte."""
        if self._arrived or self.sink is None:
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
        self._arrived = self._held = b""

    def _close_source(self) -> None:
        if self.source is not None:
            self.source.close()
            self.source = None
