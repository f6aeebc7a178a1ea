"""
                                          error_result    {"isError": true, "content": "the tool failed"}
                                          empty_result    {"content": []}
                                          protocol_error  {"error": {"code": -32603, "message": "internal error"}}
                                          huge_result     a page, and 5,000,000 bytes more
agent ── tools/call (id 3) ──▶ tool host  double_result   result (id 3), result (id 3)
                                          malformed_result  {"jsonrpc": "2.0", "id": 3, "resu
                                          late_result     s seconds, then the result
                                          lose_result     nothing; the server answers other requests
                                          unauthorized    HTTP 401, www-authenticate: Bearer error="invalid_token"
                                          call_status     HTTP 429, retry-after: 2
agent ── initialize ─────────▶ tool host  unauthorized    the same, with `phase: connect`
"""

import json
import math
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, ClassVar, Self

from pydantic import Field

from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.parameters import Seconds, shorter_whole_s
from wedgehog.harness.faults.result_fault import CallRefusal, Result, ResultFault


@fault("error_result", family="actor")
class ErrorResult(ResultFault):
    """The tool says that it failed: a result with `isError`, and `message` as its text."""

    message: str = "the tool failed"
    proof: ClassVar[str] = "the tool host said that the tool failed"

    def on_result(self, result: Result) -> Result:
        """The error in place of the answer."""
        return replace(result, text=self.message, is_error=True)


@fault("empty_result", family="actor")
class EmptyResult(ResultFault):
    """The tool's result is empty: `content` has no item, as of a tool that found nothing. Only its call's id names it.

    An agent that sends results as words, without the id of their call, skips the scenario.
    """

    needs = ("result_ids",)
    proof: ClassVar[str] = "the tool host wrote a result without content"

    def on_result(self, result: Result) -> Result:
        """The same result without its content."""
        return replace(result, empty=True)


@fault("protocol_error", family="actor")
class ProtocolError(ResultFault):
    """The call is answered by a JSON-RPC error with `message`, as for a server's own failure, and by no result."""

    message: str = "internal error"
    proof: ClassVar[str] = "the tool host answered with a JSON-RPC error"

    def on_result(self, result: Result) -> Result:
        """The error in place of the result."""
        return replace(result, text=self.message, is_error=True, by_protocol=True)


@fault("huge_result", family="actor")
class HugeResult(ResultFault):
    """The tool's result is `bytes` bytes long: its own text, then filler."""

    bytes: Annotated[int, Field(ge=1, le=200_000_000)]
    proof: ClassVar[str] = "the tool host wrote the padded result"

    def on_result(self, result: Result) -> Result:
        """The same result, padded."""
        return replace(result, bytes=max(result.bytes, self.bytes))


@fault("double_result", family="actor")
class DoubleResult(ResultFault):
    """The tool's result comes twice: the same JSON-RPC response, one behind the other.

    Over HTTP both are events of one stream.
    """

    proof: ClassVar[str] = "the tool host wrote the response twice"

    def on_result(self, result: Result) -> Result:
        """The same result, once more."""
        return replace(result, copies=result.copies + 1)


@fault("malformed_result", family="actor")
class MalformedResult(ResultFault):
    """The tool's result is broken JSON: half of the response, framed as if it were whole."""

    proof: ClassVar[str] = "the tool host wrote half of the response"

    def on_result(self, result: Result) -> Result:
        """The same result, malformed."""
        return replace(result, broken=True)


@fault("late_result", family="actor")
class LateResult(ResultFault):
    """The tool's result comes `s` seconds later than it would."""

    s: Seconds
    strikes_at_once: ClassVar[bool] = True
    proof: ClassVar[str] = "the tool host has the call and holds its answer back"

    def on_result(self, result: Result) -> Result:
        """The same result, later."""
        return replace(result, delay_s=result.delay_s + self.s)


@fault("lose_result", family="actor")
class LoseResult(ResultFault):
    """The tool's result is lost: the server lives on, and this call is never answered."""

    strikes_at_once: ClassVar[bool] = True
    proof: ClassVar[str] = "the tool host has the call and keeps its answer"

    def on_result(self, result: Result) -> Result:
        """No answer."""
        return replace(result, lost=True)


PROTECTED_RESOURCE = "/.well-known/oauth-protected-resource/mcp"
"""Where RFC 9728 puts the metadata of a server at `/mcp`."""


def _challenge(says: str) -> CallRefusal:
    """The challenge of RFC 6750 and RFC 9728, and the body that the official MCP package writes beside it."""
    told = {"error": "invalid_token", "error_description": says}
    words = told | {"resource_metadata": f"{{origin}}{PROTECTED_RESOURCE}"}
    challenge = ", ".join(f'{name}="{value}"' for name, value in words.items())
    return CallRefusal(401, {"www-authenticate": f"Bearer {challenge}"}, json.dumps(told))


@fault("unauthorized", family="actor")
class Unauthorized(ResultFault):
    """The tool server refuses the call with HTTP 401 and `WWW-Authenticate: Bearer`: the access token expired.

    The tool does not run. With `at: {turn: 1, phase: connect}` every HTTP request of the turn is refused, `initialize`
    too; `attempt` and `times` count requests. It needs an agent with `tools: http`.
    """

    needs = ("http_tools",)
    proof: ClassVar[str] = "the tool host answered with 401"
    refuses_requests: ClassVar[bool] = True

    def on_call(self) -> CallRefusal:
        """The token of an open session has expired."""
        return _challenge("The access token expired")

    def on_request(self, *, authorized: bool) -> CallRefusal:
        """The same at any request; a client without a token must get one first."""
        return self.on_call() if authorized else _challenge("Authentication required")

    def on_result(self, result: Result) -> Result:
        """The same: a call that is refused has no result."""
        return result


@fault("call_status", family="actor")
class CallStatus(ResultFault):
    """The tool server refuses the call with an HTTP error, as a gateway before it does. The tool does not run.

    It needs an agent with `tools: http`. `retry_after` becomes whole seconds, so a shortened one is rounded up.
    """

    code: Annotated[int, Field(ge=400, le=599)]
    retry_after: Seconds | None = None
    needs = ("http_tools",)
    proof: ClassVar[str] = "the tool host answered the call with the HTTP error"

    def scaled(self, factor: float) -> Self:
        """Shorten `retry_after` to whole seconds."""
        wait = self.retry_after
        return self if wait is None else replace(self, retry_after=shorter_whole_s(wait, factor))

    def on_call(self) -> CallRefusal:
        """The status, and a body that says it in words."""
        said = {status.value: status.phrase for status in HTTPStatus}.get(self.code, "error")
        head = {} if self.retry_after is None else {"retry-after": str(math.ceil(self.retry_after))}
        return CallRefusal(self.code, head, json.dumps({"error": said}))

    def on_result(self, result: Result) -> Result:
        """The same: a call that is refused has no result."""
        return result
