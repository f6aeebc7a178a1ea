"""What a provider keeps of its replies, for clients that name an earlier one instead of sending it again."""

from __future__ import annotations

from typing import Any, Final

_MOST_KEPT: Final = 10_000
_MOST_SESSIONS: Final = 1_000


class Memory:
    """Values by id; the oldest are forgotten where there would be over 10,000. `writes` counts what was ever kept."""

    def __init__(self) -> None:
        """Nothing is kept yet."""
        self.writes = 0
        self._kept: dict[str, Any] = {}

    def keep(self, id_: str, value: object) -> None:
        """Keep a value until it is dropped, or is the oldest of too many."""
        self.writes += 1
        self._kept[id_] = value
        if len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]

    def get(self, id_: str) -> Any:
        """Return what is kept under an id, else None."""
        return self._kept.get(id_)

    def drop(self, id_: str) -> bool:
        """Forget a value, and tell if there was one."""
        return self._kept.pop(id_, None) is not None


class Memories:
    """A memory for each session; that of the oldest session is forgotten where there would be over 1,000."""

    def __init__(self) -> None:
        """There is no session yet."""
        self._of: dict[str, Memory] = {}

    def of(self, session: str) -> Memory:
        """Return a session's memory."""
        memory = self._of.get(session)
        if memory is None:
            memory = self._of[session] = Memory()
            if len(self._of) > _MOST_SESSIONS:
                del self._of[next(iter(self._of))]
        return memory
