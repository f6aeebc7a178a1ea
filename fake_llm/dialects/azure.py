"""Azure's names for the paths of OpenAI's API.

Source: Microsoft's REST reference of Azure OpenAI, `POST {endpoint}/openai/deployments/{deployment}/chat/completions
?api-version=…`, and its v1 API, `POST {endpoint}/openai/v1/chat/completions`. The key is in the header `api-key`.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

_PREFIX: Final = "/openai/"
_KEY: Final = "api-key"
_DEPLOYMENT: Final = re.compile(r"/openai/deployments/([^/]+)(/.+)")


def openai_path(path: str) -> tuple[str, str | None]:
    """Return OpenAI's path for a path of Azure, and the deployment that it names; another path is returned as it is.

    >>> openai_path("/openai/deployments/gpt-5/chat/completions"), openai_path("/openai/v1/responses")
    (('/v1/chat/completions', 'gpt-5'), ('/v1/responses', None))
    >>> openai_path("/openai/responses"), openai_path("/v1/messages")
    (('/v1/responses', None), ('/v1/messages', None))
    """
    if not path.startswith(_PREFIX):
        return path, None
    if found := _DEPLOYMENT.fullmatch(path):
        return f"/v1{found[2]}", found[1]
    return f"/v1/{path.removeprefix(_PREFIX).removeprefix('v1/')}", None


def in_milliseconds(sent: Mapping[str, str], wait_s: float) -> list[tuple[str, str]]:
    """Return the second header by which Azure asks for a wait, if a request was `sent` with Azure's key."""
    return [("retry-after-ms", f"{1000 * wait_s:.0f}")] if _KEY in sent else []


def with_model(document: dict[str, Any] | None, deployment: str | None) -> dict[str, Any] | None:
    """Return the body with the deployment as its model, if the path names one and the body does not."""
    if document is None or deployment is None or "model" in document:
        return document
    return document | {"model": deployment}
