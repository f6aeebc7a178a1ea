"""
fake ── text frame, text frame ──▶ agent        the trigger's event is the last one
     ── close frame, 1011 ───────▶              the connection ends in order, the reply does not
"""

from typing import Annotated, ClassVar

from pydantic import Field

from wedgehog.fake_llm.edit_kinds import ClosedSocket
from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.reply.stream_edits import StreamEdit


@fault("ws_close", family="reply")
class ClosesWebSocket(StreamEdit):
    """The WebSocket is closed after the trigger's event, with a close frame of this code and reason.

    1000 is a normal close, 1001 a server that goes away, 1011 an error of the server, 1012 its restart. It needs an
    agent whose model calls come over a WebSocket.
    """

    code: Annotated[int, Field(ge=1000, le=4999)] = 1011
    reason: str = ""
    edit = ClosedSocket
    ends_body = True
    needs = ("stream", "websocket")
    searched: ClassVar[bool] = False
