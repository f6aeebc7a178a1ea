"""Whether the agent still waits for its model, a command or its chat: then it may say more than it has said so far."""

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from wedgehog.harness.inject.injector import Injector
from wedgehog.harness.record.error_words import plain
from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.call import HungUp, ReplyEnded, RequestArrived, RequestRefused
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.events.turn import StimulusGiven
from wedgehog.harness.record.history import History
from wedgehog.harness.run.recording.placing import SentReply
from wedgehog.harness.scenario.trigger import CHAT


@dataclass(slots=True)
class _TurnWork:
    """What the agent did for one message."""

    asked_s: dict[int, float] = field(default_factory=dict)
    """When each request came, apart from those for a title or a summary."""
    ended: set[int] = field(default_factory=set)
    """Those of them whose reply is over."""
    running_s: dict[str, float] = field(default_factory=dict)
    """When each command began that has not ended, by its token; none in the background."""
    harmed: bool = False
    """Whether a fault on the chat has fired."""
    ended_s: float | None = None
    """When the last reply ended."""
    answer: str = ""
    """Its words; empty if it was no answer."""
    beginnings: list[str] = field(default_factory=list)
    """What the replies said that were no answer."""


class AtWork:
    """Reads each event of a history that grows once. A turn is named by the words of its message."""

    def __init__(
        self,
        history: History,
        injector: Injector,
        look: Callable[[], None],
        sent: Callable[[int], SentReply | None] = lambda call: None,
    ) -> None:
        """`look` records what commands have reported; `sent` knows the reply to a request."""
        self._history, self._injector, self._look, self._sent = history, injector, look, sent
        self._read = 0
        self._turns: dict[str, int] = {}
        """Their numbers, by the markers of their messages."""
        self._work: defaultdict[int, _TurnWork] = defaultdict(_TurnWork)

    def has_asked(self, words: str) -> bool:
        """Whether the model was asked in this turn."""
        return bool(self._work_for(words).asked_s)

    def since_s(self, words: str, shown: str) -> float | None:
        """When the last open request of this turn came, or its last running command began; None: there is neither.

        Infinite if `shown`, its last message, is only a part of a reply that still comes. 0, the start of the run, if
        it only waits for its chat: a fault keeps a response back, or has kept the agent from asking its model.
        """
        work, tools = self._work_for(words), self._injector.tools
        coming = [call for call in work.asked_s if call not in work.ended]
        if any(self._shows_part_of(call, shown) for call in coming):
            return math.inf
        asked = (work.asked_s[call] for call in self._injector.open_calls if call in work.asked_s)
        waits = (work.harmed and not work.asked_s) or tools.holds_chat
        return max((*asked, *work.running_s.values()), default=0.0 if waits else None)

    def _shows_part_of(self, call: int, shown: str) -> bool:
        """Whether a message has words of the reply to a request, and the reply has more of them, or tool calls."""
        sent, words = self._sent(call), plain(shown)
        whole = plain(sent.words) if sent is not None else ""
        calls = sent is not None and bool(sent.offers) and not sent.last_words
        return bool(words) and words in whole and (words != whole or calls)

    def left_off_s(self, words: str, shown: str, at_s: float) -> float | None:
        """When the last reply ended, if it was no answer and the agent has said no word of it since.

        `shown` is its last message, of the time `at_s`. An agent that shows a growing reply may show some of it only
        after it has broken off.
        """
        work = self._work_for(words)
        if work.ended_s is None or work.answer:
            return None
        may_follow = at_s <= work.ended_s or any(plain(shown) in it for it in work.beginnings)
        return work.ended_s if may_follow else None

    def begun_s(self, words: str, shown: str) -> float | None:
        """When the answer of this turn ended, if `shown` is only the beginning of it."""
        work = self._work_for(words)
        return work.ended_s if _begins(work.answer, plain(shown)) else None

    def unread(self, words: str, shown: str) -> bool:
        """Whether the model has given the whole answer of this turn, and `shown` has not its last word."""
        work = self._work_for(words)
        last_word = _last_word(work.answer)
        return bool(last_word) and not set(work.asked_s) - work.ended and last_word not in plain(shown)

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
        elif isinstance(event, ReplyEnded | RequestRefused):
            self._take_end(event)
        elif isinstance(event, HungUp):
            for work in self._work.values():
                work.ended.add(event.call)
        elif isinstance(event, FaultFired) and event.link == CHAT:
            self._work[event.turn].harmed = True
        elif isinstance(event, BeaconSeen):
            running_s = self._work[int(event.token.partition(".")[0])].running_s
            if event.phase == "done":
                running_s.pop(event.token, None)
            elif not event.background:
                running_s[event.token] = event.at_s

    def _take_end(self, event: ReplyEnded | RequestRefused) -> None:
        work = next((it for it in self._work.values() if event.call in it.asked_s), None)
        if work is None:
            return
        work.ended.add(event.call)
        said = plain(event.text_delivered) if isinstance(event, ReplyEnded) else ""
        work.ended_s, work.answer = event.at_s, ""
        if isinstance(event, ReplyEnded) and said and not _breaks_off(event):
            work.answer = event.text_delivered
        elif said:
            work.beginnings.append(said)


def _begins(answer: str, shown: str) -> bool:
    """Whether a message shows the beginning of an answer, and not the whole of it."""
    whole = plain(answer)
    return bool(shown) and whole.startswith(shown) and whole != shown


def _last_word(text: str) -> str:
    return next(filter(None, map(plain, reversed(text.split()))), "")


def _breaks_off(reply: ReplyEnded) -> bool:
    """Whether a reply with words is no answer, so that the agent has more to do."""
    return reply.how != "complete" or reply.stop != "end" or (reply.damaged and not reply.says_all)
