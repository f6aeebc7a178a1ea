"""An error in another form than the provider's own, as local servers and gateways send it."""

from dataclasses import replace
from typing import Any

from wedgehog.fake_llm.dialects.base import Response
from wedgehog.fake_llm.frame import encode
from wedgehog.fake_llm.reply import ErrorForm

TEXT = "text/plain; charset=utf-8"


def in_form(told: Response, form: ErrorForm) -> Response:
    """The same status and message in this form.

    >>> in_form(Response(404, b"{}", "", "no such model"), "string").body
    b'{"error":"no such model"}'
    """
    if form == "provider":
        return told
    if form == "text":
        return replace(told, body=f"{told.message}\n".encode(), content_type=TEXT)
    if form == "list":
        return replace(told, body=b"[" + told.body + b"]")
    document: dict[str, Any] = {"error" if form == "string" else "detail": told.message}
    return replace(told, body=encode(document))
