"""A request that may not begin is answered before the mcp application sees it; all else reaches the application."""

import json
from typing import Any

import pytest

from wedgehog.harness.services.mcp.refused_calls import RefusedCalls
from wedgehog.harness.services.mcp.response_faults import HttpResponses, ResponseFaults

CLIENT = ("127.0.0.1", 5)
CALL = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "weather", "arguments": {"city": "x"}}}
CHALLENGE = 'Bearer resource_metadata="{origin}/.well-known/oauth-protected-resource/mcp"'
REFUSAL = {"refusal": 7, "status": 401, "headers": {"www-authenticate": CHALLENGE}, "body": "{}"}
METADATA = "/.well-known/oauth-protected-resource/mcp"


class Exchange:
    """One request through the gate: the harness's questions, what the application read, and what was sent."""

    def __init__(self, **answer: Any) -> None:
        self.answer, self.asked, self.read, self.sent = answer, [], [], []  # type: ignore[var-annotated]
        self.gate = RefusedCalls(HttpResponses(ResponseFaults(self.ask)), self.ask)

    async def ask(self, do: str, **more: Any) -> dict[str, Any]:
        self.asked.append((do, more))
        return self.answer

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        self.read += [await receive() for _ in range(3)]

    async def request(self, *parts: bytes, path: str = "/mcp", method: str = "POST", **headers: str) -> "Exchange":
        coming = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
        coming[-1]["more_body"] = False
        left = iter([*coming, *[{"type": "http.disconnect"}] * 3])

        async def receive() -> Any:
            return next(left)

        async def send(message: Any) -> None:
            self.sent.append(message)

        pairs = [(key.encode(), value.encode()) for key, value in ({"host": "agent.side:9"} | headers).items()]
        scope = {"type": "http", "method": method, "path": path, "headers": pairs, "client": CLIENT}
        await self.gate.around(self.app)(scope, receive, send)
        return self


async def test_a_refused_call_gets_its_answer_and_no_application():
    """The harness is told when the answer is written."""
    it = await Exchange(**REFUSAL).request(json.dumps(CALL).encode())
    head, body = it.sent
    assert (head["status"], body["body"], it.read) == (401, b"{}", [])
    challenge = f'Bearer resource_metadata="http://agent.side:9{METADATA}"'.encode()
    headers = {b"content-type": b"application/json", b"content-length": b"2", b"www-authenticate": challenge}
    assert dict(head["headers"]) == headers
    begin, refused = it.asked
    assert begin == ("begin", {"name": "weather", "arguments": {"city": "x"}, "authorized": False})
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
async def test_other_requests_are_no_calls(body: bytes):
    """Another method, arguments that are no object, no object, no JSON: the application answers them, if it may."""
    it = await Exchange().request(body, authorization="Bearer x")
    assert it.read[0]["body"] == body
    assert it.asked == [("begin", {"name": "", "arguments": {}, "authorized": True})]
    it = await Exchange(**REFUSAL).request(body)
    assert it.sent[0]["status"] == 401 and it.read == []


async def test_the_body_of_a_request_that_is_no_post_is_not_read():
    """A stream of events is opened by GET; it can be refused as well."""
    it = await Exchange().request(json.dumps(CALL).encode(), method="GET")
    assert len(it.read) == 3 and [do for do, _ in it.asked] == ["begin"]
    it = await Exchange(**REFUSAL).request(b"", method="GET")
    assert it.sent[0]["status"] == 401


async def test_the_metadata_of_the_resource_is_there_once_a_request_was_refused():
    """Before, a client that looks for it must not believe that it needs a token; no other path is refused."""
    it = await Exchange(**REFUSAL).request(b"", path=METADATA, method="GET")
    assert it.asked == [] and it.sent == []
    await it.request(json.dumps(CALL).encode())
    it.sent.clear()
    await it.request(b"", path=METADATA, method="GET")
    document = json.loads(it.sent[1]["body"])
    assert document["resource"] == "http://agent.side:9/mcp"
    assert document["authorization_servers"] == ["http://agent.side:9"]


async def test_the_official_client_with_oauth_follows_the_challenge_as_far_as_it_goes():
    """It accepts the metadata as this server's own, and finds that no client can be registered there."""
    oauth = pytest.importorskip("mcp.client.auth", reason="the MCP package is not installed")
    httpx = pytest.importorskip("httpx2", reason="the MCP package is not installed")
    from mcp.shared.auth import OAuthClientMetadata

    class Tokens:
        async def get_tokens(self) -> None: ...
        async def get_client_info(self) -> None: ...

    asked: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        asked.append(scope["path"])
        await send({"type": "http.response.start", "status": 404, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    gate = Exchange(**REFUSAL)
    me = OAuthClientMetadata(redirect_uris=["http://127.0.0.1:1/callback"])  # type: ignore[list-item]
    auth = oauth.OAuthClientProvider("http://agent.side:9/mcp", me, Tokens(), None, None)
    transport = httpx.ASGITransport(gate.gate.around(app))
    async with httpx.AsyncClient(transport=transport, auth=auth) as client:
        with pytest.raises(oauth.OAuthRegistrationError, match="404"):
            await client.post("http://agent.side:9/mcp", json=CALL)
    assert auth.context.protected_resource_metadata.resource.unicode_string() == "http://agent.side:9/mcp"
    assert "/.well-known/oauth-authorization-server" in asked and asked[-1] == "/register"
    assert METADATA not in asked
