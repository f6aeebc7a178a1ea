"""Smaller scenarios: each candidate leaves something out, or says it more simply. The largest cuts come first."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

from wedgehog.fake_llm.script.file_tools import FILE_ROLES
from wedgehog.harness.scenario.trigger import HOST
from wedgehog.harness.search.scripts import Drawn, as_items

SHORT_TEXT = "Yes. {nonce}"
SHORT_MESSAGE = "Go on."


Simplification = Callable[[Drawn], Iterator[Drawn]]
"""Gives candidates, each smaller than a scenario in one way."""


def _fewer_faults(document: Drawn) -> Iterator[Drawn]:
    faults = document["faults"]
    for index in range(len(faults)) if len(faults) > 1 else ():
        yield {**document, "faults": faults[:index] + faults[index + 1 :]}


def _fewer_turns(document: Drawn) -> Iterator[Drawn]:
    for number in range(len(document["turns"]), 0, -1):
        if len(document["turns"]) > 1 and all(_place(line, "turn") != number for line in _triggered(document)):
            found = copy.deepcopy(document)
            del found["turns"][number - 1]
            _renumber(found, "turn", number, lambda line: True)
            yield _without_unused_tools(found)


def _fewer_steps(document: Drawn) -> Iterator[Drawn]:
    for turn, given in enumerate(document["turns"], 1):
        for step in range(1, len(given["model"])):
            mine = [line for line in _triggered(document) if _place(line, "turn") == turn]
            if any(_place(line, "step") == step and "tool" in line.get("at", {}) for line in mine):
                continue
            found = copy.deepcopy(document)
            del found["turns"][turn - 1]["model"][step - 1]
            _renumber(found, "step", step, lambda line, turn=turn: _place(line, "turn") == turn)
            yield _without_unused_tools(found)


def _fewer_items(document: Drawn) -> Iterator[Drawn]:
    """Leave out an item of a reply; the first tool call and the last item stay."""
    for turn, given in enumerate(document["turns"]):
        for step, reply in enumerate(given["model"]):
            for index in range(len(reply)) if isinstance(reply, list) and len(reply) > 1 else ():
                left = reply[:index] + reply[index + 1 :]
                if {"tool", "text"} & left[-1].keys() and not (_calls(reply) and not _calls(left)):
                    yield _with(document, left[0] if len(left) == 1 else left, "turns", turn, "model", step)


def _simpler_faults(document: Drawn) -> Iterator[Drawn]:
    for index, line in enumerate(document["faults"]):
        at = line.get("at", {})
        for key in [*(key for key in ("times", "heal", "sticks_to", "at") if key in line)]:
            yield _with(document, {name: value for name, value in line.items() if name != key}, "faults", index)
        for key in at if len(at) > 1 else ():
            left = {name: value for name, value in at.items() if name != key}
            yield _with(document, left, "faults", index, "at")
        for key in ("turn", "step", "attempt", "tool"):
            if at.get(key, 1) > 1:
                yield _with(document, at[key] - 1, "faults", index, "at", key)
        if isinstance(line["do"], dict):
            (name,) = line["do"]
            yield _with(document, name, "faults", index, "do")
            given = line["do"][name]
            for key in given if isinstance(given, dict) and len(given) > 1 else ():
                yield _with(document, {k: v for k, v in given.items() if k != key}, "faults", index, "do", name)


def _all_words_simpler(document: Drawn) -> Iterator[Drawn]:
    """All words at once: a failure rarely depends on them."""
    found = document
    while (simpler := next(_simpler_words(found), None)) is not None:
        found = simpler
    if found is not document:
        yield found


def _simpler_words(document: Drawn) -> Iterator[Drawn]:
    for turn, given in enumerate(document["turns"]):
        if given.get("user") != SHORT_MESSAGE:
            other = {key: value for key, value in given.items() if key not in ("user", "resume", "wake_up")}
            yield _with(document, {"user": SHORT_MESSAGE, **other}, "turns", turn)
        for step, reply in enumerate(given["model"]):
            if not reply:
                yield _with(document, {"text": SHORT_TEXT}, "turns", turn, "model", step)
            for place, item in enumerate(reply) if isinstance(reply, list) else [(None, reply)]:
                where = ("turns", turn, "model", step, *(() if place is None else (place,)))
                if (short := _short(item)) != item:
                    yield _with(document, short, *where)


def _short(item: Drawn) -> Drawn:
    if "{nonce}" in str(item.get("text", "")):
        return {"text": SHORT_TEXT}
    if item.get("tool") == "shell":
        return {"tool": "shell", "args": {"command": "echo one"}}
    return item


def _calls(reply: list[Drawn]) -> int:
    return sum("tool" in item for item in reply)


def _place(line: Drawn, key: str) -> int:
    return int(line.get("at", {}).get(key, 1))


def _triggered(document: Drawn) -> list[Drawn]:
    """Whatever has a trigger: faults, and messages beside a running turn."""
    return [*document["faults"], *({"at": turn["during"]} for turn in document["turns"] if "during" in turn)]


def _renumber(document: Drawn, key: str, after: int, concerned: Any) -> None:
    for line in _triggered(document):
        if concerned(line) and _place(line, key) > after:
            line["at"][key] -= 1


def _with(document: Drawn, value: Any, *where: str | int) -> Drawn:
    """A copy with another value at a place."""
    found = copy.deepcopy(document)
    inner: Any = found
    for key in where[:-1]:
        inner = inner[key]
    inner[where[-1]] = value
    return found


def _without_unused_tools(document: Drawn) -> Drawn:
    """Without files, and tools of our host, that no reply calls for; a fault on the host needs a tool all the same."""
    names = {item.get("tool") for turn in document["turns"] for reply in turn["model"] for item in as_items(reply)}
    if names.isdisjoint(FILE_ROLES):
        document.pop("files", None)
    if any(line.get("link") == HOST for line in document["faults"]):
        return document
    left = {name: tool for name, tool in document.get("tools", {}).items() if name in names}
    document.pop("tools", None)
    return document | ({"tools": left} if left else {})


SIMPLIFICATIONS: tuple[Simplification, ...] = (
    _all_words_simpler,
    _fewer_faults,
    _fewer_turns,
    _fewer_steps,
    _fewer_items,
    _simpler_faults,
    _simpler_words,
)
