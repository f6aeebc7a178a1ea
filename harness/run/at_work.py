"""Whether the agent waits for its model, a command or its chat, so that what it has sent so far may not be all."""

from collections.abc import Callable

from wedgehog.harness.inject.injector import Injector
from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.call import RequestArrived
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.events.turn import StimulusGiven
from wedgehog.harness.record.history import History
from wedgehog.harness.scenario.trigger import CHAT


class AtWork:
    """Reads each event of a history that grows once."""

    def __init__(self, history: History, injector: Injector, look: Callable[[], None]) -> None:
        """`look` records what commands have reported."""
        self._history, self._injector, self._look = history, injector, look
        self._read = 0
        self._asked_s: dict[int, float] = {}
        """When each request came, apart from those for a title or a summary."""
        self._running_s: dict[str, float] = {}
        """When each command began that has not ended, by its token; none in the background."""
        self._asked = self._harmed = False
        """Whether the model was asked in this turn, and whether a fault on the chat has fired."""

    def since_s(self) -> float | None:
        """When the last open request came, or the last running command began; None if there is neither.

        The start of the run, if it only waits for its chat: a fault keeps a response back, or has kept the agent from
        asking its model.
        """
        self._look()
        events = self._history.events
        for event in events[self._read :]:
            self._take(event)
        self._read = len(events)
        asked = (self._asked_s[call] for call in self._injector.open_calls if call in self._asked_s)
        waits = (self._harmed and not self._asked) or self._injector.tools.holds_chat
        return max((*asked, *self._running_s.values()), default=0.0 if waits else None)

    def _take(self, event: Event) -> None:
        if isinstance(event, StimulusGiven):
            self._asked = self._harmed = False
        elif isinstance(event, RequestArrived) and not event.background:
            self._asked, self._asked_s[event.call] = True, event.at_s
        elif isinstance(event, FaultFired):
            self._harmed = self._harmed or event.link == CHAT
        elif isinstance(event, BeaconSeen) and event.phase == "done":
            self._running_s.pop(event.token, None)
        elif isinstance(event, BeaconSeen) and not event.background:
            self._running_s[event.token] = event.at_s
