"""What a session file of the agent holds: the tool calls without a result, and the sums of its own numbers."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

READ_AT_MOST = 8_000_000
LARGEST = 1e15
"""A larger number is no amount."""
_CALL_TYPES: Final = frozenset({"tool_use", "tool_call", "toolCall", "function", "function_call"})
_CALL_LISTS: Final = frozenset({"tool_calls", "toolCalls", "calls"})
_IDS: Final = ("call_id", "id")
_AMOUNT: Final = re.compile(r"tokens|usd|cost|price|queries|latency|duration|elapsed|(_|\b)m?s$", re.IGNORECASE)
"""Names of numbers of which a sum means something."""
_MONEY: Final = re.compile(r"usd|cost|price|dollar", re.IGNORECASE)
_STATUS: Final = ("status", "state")


@dataclass(frozen=True, slots=True)
class SessionState:
    """What was read of one session file."""

    records: int
    """Lines that are JSON; 1 for a file that is one JSON document."""
    torn: bool
    """Whether its end is no whole record."""
    calls: tuple[str, ...]
    """The ids of its tool calls."""
    dangling: tuple[str, ...]
    """Those without a result."""
    sums: Mapping[str, float]
    """The sums of the numbers that each record has at its top; only of JSON lines."""
    blank: int = 0
    """Records in which all of these numbers are 0."""
    has_money: bool = False
    """Whether any record has an amount of money at its top."""
    status: str = ""
    """The last `status` or `state` that a record has at its top, as a text."""


def session_state(path: Path) -> SessionState | None:
    """What a session file of JSON or of JSON lines holds; None if it can't be read, is too long, or is of another kind.

    A tool call is known by its type, as the providers' formats name it; a result names the id of its call.
    """
    try:
        text = path.read_text("utf-8", "replace") if path.stat().st_size <= READ_AT_MOST else ""
    except OSError:
        return None
    records, torn = _records(text)
    if not records:
        return None
    calls, named = _ids(records)
    sums = _sums(records) if path.suffix == ".jsonl" and isinstance(records[0], dict) else {}
    blank = sum(all(it[name] == 0 for name in sums) for it in records) if sums else 0
    return SessionState(
        len(records),
        torn,
        tuple(calls),
        tuple(it for it in calls if it not in named),
        sums,
        blank,
        any(_MONEY.search(str(name)) for it in records if isinstance(it, dict) for name in it),
        next(filter(None, map(_status, reversed(records))), ""),
    )


def _status(record: Any) -> str:
    found = [record.get(name) for name in _STATUS] if isinstance(record, dict) else []
    return next((it for it in found if isinstance(it, str)), "")


def _records(text: str) -> tuple[list[Any], bool]:
    whole = _parsed(text)
    lines = [line for line in text.splitlines() if line.strip()]
    if whole is not None or not lines:
        return ([] if whole is None else [whole]), False
    read = [_parsed(line) for line in lines]
    return [it for it in read if isinstance(it, dict)], read[-1] is None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _ids(records: list[Any]) -> tuple[dict[str, None], set[str]]:
    """The ids of the tool calls in order, and all other texts."""
    calls: dict[str, None] = {}
    others: set[str] = set()
    waiting: list[tuple[Any, bool]] = [(records, False)]
    while waiting:
        it, listed = waiting.pop()
        if isinstance(it, dict):
            known = listed or str(it.get("type")) in _CALL_TYPES  # a JSON Schema may have a property `type`
            own = next((key for key in _IDS if it.get(key)), "") if known else ""
            if own:
                calls[str(it[own])] = None
            waiting += [(value, key in _CALL_LISTS) for key, value in reversed(it.items()) if key != own]
        elif isinstance(it, list):
            waiting += [(value, listed) for value in reversed(it)]
        elif isinstance(it, str):
            others.add(it)
    return calls, others


def _sums(records: list[Any]) -> dict[str, float]:
    first = records[0]
    names = [name for name, value in first.items() if _is_number(value) and _AMOUNT.search(name)]
    return {name: sum(it[name] for it in records) for name in names if all(_is_number(it.get(name)) for it in records)}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST
