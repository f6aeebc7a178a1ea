"""What providers answer beside replies has one form for all: a list of models, one model, a count of tokens."""

from __future__ import annotations

from collections.abc import Sequence

from wedgehog.fake_llm.request import Request


def model_asked(request: Request, root: str) -> str | None:
    """Return the model that a GET below `root` asks for: "" is all of them, None that it asks for something else.

    >>> model_asked(Request(1, "GET", "/v1/models/gpt-5", {}), "/v1/models")
    'gpt-5'
    """
    if request.method not in {"GET", "HEAD"} or not f"{request.path}/".startswith(f"{root}/"):
        return None
    return request.path.removeprefix(root).strip("/")


def is_known(name: str, models: Sequence[str] | None) -> bool:
    """Tell if a model exists; any does where none are listed."""
    return models is None or name in models
