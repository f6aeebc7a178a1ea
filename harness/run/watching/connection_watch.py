"""Watches whether the agent's processes have TCP connections to other machines while a run lasts (Linux, no root)."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from wedgehog.harness.network.tcp_diag import TcpDiag
from wedgehog.harness.record.events.run import ConnectionsWatched
from wedgehog.harness.run.watching.meanwhile import Meanwhile

LOOK_EVERY_S = 0.2
ASKED = 2
"""After so many looks in which no process of the agent held a socket, it belongs to another program.

One look can miss a process that is being forked.
"""
PROC = Path("/proc")


class ConnectionWatch(Meanwhile):
    """Looks for all runs of a campaign at once, again and again while it is open and a run lasts.

    A look asks the kernel for all sockets, which takes 0.3 to 3 ms.
    """

    def __init__(
        self,
        elsewhere: Callable[[], Mapping[int, str]] | None = None,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`elsewhere` finds the sockets that lead away, by inode (default: all of this machine)."""
        self._diag: TcpDiag | None = None
        self._elsewhere, self._pause = elsewhere, pause
        self._runs: list[RunConnections] = []

    async def __aenter__(self) -> Self:
        if self._elsewhere is None and (diag := TcpDiag.open()) is not None:
            self._diag, self._elsewhere = diag, diag.elsewhere
        return await super().__aenter__()

    async def __aexit__(self, *exc_info: object) -> None:
        await super().__aexit__(*exc_info)
        if self._diag is not None:
            self._diag.close()

    @contextlib.asynccontextmanager
    async def of(self, pids: Callable[[], Iterable[int]]) -> "AsyncIterator[RunConnections]":
        """The connections of one run; `pids` finds its agent's processes."""
        run = RunConnections(pids)
        # Only for this run: two looks at nearly the same time see the same, and the other runs count their looks.
        self._look([run])
        self._runs.append(run)
        try:
            yield run
        finally:
            self._runs.remove(run)

    async def _work(self) -> None:
        while True:
            await self._pause(LOOK_EVERY_S)
            self._look(self._runs)

    def _look(self, runs: "Sequence[RunConnections]") -> None:
        if runs and self._elsewhere is not None:
            with contextlib.suppress(OSError):
                elsewhere = self._elsewhere()
                for run in runs:
                    run.look(elsewhere)


class RunConnections:
    """What the looks have found for one run.

    It looks for the agent's processes only if a new socket leads to another machine: that takes more than 10 ms.
    """

    def __init__(self, pids: Callable[[], Iterable[int]]) -> None:
        """`pids` finds the agent's processes."""
        self._pids = pids
        self._others: dict[str, None] = {}
        self._asked: Counter[int] = Counter()
        """By inode of an open socket, the number of looks in which no process of the agent held it."""
        self._looks = 0

    @property
    def seen(self) -> ConnectionsWatched | None:
        """What was seen, as an event; None if nothing could be looked at."""
        others = tuple(self._others)
        return ConnectionsWatched(looks=self._looks, every_s=LOOK_EVERY_S, others=others) if self._looks else None

    def look(self, elsewhere: Mapping[int, str]) -> None:
        """Find those of these sockets that the agent holds."""
        self._looks += 1
        self._asked = Counter({inode: self._asked[inode] for inode in elsewhere})
        unknown = {inode: address for inode, address in elsewhere.items() if self._asked[inode] < ASKED}
        if any(address not in self._others for address in unknown.values()):
            held = {inode for pid in self._pids() for inode in _sockets_of(pid)}
            self._others |= {address: None for inode, address in unknown.items() if inode in held}
            self._asked.update(unknown.keys() - held)


def _sockets_of(pid: int) -> Iterator[int]:
    """The inodes of the sockets that a process holds; none if it has ended."""
    with contextlib.suppress(OSError):
        for file in (PROC / str(pid) / "fd").iterdir():
            with contextlib.suppress(OSError):
                target = str(file.readlink())
                if target.startswith("socket:["):
                    yield int(target[8:-1])
