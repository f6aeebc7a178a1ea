"""What the specimen keeps between turns, and the clean-up that only some exits call."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHARS_PER_TOKEN = 4

Json = dict[str, Any]


@dataclass(slots=True)
class History:
    """Messages of the OpenAI chat wire, the arguments of open calls (by call id), and a token count."""

    messages: list[Json] = field(default_factory=list)
    open_calls: dict[str, str] = field(default_factory=dict)
    token_count: int = 0

    @classmethod
    def load(cls, session: Path) -> "History":
        """The session's history; a new one if there is none."""
        log = session / "history.json"
        return cls(**json.loads(log.read_text())) if log.exists() else cls()

    def save(self, session: Path) -> None:
        """Write the whole state."""
        session.mkdir(parents=True, exist_ok=True)
        state = {"messages": self.messages, "open_calls": self.open_calls, "token_count": self.token_count}
        new = session / "history.json.new"
        new.write_text(json.dumps(state))
        new.replace(session / "history.json")  # a full disk or a crash leaves the old one whole

    def add_reply(self, reply: Json) -> None:
        """Append an assistant message; its calls are now open."""
        self.messages.append(reply)
        self.open_calls |= {call["id"]: call["function"]["arguments"] for call in reply.get("tool_calls", ())}
        self.count_tokens()

    def add_results(self, results: list[Json]) -> None:
        """Append the results of a whole round; its calls are closed."""
        self.messages += results
        for result in results:
            self.open_calls.pop(result["tool_call_id"], None)
        self.count_tokens()

    def remove_dangling_tool_calls(self) -> bool:
        """Remove each reply that has an open call, with all its calls; returns whether there was one."""
        open_ = self.open_calls
        kept = [it for it in self.messages if not any(call["id"] in open_ for call in it.get("tool_calls", ()))]
        removed = len(kept) < len(self.messages)
        self.messages[:] = kept
        self.open_calls.clear()
        return removed

    def count_tokens(self) -> None:
        """Estimate the size of the next request again."""
        self.token_count = len(json.dumps(self.messages)) // CHARS_PER_TOKEN
