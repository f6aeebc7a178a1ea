"""A session is its JSONL log: one record a line, append-only, and read again for each message."""

import json
import sys
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

LOST = "[tool execution lost — session was interrupted]"

Json = dict[str, Any]


class Session:
    """Messages of the roles user, assistant (with `toolCall` blocks) and toolResult. No state is in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, *messages: Json) -> None:
        """One record for each message. If a crash left half a line, it is ended first, so that no record joins it.

        Errors: OSError.
        """
        for message in messages:
            records = list(self._records())
            record = {"type": "message", "id": uuid.uuid4().hex[:8], "parentId": records[-1]["id"] if records else None}
            self._write(record | {"timestamp": _now(), "message": message})

    @property
    def messages(self) -> list[Json]:
        """All messages, oldest first."""
        return [record["message"] for record in self._records() if record["type"] == "message"]

    @property
    def pending(self) -> list[Json]:
        """The `toolCall` blocks without a toolResult, anywhere in the log."""
        messages = self.messages
        answered = {message["toolCallId"] for message in messages if message["role"] == "toolResult"}
        return [call for message in messages for call in tool_calls(message) if call["id"] not in answered]

    def _records(self) -> Iterator[Json]:
        text = self.path.read_text(errors="replace") if self.path.exists() else ""
        for number, line in enumerate(filter(None, text.split("\n")), start=1):
            try:
                record = json.loads(line)
            except ValueError:
                print(f"{self.path.name}: line {number} can't be read and is skipped", file=sys.stderr)
                continue
            if isinstance(record, dict) and {"type", "id"} <= record.keys():
                yield record

    def _write(self, record: Json) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab+") as log:
            log.seek(max(0, log.tell() - 1))
            torn = log.read(1) not in (b"", b"\n")
            log.write(b"\n" * torn + json.dumps(record, ensure_ascii=False).encode() + b"\n")


def tool_calls(message: Json) -> list[Json]:
    """The `toolCall` blocks of an assistant message; empty for other messages."""
    if message["role"] != "assistant":
        return []
    return [block for block in message["content"] if block["type"] == "toolCall"]


def user(text: str) -> Json:
    """A message of the user."""
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def tool_result(call: Json, text: str, *, is_error: bool) -> Json:
    """The result of a tool call."""
    content = [{"type": "text", "text": text}]
    return {
        "role": "toolResult",
        "toolCallId": call["id"],
        "toolName": call["name"],
        "content": content,
        "isError": is_error,
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
