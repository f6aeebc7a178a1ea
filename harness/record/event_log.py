"""The events of one run as they are recorded: appended, and sealed at the end."""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, Self, TypeVar

from wedgehog.harness.record.clock import Clock
from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.run import RunStarted
from wedgehog.harness.record.events.turn import TurnEnded

E = TypeVar("E", bound=Event)
T = TypeVar("T")


class EventLog:
    """The events of one run, in order."""

    def __init__(
        self,
        clock: Clock | None = None,
        sink: Callable[[Event], object] = lambda event: None,
        events: Iterable[Event] = (),
    ) -> None:
        """An empty history, or a finished one with `events`; `sink` gets each event at once."""
        self._clock, self._sink = clock, sink
        self.events: list[Event] = list(events)
        self.sealed = False
        self._kept: dict[object, Any] = {}

    def add(self, event: E) -> E:
        """Append one event; sets its id, and its time unless given. RuntimeError if the history is sealed."""
        if self.sealed:
            raise RuntimeError("the history is sealed")
        at_s = event.at_s if event.at_s >= 0 or self._clock is None else self._clock.now()
        placed = event.placed(len(self.events), at_s)
        self.events.append(placed)
        self._sink(placed)
        return placed

    def add_unless_sealed(self, event: Event) -> None:
        """Append one event that may also come after the end of the run, and then does not count."""
        if not self.sealed:
            self.add(event)

    def seal(self) -> Self:
        """End the history; from then on its views may be read."""
        self.sealed = True
        return self

    def of(self, kind: type[E]) -> Iterator[E]:
        """All events of one kind, in order."""
        if not self.sealed:
            return (event for event in self.events if isinstance(event, kind))
        return iter(self.once(kind, lambda: [event for event in self.events if isinstance(event, kind)]))

    def once(self, key: object, compute: Callable[[], T]) -> T:
        """What `compute` returns; of a sealed history it is computed once for each key."""
        if not self.sealed:
            return compute()
        try:
            kept: T = self._kept[key]
        except KeyError:
            kept = self._kept[key] = compute()
        return kept

    def first(self, kind: type[E]) -> E | None:
        """The first event of one kind."""
        return next(self.of(kind), None)

    @property
    def end_id(self) -> int:
        """An id above those of all events."""
        return self.events[-1].id + 1 if self.events else 0

    @property
    def run(self) -> RunStarted:
        """The settings of this run; empty ones if none are recorded."""
        return self.first(RunStarted) or RunStarted(
            scenario="", agent="", network="", time_scale=1.0, started="1970-01-01T00:00:00+00:00"
        )

    @cached_property
    def watched_until(self) -> int:
        """The id of the last turn's end, after which the harness stops the agent and the network."""
        return max((event.id for event in self.of(TurnEnded)), default=self.end_id)
