"""The two versions of the Realtime API: the general one, and the beta that a client asks for in a header.

Source: the types of the official SDK, `openai.types.realtime` and `openai.types.beta.realtime`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

CREATE: Final = "response.create"
ITEM: Final = "conversation.item.create"
_BETA_ASKED: Final = "realtime=v1"


@dataclass(frozen=True, slots=True)
class Names:
    """What a version calls the same things.

    `text` is the part of the model's text, and of its events; `settings` are the fields of a session (None: any).
    """

    text: str
    modalities: str
    limit: str
    added: str
    done: str | None
    settings: tuple[str, ...] | None
    session: Callable[[str, str], dict[str, Any]]

    @property
    def added_and_done(self) -> tuple[str, ...]:
        """The events with which an item of the client enters the conversation."""
        return (self.added, self.done) if self.done else (self.added,)


def _ga_session(id_: str, model: str) -> dict[str, Any]:
    return {
        "type": "realtime",
        "object": "realtime.session",
        "id": id_,
        "model": model,
        "output_modalities": ["audio"],
        "instructions": "",
        "tools": [],
        "tool_choice": "auto",
        "max_output_tokens": "inf",
        "tracing": None,
        "truncation": "auto",
        "prompt": None,
        "include": None,
        "audio": {
            "input": {"format": {"type": "audio/pcm", "rate": 24000}, "turn_detection": None},
            "output": {"format": {"type": "audio/pcm", "rate": 24000}, "voice": "alloy", "speed": 1.0},
        },
    }


def _beta_session(id_: str, model: str) -> dict[str, Any]:
    return {
        "id": id_,
        "object": "realtime.session",
        "model": model,
        "modalities": ["text", "audio"],
        "instructions": "",
        "voice": "alloy",
        "input_audio_format": "pcm16",
        "output_audio_format": "pcm16",
        "input_audio_transcription": None,
        "turn_detection": None,
        "tools": [],
        "tool_choice": "auto",
        "temperature": 0.8,
        "max_response_output_tokens": "inf",
        "speed": 1.0,
        "tracing": None,
    }


_SETTINGS: Final = (*_ga_session("", ""), "parallel_tool_calls", "reasoning")
GA: Final = Names(
    "output_text",
    "output_modalities",
    "max_output_tokens",
    "conversation.item.added",
    "conversation.item.done",
    _SETTINGS,
    _ga_session,
)
BETA: Final = Names(
    "text", "modalities", "max_response_output_tokens", "conversation.item.created", None, None, _beta_session
)


def names_for(headers: Mapping[str, str]) -> Names:
    """Return the names of the version that the handshake asks for.

    >>> names_for({"openai-beta": "realtime=v1"}).text, names_for({}).text
    ('text', 'output_text')
    """
    return BETA if _BETA_ASKED in headers.get("openai-beta", "") else GA
