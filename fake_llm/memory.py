"""Replies that a provider stores, for clients that refer to an earlier reply by its id."""

from typing import Any, Final

_MOST_KEPT: Final = 10_000
_MOST_SESSIONS: Final = 1_000


class Memory:
    """Up to 10,000 values by id; the oldest is dropped first. `writes` counts all values ever stored."""

    def __init__(self) -> None:
        """Start empty."""
        self.writes = 0
        self._kept: dict[str, Any] = {}

    def keep(self, id_: str, value: object) -> None:
        """Store a value."""
        self.writes += 1
        self._kept[id_] = value
        if len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]

    def get(self, id_: str) -> Any:
        """Return the value of an id, else None."""
        return self._kept.get(id_)

    def drop(self, id_: str) -> bool:
        """Drop a value; return True if there was one."""
        return self._kept.pop(id_, None) is not None


class Memories:
    """A memory for each of up to 1,000 sessions; the oldest is dropped first."""

    def __init__(self) -> None:
        """Start without sessions."""
        self._of: dict[str, Memory] = {}

    def of(self, session: str) -> Memory:
        """Return a session's memory."""
        memory = self._of.get(session)
        if memory is None:
            memory = self._of[session] = Memory()
            if len(self._of) > _MOST_SESSIONS:
                del self._of[next(iter(self._of))]
        return memory
