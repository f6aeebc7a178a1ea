"""What a gateway before the provider says, to whoever expected JSON."""

from __future__ import annotations

from html import escape

from wedgehog.fake_llm.dialects.base import Response
from wedgehog.fake_llm.wire_reply import phrase


def page(status: int, message: str | None = None) -> Response:
    """Write a page; with status 200 it is one that lets nobody through unasked."""
    title = message or ("Just a moment..." if status == 200 else f"{status} {phrase(status)}")
    text = escape(title)
    body = (
        f"<!DOCTYPE html>\n<html>\n<head><title>{text}</title></head>\n"
        f"<body>\n<center><h1>{text}</h1></center>\n<hr><center>nginx</center>\n</body>\n</html>\n"
    )
    return Response(status, body.encode(), "html", title, "text/html")
