"""The sign "typing …" of one chat: whether its user reads it now, and whether it may come again."""

from dataclasses import dataclass

from wedgehog.harness.record.clock import Clock

LATE_S = 1.0
"""By so much a program may be late that repeats the sign."""
USUAL_PAUSE_S = 5.0
"""Most programs repeat it after this time, also where it lasts longer."""


@dataclass
class TypingSign:
    """A sign that ends by itself, or with the next message of the agent."""

    clock: Clock
    _since_s: float = 0.0
    _lasts_s: float = 0.0
    _until_s: float = 0.0
    _message: int = 0
    _repeated: bool = False

    def show(self, seconds: float, message: int) -> None:
        """The agent types, for the user's message of this number: its user reads it for so long."""
        again = message == self._message and self.clock.now() < self._since_s + self._lasts_s + LATE_S
        self._since_s, self._lasts_s, self._message = self.clock.now(), seconds, message
        self._until_s, self._repeated = self._since_s + seconds, self._repeated or again

    def end(self) -> None:
        """A message of the agent comes."""
        self._until_s = 0.0

    @property
    def is_shown(self) -> bool:
        """Whether its user reads it now."""
        return self.clock.now() < self._until_s

    @property
    def goes_on(self) -> bool:
        """Whether it is shown, or may come again in the time in which this agent, or most of them, repeat it."""
        pause_s = self._lasts_s if self._repeated else min(self._lasts_s, USUAL_PAUSE_S)
        comes_again = bool(pause_s) and self.clock.now() < self._since_s + pause_s + LATE_S
        return self.is_shown or comes_again
