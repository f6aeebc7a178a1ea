"""Where the answer stands in the events that a Node service sends: those of the AI SDK, or its own.

Nothing is run. As in `source_node`, patterns search the source of a route.
"""

import re
from collections.abc import Mapping
from typing import Final

from wedgehog.harness.commands.first_spec.source_node_lines import objects_written
from wedgehog.harness.commands.first_spec.source_reading import ANSWERS, ERRORS, likeliest

_OF_THE_AI_SDK: Final[Mapping[str, Mapping[str, str]]] = {
    r"\w*UIMessageStream\w*Response\(": {"answer": "joined:delta", "error": "jsonl:errorText"},
    r"\w*TextStream\w*Response\(": {"answer": "text"},
}
"""Calls of the AI SDK that send a model's stream to the browser, and where the answer stands in it."""
_PIECES: Final = ("delta", "token", "chunk", *ANSWERS)
"""The usual names of a piece of the answer, the likeliest first."""
_WRITES: Final = r"(?:\.write|\benqueue)\([^;]{0,40}?JSON\.stringify\(\s*"


def places_in_events(handler: str) -> dict[str, str]:
    """The keys `answer` and `error` of a route that sends events; empty if it sends none, or the source hides them."""
    for call, places in _OF_THE_AI_SDK.items():
        if re.search(call, handler):
            return dict(places)
    if "text/event-stream" not in handler:
        return {}
    written = {key for keys in objects_written(handler, _WRITES) for key in keys}
    piece, wrong = likeliest(_PIECES, written), likeliest(ERRORS, written)
    if not piece:
        return {}
    return {"answer": f"joined:{piece}", **({"error": f"jsonl:{wrong}"} if wrong else {})}
