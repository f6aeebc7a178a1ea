"""The keys of an agent that is a service: over HTTP, or behind a chat."""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from wedgehog.harness.agents.output_source import OutputSource
from wedgehog.harness.agents.spec_part import Argv, PositiveSeconds, RegularExpression, Source, SpecPart
from wedgehog.harness.scenario.mistake import BadValueError
from wedgehog.harness.services.chat.api import ChatEvent


class HttpCall(SpecPart):
    """A request that stops a turn or wakes the service up."""

    url: str
    method: Literal["POST", "DELETE"] = "POST"
    """The HTTP client repeats other methods when a connection is lost; a wake-up must be sent once."""
    body: Any = None
    headers: dict[str, str] = {}


class Http(SpecPart):
    """An agent that is a service: one HTTP request is one turn."""

    start: Argv | None = None
    base: str | None = None
    ready: str = "/"
    url: str
    headers: dict[str, str] = {}
    body: Any = None
    answer: Source = "text"
    error: Source | None = None
    abort: HttpCall | None = None
    wake_up: HttpCall | None = None

    @model_validator(mode="after")
    def _is_started_or_runs(self) -> Self:
        if (self.start is None) == (self.base is None):
            raise BadValueError("expected either `start` (we start the service) or `base` (it is already running)")
        if self.base and not re.match(r"https?://[^/]+", self.base):
            raise BadValueError(f"expected an address like http://127.0.0.1:8000, found {self.base!r}", "base")
        for key in ("answer", "error"):
            if OutputSource.parse(getattr(self, key) or "text").kind not in ("text", "json", "jsonl", "joined"):
                says = "expected `text`, `json:PATH`, `jsonl:PATH` or `joined:PATH`, which are read from the HTTP reply"
                raise BadValueError(says, key)
        return self


class Chat(SpecPart):
    """An agent that gets its messages from a chat service, and sends its answers there."""

    start: Argv
    quiet_s: PositiveSeconds = 1
    """A turn ends when the agent has sent a message and then nothing for this time; real seconds."""
    busy: RegularExpression | None = None
    """A message that fits says that the agent still works; it edits or deletes it later."""
    webhook: Annotated[str, Field(pattern="^/")] | None = None
    """The path at which it takes its messages, on {port}; without it, the agent polls for them."""
    abort: str | None = None
    """The message by which its user stops a turn, such as `/stop`."""
    api: Literal["telegram", "slack", "whatsapp", "discord"] = "telegram"
    """The vendor whose API the chat service speaks."""
    event: ChatEvent = "message"
    """Of Slack and Discord: a direct message, a mention in a channel, or (Slack) one whose app has subscribed to
    messages there too."""
    users: Literal[1, 2] = 1
    """How many users may write to it at once, each in a chat of their own; with one, it has one session in a run."""

    @property
    def has_socket(self) -> bool:
        """Whether its messages come over a WebSocket: Discord's gateway, or Slack's socket mode."""
        return self.api == "discord" or (self.api == "slack" and self.webhook is None)

    @property
    def delivers_again(self) -> bool:
        """Whether a message that was not acknowledged in time comes again with its id."""
        return self.webhook is not None or self.api == "slack"

    @model_validator(mode="after")
    def _fits_its_api(self) -> Self:
        if self.api == "discord" and self.webhook is not None:
            raise BadValueError("Discord brings messages over its gateway: leave `webhook` out", "webhook")
        if self.api == "whatsapp" and self.webhook is None:
            raise BadValueError(f"{self.api} brings messages to a webhook: write `webhook: /path`", "api")
        if self.api != "slack" and self.event == "both":
            raise BadValueError("only Slack brings a mention as two events: write `api: slack`", "event")
        if self.api not in ("slack", "discord") and self.event != "message":
            raise BadValueError("only Slack and Discord have mentions: write `api: slack`", "event")
        return self
