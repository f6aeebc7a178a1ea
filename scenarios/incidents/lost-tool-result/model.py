"""The model call: one Anthropic message, not streamed and without retries. It has no part in the incident."""

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from session import tool_calls

MODEL = "claude-sonnet-4-6"
SYSTEM = "You are a personal assistant with a computer of your own. Answer briefly."
EXEC = {
    "name": "exec",
    "description": "Run a shell command and return its output.",
    "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
}

Json = dict[str, Any]


class ModelError(Exception):
    """The provider refused, the connection broke, or the reply took too long."""


class Model:
    def __init__(self, url: str, key: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port
        self._headers = {"Content-Type": "application/json", "X-Api-Key": key, "Anthropic-Version": "2023-06-01"}

    def complete(self, messages: Sequence[Json], ends_s: float) -> Json:
        """The next assistant message, in the format of the session. Errors: ModelError, at `ends_s` at the latest."""
        request = {"model": MODEL, "max_tokens": 4096, "system": SYSTEM, "tools": [EXEC]}
        body = json.dumps(request | {"messages": list(_on_the_wire(messages))}).encode()
        status, said = self._exchange(body, ends_s)
        if status != 200:
            raise ModelError(f"the model's provider said HTTP {status}: {said.decode(errors='replace')}")
        reply = json.loads(said)
        if reply["stop_reason"] == "max_tokens":
            raise ModelError("the reply was cut at its token limit")
        return {"role": "assistant", "content": [_kept(block) for block in reply["content"] if _has_words(block)]}

    def _exchange(self, body: bytes, ends_s: float) -> tuple[int, bytes]:
        """Status and body of the reply. A timeout of the socket alone would start anew with each byte."""
        left_s = max(0.01, ends_s - time.monotonic())
        link = http.client.HTTPConnection(self._host, self._port, timeout=left_s)
        try:
            link.connect()
            with _hung_up_after(left_s, link.sock):
                link.request("POST", "/v1/messages", body, self._headers)
                response = link.getresponse()
                return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            if time.monotonic() >= ends_s:
                raise ModelError("the model took too long") from error
            raise ModelError(f"the model's connection broke: {error!r}") from error
        finally:
            link.close()


@contextlib.contextmanager
def _hung_up_after(seconds: float, connection: socket.socket) -> Iterator[None]:
    def hang_up() -> None:
        with contextlib.suppress(OSError):  # it is closed already
            connection.shutdown(socket.SHUT_RDWR)

    late = threading.Timer(seconds, hang_up)
    late.start()
    try:
        yield
    finally:
        late.cancel()


def _has_words(block: Json) -> bool:
    """A provider refuses a text block without text; thinking is not kept."""
    return block["type"] == "tool_use" or bool(block.get("text"))


def _kept(block: Json) -> Json:
    if block["type"] == "tool_use":
        return {"type": "toolCall", "id": block["id"], "name": block["name"], "arguments": block["input"]}
    return {"type": "text", "text": block.get("text", "")}


def _on_the_wire(messages: Sequence[Json]) -> Iterator[Json]:
    """The results of a reply's calls come directly after it, each once, wherever they are in the log."""
    results: dict[str, Json] = {}
    for message in messages:
        if message["role"] == "toolResult":
            results.setdefault(message["toolCallId"], message)
    for message in messages:
        if message["role"] == "toolResult":
            continue
        content = [_sent(block) for block in message["content"]]
        if content:
            yield {"role": message["role"], "content": content}
        answered = [results[call["id"]] for call in tool_calls(message) if call["id"] in results]
        if answered:
            yield {"role": "user", "content": [_sent_result(result) for result in answered]}


def _sent(block: Json) -> Json:
    if block["type"] == "toolCall":
        return {"type": "tool_use", "id": block["id"], "name": block["name"], "input": block["arguments"]}
    return {"type": "text", "text": block["text"]}


def _sent_result(result: Json) -> Json:
    sent = {"type": "tool_result", "tool_use_id": result["toolCallId"], "content": result["content"]}
    return sent | {"is_error": True} if result["isError"] else sent
