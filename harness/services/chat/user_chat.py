"""The chat of one user with the agent: what each of them has said there."""

from typing import Protocol

from wedgehog.harness.record.clock import Clock
from wedgehog.harness.services.chat.api import Sent
from wedgehog.harness.services.chat.typing_sign import TypingSign


class Brings(Protocol):
    """Brings what users say to the agent: the chat service."""

    def put(self, text: str, chat: int = 0) -> int:
        """Bring a message from this chat; its number."""

    async def deliver_again(self, text: str, *, other_event: bool = False, chat: int = 0) -> None:
        """Deliver the chat's last message once more."""


class UserChat:
    """One chat of a service, by its place among them. A message has a number that no other chat of the service has."""

    def __init__(self, place: int, clock: Clock, service: Brings) -> None:
        self.place, self._clock, self._service = place, clock, service
        self.handed = 0
        """The number of the last message that the agent received."""
        self._sent: dict[int, Sent] = {}
        """By their ids."""
        self._behind: dict[int, int] = {}
        """By the number of a message: the last id that any chat had when the agent got that message."""
        self.typing = TypingSign(clock)

    def put(self, text: str) -> int:
        """Its user writes a message; its number."""
        return self._service.put(text, self.place)

    async def deliver_again(self, text: str, *, other_event: bool = False) -> None:
        """The agent gets the last message once more, with the same id, or as its other event."""
        await self._service.deliver_again(text, other_event=other_event, chat=self.place)

    def hand_over(self, number: int, last_id: int) -> None:
        """The agent gets a message now: what it sends here from now on, with ids above `last_id`, is the answer."""
        self.handed = max(self.handed, number)
        self._behind.setdefault(number, last_id)

    def sent_since(self, number: int) -> list[Sent]:
        """What the agent has sent here since it got the message of this number, as the user reads it now."""
        behind = self._behind.get(number)
        return [it for id_, it in self._sent.items() if behind is not None and id_ > behind]

    def find(self, id_: int) -> Sent | None:
        """A message of the agent; None if it is gone, or in another chat."""
        return self._sent.get(id_)

    def show(self, id_: int, words: str) -> None:
        """A message of the agent comes, or is changed."""
        self._sent[id_] = Sent(words, self._clock.now())

    def take_back(self, id_: int) -> None:
        """The agent deletes a message, if it is here."""
        self._sent.pop(id_, None)
