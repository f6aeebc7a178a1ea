"""Whether the agent waits for its model, a command or its chat, so that what it has sent so far may not be all."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from wedgehog.harness.inject.injector import Injector
from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.call import RequestArrived
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.events.turn import StimulusGiven
from wedgehog.harness.record.history import History
from wedgehog.harness.scenario.trigger import CHAT


@dataclass(slots=True)
class _TurnWork:
    """What the agent did for one message."""

    asked_s: dict[int, float] = field(default_factory=dict)
    """When each request came, apart from those for a title or a summary."""
    running_s: dict[str, float] = field(default_factory=dict)
    """When each command began that has not ended, by its token; none in the background."""
    harmed: bool = False
    """Whether a fault on the chat has fired."""


class AtWork:
    """Reads each event of a history that grows once. A turn is named by the words of its message."""

    def __init__(self, history: History, injector: Injector, look: Callable[[], None]) -> None:
        """`look` records what commands have reported."""
        self._history, self._injector, self._look = history, injector, look
        self._read = 0
        self._turns: dict[str, int] = {}
        """Their numbers, by the markers of their messages."""
        self._work: defaultdict[int, _TurnWork] = defaultdict(_TurnWork)

    def has_asked(self, words: str) -> bool:
        """Whether the model was asked in this turn."""
        return bool(self._work_for(words).asked_s)

    def since_s(self, words: str) -> float | None:
        """When the last open request of this turn came, or its last running command began; None: there is neither.

        0, the start of the run, if it only waits for its chat: a fault keeps a response back, or has kept the agent
        from asking its model.
        """
        work, tools = self._work_for(words), self._injector.tools
        asked = (work.asked_s[call] for call in self._injector.open_calls if call in work.asked_s)
        waits = (work.harmed and not work.asked_s) or tools.holds_chat
        return max((*asked, *work.running_s.values()), default=0.0 if waits else None)

    def _work_for(self, words: str) -> _TurnWork:
        self._look()
        events = self._history.events
        for event in events[self._read :]:
            self._take(event)
        self._read = len(events)
        return self._work[self._turns.get(words.partition(" ")[0], 0)]

    def _take(self, event: Event) -> None:
        if isinstance(event, StimulusGiven):
            self._turns[event.marker] = event.turn
        elif isinstance(event, RequestArrived) and not event.background:
            self._work[event.turn].asked_s[event.call] = event.at_s
        elif isinstance(event, FaultFired) and event.link == CHAT:
            self._work[event.turn].harmed = True
        elif isinstance(event, BeaconSeen):
            running_s = self._work[int(event.token.partition(".")[0])].running_s
            if event.phase == "done":
                running_s.pop(event.token, None)
            elif not event.background:
                running_s[event.token] = event.at_s
