"""What can be changed in a stream of events, as plain values; `edits` applies them.

>>> EarlyEnd(3)
EarlyEnd(event=3)
"""

from dataclasses import dataclass
from typing import ClassVar, Final, Literal, TypeAlias

MIDDLE: Final = -1
"""As the event of an edit: behind half of the reply's events."""


@dataclass(frozen=True, slots=True)
class EarlyEnd:
    """The body ends properly after event `event`, without the rest of its events."""

    event: int


@dataclass(frozen=True, slots=True)
class ClosedSocket:
    """After event `event` a WebSocket is closed with this code; another stream does not change."""

    event: int
    code: int = 1011
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PingsOnly:
    """After event `event` only keep-alive pings come, one every `every_s`, without end."""

    event: int
    every_s: float = 1.0


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """After event `event` an error event comes inside the 200 stream, then a proper end.

    `by` a gateway it comes in the form of the wire's other events, if the wire has such a form.
    """

    event: int
    status: int = 529
    message: str | None = None
    by: Literal["provider", "gateway"] = "provider"


@dataclass(frozen=True, slots=True)
class Duplicated:
    """Event `event` comes twice; 0 is the first event that delivers tokens."""

    event: int = 0


@dataclass(frozen=True, slots=True)
class Reordered:
    """Event `event` and the next one are swapped; 0 is the first event that delivers tokens."""

    event: int = 0


@dataclass(frozen=True, slots=True)
class Malformed:
    """The JSON of event `event` (0: the first that delivers tokens), or of a whole body, breaks off in the middle."""

    event: int = 0


@dataclass(frozen=True, slots=True)
class NoUsage:
    """The provider does not report the reply's tokens."""


@dataclass(frozen=True, slots=True)
class OtherForm:
    """The stream has another form that its wire allows, and says the same."""

    form: Literal["lines", "fields", "turns"] = "lines"


@dataclass(frozen=True, slots=True)
class OpenEnd:
    """The stream's last event has no empty line behind it."""

    form: ClassVar[Literal["open"]] = "open"


@dataclass(frozen=True, slots=True)
class Misnumbered:
    """The stream numbers its parts wrongly, as some gateways do."""

    numbers: Literal["index", "ids", "again"] = "index"


Edit: TypeAlias = (
    EarlyEnd
    | ClosedSocket
    | PingsOnly
    | ErrorEvent
    | Duplicated
    | Reordered
    | Malformed
    | NoUsage
    | OtherForm
    | OpenEnd
    | Misnumbered
)
