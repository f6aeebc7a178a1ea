"""Two descriptors for `select.poll`: one is never readable, one always."""

import os
from functools import cached_property


class PollFds:
    """Made when they are first asked for, and kept: every simulated socket shares them."""

    @cached_property
    def silent(self) -> int:
        """Never readable."""
        self._writer: int
        reader, self._writer = os.pipe()
        return reader

    @cached_property
    def readable(self) -> int:
        """Always readable: the end of a closed pipe."""
        reader, writer = os.pipe()
        os.close(writer)
        return reader


POLL_FDS = PollFds()
