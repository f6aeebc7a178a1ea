"""The specimen's conversation: the sanitizer, the model call with its retries, the tool loop. (`claude.js`.)"""

import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from web import NETWORK_ERRORS, Http

MODEL = "claude-sonnet-4-6"
SYSTEM = "You are a personal assistant on a phone. Use your tools; answer briefly."
TOOL_ROUNDS = 5
HISTORY = 12
CALL_S = 120.0
LONGER_TIMEOUT_S = 90.0
"""Longer than a large request takes, and short enough for one more try within `CALL_S`."""
BACK_OFF_S = (1.0, 2.0)
RETRIED_STATUSES = frozenset({429, 500, 502, 503, 504, 529})

Json = dict[str, Any]


class ApiError(Exception):
    """The provider refused, and no more retries are left or would help."""


class Claude:
    """A conversation of Anthropic messages; changed in place, and left as it is after an exception."""

    def __init__(
        self,
        web: Http,
        fixes: frozenset[str],
        *,
        url: str,
        key: str,
        messages: list[Json],
        tools: Mapping[str, Callable[..., Json]],
        schemas: Sequence[Json],
    ) -> None:
        """The fixes here say what is caught around a call and around a tool, and when to sanitize."""
        self.messages = messages
        self._web = web
        self._url = f"{url}/v1/messages"
        self._headers = {
            "Content-Type": "application/json",
            "X-Api-Key": key,
            "Anthropic-Version": "2023-06-01",
        }
        self._tools = tools
        self._schemas = list(schemas)
        self._retried_errors = NETWORK_ERRORS if "retry-network-errors" in fixes else ()
        self._thrown_results = (Exception,) if "push-results-on-throw" in fixes else ()
        self._call_s = CALL_S if "total-deadline" in fixes else math.inf
        self._timeout_s = LONGER_TIMEOUT_S if "model-timeout" in fixes else None
        self._sanitizes_each_call = "sanitize-each-call" in fixes
        self._may_begin = begins_a_turn if "pair-aware-trimming" in fixes else begins_anywhere

    def chat(self, text: str) -> str:
        """One turn. Every exception of a call or a tool ends it."""
        self.messages.append({"role": "user", "content": text})
        trim(self.messages, self._may_begin)
        self._sanitize()
        for _round in range(TOOL_ROUNDS):
            if self._sanitizes_each_call:
                self._sanitize()
            content = self._call()
            self.messages.append({"role": "assistant", "content": content})
            uses = [block for block in content if block["type"] == "tool_use"]
            if not uses:
                return "".join(block["text"] for block in content if block["type"] == "text")
            self.messages.append({"role": "user", "content": self._results(uses)})
        raise ApiError(f"no answer after {TOOL_ROUNDS} tool rounds")

    def _sanitize(self) -> None:
        if stripped := sanitize(self.messages):
            print(
                f"[Sanitize] Stripped {stripped} orphaned tool_use/tool_result block(s) from conversation",
                file=sys.stderr,
            )

    def _results(self, uses: Sequence[Json]) -> list[Json]:
        """Results in order, one tool after another; they enter the conversation together, after the last one."""
        results: list[Json] = []
        for use in uses:
            result: Json = {"type": "tool_result", "tool_use_id": use["id"]}
            try:
                result["content"] = json.dumps(self._run(use["name"], use["input"]))
            except self._thrown_results as error:
                result |= {"content": json.dumps({"error": str(error)}), "is_error": True}
            results.append(result)
        return results

    def _run(self, name: str, arguments: Mapping[str, Any]) -> Json:
        tool = self._tools.get(name)
        return tool(**arguments) if tool else {"error": f"Unknown tool: {name}"}

    def _call(self) -> list[Json]:
        """The content blocks of the next reply. The loop retries refusals; a network error leaves it."""
        request = {
            "model": MODEL,
            "max_tokens": 4096,
            "system": SYSTEM,
            "tools": self._schemas,
            "messages": self.messages,
        }
        body = json.dumps(request).encode()
        deadline_s = self._web.pace.now_s() + self._call_s
        attempt = 0
        while (left_s := deadline_s - self._web.pace.now_s()) > 0:
            last = attempt == len(BACK_OFF_S)
            wait_s = 0 if last else self._web.pace.real_s(BACK_OFF_S[attempt])
            try:
                response = self._web.request(
                    "POST", self._url, body=body, headers=self._headers, timeout_s=self._timeout_s, total_s=left_s
                )
            except self._retried_errors:
                if last:
                    raise
            else:
                if response.status == 200:
                    reply = json.loads(response.body)
                    if reply["stop_reason"] == "max_tokens":
                        raise ApiError("the reply was cut at its token limit")
                    content: list[Json] = reply["content"]
                    return content
                if last or response.status not in RETRIED_STATUSES:
                    raise ApiError(f"API error: {response.status} {response.body.decode(errors='replace')}")
                # Retry-After is in real seconds, so it is not scaled.
                wait_s = float(response.headers.get("Retry-After", wait_s))
            time.sleep(wait_s)
            attempt += 1
        raise TimeoutError("Timeout")


def trim(messages: list[Json], may_begin: Callable[[Json], bool]) -> None:
    """Remove the oldest messages beyond `HISTORY`, and more until the first message is one that may begin a history."""
    cut = max(0, len(messages) - HISTORY)
    while cut and not may_begin(messages[cut]):
        cut += 1
    del messages[:cut]


def begins_anywhere(_message: Json) -> bool:
    """Ignores pairs: a result may stay without its call."""
    return True


def begins_a_turn(message: Json) -> bool:
    """Only a message of the user, so that calls and their results are removed together."""
    return message["role"] == "user" and isinstance(message["content"], str)


def sanitize(messages: list[Json]) -> int:
    """Remove blocks without a partner in the neighbouring message, and empty messages; returns the number of blocks."""
    orphaned_uses = _strip(messages, role="assistant", kind="tool_use", key="id", neighbour=1)
    orphaned_results = _strip(messages, role="user", kind="tool_result", key="tool_use_id", neighbour=-1)
    return orphaned_uses + orphaned_results


def _strip(messages: list[Json], *, role: str, kind: str, key: str, neighbour: int) -> int:
    """One pass, backwards. `neighbour` is the place of the partner: 1 for the next message, -1 for the previous one."""
    stripped = 0
    for index in reversed(range(len(messages))):
        message = messages[index]
        if message["role"] != role or isinstance(message["content"], str):
            continue
        partners = _partner_ids(messages, index + neighbour)
        kept = [block for block in message["content"] if block["type"] != kind or block[key] in partners]
        stripped += len(message["content"]) - len(kept)
        message["content"] = kept
        if not kept:
            del messages[index]
    return stripped


def _partner_ids(messages: Sequence[Json], index: int) -> set[str]:
    """The call ids in one message, of uses and of results."""
    content = messages[index]["content"] if 0 <= index < len(messages) else ""
    if isinstance(content, str):
        return set()
    return {block.get("tool_use_id") or block.get("id", "") for block in content}
