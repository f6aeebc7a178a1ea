"""A tool call that may not begin is answered before the mcp application sees it; all else reaches the application."""

import json
from typing import Any

import pytest

from wedgehog.harness.services.mcp.refused_calls import RefusedCalls
from wedgehog.harness.services.mcp.response_faults import HttpResponses, ResponseFaults

CLIENT = ("127.0.0.1", 5)
CALL = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "weather", "arguments": {"city": "x"}}}
REFUSAL = {"refusal": 7, "status": 401, "headers": {"www-authenticate": "Bearer"}, "body": "{}"}


class Exchange:
    """One request through the gate: the harness's questions, what the application read, and what was sent."""

    def __init__(self, **answer: Any) -> None:
        self.answer, self.asked, self.read, self.sent = answer, [], [], []  # type: ignore[var-annotated]

    async def ask(self, do: str, **more: Any) -> dict[str, Any]:
        self.asked.append((do, more))
        return self.answer

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        self.read += [await receive() for _ in range(3)]

    async def request(self, *parts: bytes, method: str = "POST") -> "Exchange":
        coming = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
        coming[-1]["more_body"] = False
        left = iter([*coming, *[{"type": "http.disconnect"}] * 3])

        async def receive() -> Any:
            return next(left)

        async def send(message: Any) -> None:
            self.sent.append(message)

        gate = RefusedCalls(HttpResponses(ResponseFaults(self.ask)), self.ask)
        await gate.around(self.app)({"type": "http", "method": method, "client": CLIENT}, receive, send)
        return self


async def test_a_refused_call_gets_its_answer_and_no_application():
    """The harness is told when the answer is written."""
    it = await Exchange(**REFUSAL).request(json.dumps(CALL).encode())
    head, body = it.sent
    assert (head["status"], body["body"], it.read) == (401, b"{}", [])
    headers = {b"content-type": b"application/json", b"content-length": b"2", b"www-authenticate": b"Bearer"}
    assert dict(head["headers"]) == headers
    begin, refused = it.asked
    assert begin == ("begin", {"name": "weather", "arguments": {"city": "x"}})
    assert refused == ("refused", {"refusal": 7, "client": CLIENT, "written": 0})


async def test_a_call_that_may_begin_reaches_the_application_in_its_own_parts():
    """Then comes what the client sends next."""
    whole = json.dumps(CALL).encode()
    it = await Exchange().request(whole[:9], whole[9:])
    first, second, then = it.read
    assert (first["body"] + second["body"], then) == (whole, {"type": "http.disconnect"})
    assert [do for do, _ in it.asked] == ["begin"] and it.sent == []


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(CALL | {"method": "tools/list"}).encode(),
        json.dumps(CALL | {"params": {"name": "weather", "arguments": [1]}}).encode(),
        b"[]",
        b"{",
    ],
)
async def test_other_requests_are_not_asked_for(body: bytes):
    """Another method, arguments that are no object, no object, no JSON: the application answers them."""
    it = await Exchange(**REFUSAL).request(body)
    assert it.read[0]["body"] == body and it.asked == []


async def test_a_request_that_is_no_post_is_not_read():
    """A stream of events is opened by GET."""
    it = await Exchange(**REFUSAL).request(json.dumps(CALL).encode(), method="GET")
    assert len(it.read) == 3 and it.asked == []
