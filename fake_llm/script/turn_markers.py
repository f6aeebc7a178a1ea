"""The turns of a run by their markers: which are under way, and which of them a request shows."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from wedgehog.fake_llm.conversation import Conversation, Message
from wedgehog.fake_llm.script.openings import QuotedMessage


@dataclass
class TurnMarkers:
    """The marker, the words and the session of each turn begun; all markers are lower case."""

    _open: list[int] = field(default_factory=list)
    _markers: dict[int, str] = field(default_factory=dict)
    _words: dict[int, str] = field(default_factory=dict)
    _sessions: dict[int, str] = field(default_factory=dict)

    def begin(self, turn: int, marker: str, words: str, session: str) -> None:
        """Begin a turn of a session, whose stimulus has this marker, and these words after it."""
        self._open.append(turn)
        self._sessions[turn] = session
        self._markers[turn] = marker.lower()
        self._words[turn] = words

    def end(self, turn: int | None) -> None:
        """End this turn, or all turns."""
        self._open = [other for other in self._open if turn not in (None, other)]

    @property
    def under_way(self) -> int:
        """The last turn begun that has not ended, else 0."""
        return self._open[-1] if self._open else 0

    def under_way_with(self, turn: int) -> int:
        """The last turn begun that has not ended, of the session of this turn, else 0; turn 0 is of every session."""
        session = self._sessions.get(turn)
        return next((it for it in reversed(self._open) if session is None or self._sessions[it] == session), 0)

    def is_open(self, turn: int) -> bool:
        """Whether this turn is under way."""
        return turn in self._open

    @property
    def in_several_sessions(self) -> bool:
        """Whether turns of two sessions or more are under way."""
        return len({self._sessions[turn] for turn in self._open}) > 1

    def last_in(self, conversation: Conversation) -> int:
        """The highest turn whose marker stands in the last message of the user that holds one, else 0."""
        for message in reversed(conversation.messages):
            text = message.text.lower()
            found = [turn for turn, marker in self._markers.items() if message.role == "user" and marker in text]
            if found:
                return max(found)
        return 0

    def quoted_in(self, conversation: Conversation, turn: int) -> QuotedMessage | None:
        """The user's message of a turn, if a message of the user in the request holds its marker."""
        marker = self._markers.get(turn, "")
        users = (message.text.lower() for message in conversation.messages if message.role == "user")
        held = bool(marker) and any(marker in text for text in users)
        return QuotedMessage(marker, self._words.get(turn, "")) if held else None

    def is_of_user(self, message: Message) -> bool:
        """Whether a message is the user's own, with a marker, and not one that the agent made."""
        text = message.text.lower()
        return message.role == "user" and any(marker in text for marker in self._markers.values())

    def first_place(self, text: str) -> int | None:
        """Where the first marker begins in a text of lower case; None if it holds none."""
        return min((at for at in map(text.find, self._markers.values()) if at >= 0), default=None)

    def since(self, conversation: Conversation, turn: int) -> tuple[Message, ...]:
        """The messages from the last one of the user that holds the turn's marker, else all messages."""
        messages, marker = conversation.messages, self._markers.get(turn, "")
        for index in range(len(messages) - 1, -1, -1):
            if messages[index].role == "user" and marker and marker in messages[index].text.lower():
                return messages[index:]
        return messages

    def seen(self, conversation: Conversation) -> tuple[int, ...]:
        """Turns whose marker stands in any message."""
        text = "\n".join(message.text.lower() for message in conversation.messages)
        return tuple(sorted(turn for turn, marker in self._markers.items() if marker in text))

    def doubled(self, conversation: Conversation) -> tuple[int, ...]:
        """Turns whose first message stands in it again: two equal reminders that quote it are no copies of it."""
        said = [message.text.lower() for message in conversation.messages if message.role == "user"]
        if len(set(said)) == len(said):
            return ()
        firsts = ((turn, self._first_of(turn, said)) for turn in sorted(self._markers))
        return tuple(turn for turn, first in firsts if first and said.count(first) > 1)

    def repeated(self, conversation: Conversation) -> tuple[int, ...]:
        """Those of them whose two messages stand one right behind the other."""
        said = [message.text.lower() if message.role == "user" else "" for message in conversation.messages]
        firsts = ((turn, self._first_of(turn, said)) for turn in sorted(self._markers))
        return tuple(turn for turn, first in firsts if first and (first, first) in pairwise(said))

    def _first_of(self, turn: int, said: Sequence[str]) -> str:
        """The first message that holds the marker of a turn; else empty."""
        return next((text for text in said if self._markers[turn] in text), "")
