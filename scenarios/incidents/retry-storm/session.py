"""What is kept on disk: the conversation, and the agent's own record of its attempts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wires import Draft


class Session:
    """The conversation in `session.jsonl`, and a line for each attempt in `attempts.jsonl`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file, self._books = folder / "session.jsonl", folder / "attempts.jsonl"
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        self.messages: list[dict[str, Any]] = [json.loads(line) for line in lines]

    def add(self, *messages: dict[str, Any]) -> None:
        self.messages.extend(messages)
        with self._file.open("a") as file:
            file.writelines(json.dumps(message) + "\n" for message in messages)

    def book(self, attempt: int, model: str, draft: Draft, ended: str) -> None:
        line = {"attempt": attempt, "model": model, "ended": ended}
        with self._books.open("a") as file:
            file.write(json.dumps(line | {"input_tokens": draft.input_tokens, "output_tokens": draft.output}) + "\n")
