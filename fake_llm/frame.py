"""One event of a streamed reply, compiled to bytes but not yet sent."""

from __future__ import annotations

from wedgehog.fake_llm.value import value


@value
class Frame:
    """Bytes that belong together, without the HTTP chunk around them.

    `delay_s` passes before it is written; `tokens` output tokens have been delivered once it has arrived
    (cumulative); with it a text block or a tool call is `completes`; `terminal` ends the reply's content.
    """

    data: bytes
    delay_s: float = 0
    tokens: int = 0
    completes: bool = False
    terminal: bool = False
