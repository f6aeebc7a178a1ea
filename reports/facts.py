"""The facts of a run: what tables need of its history, kept beside it, so that a large campaign is folded fast.

`facts.json` is a cache: a seal on its first line, the facts on its second. The seal is a hash of the whole history, of
the facts, of our own program text and of the price table's version. If it fits, the facts are what that history gives.
If not (the history was edited, the file is damaged, or another version wrote it), the history is folded instead.
The facts hold no verdict; verdicts are in verdicts.json only.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from wedgehog.harness import record
from wedgehog.harness.record.files import write_whole
from wedgehog.harness.record.history import History, read
from wedgehog.reports.call_attributes import history_rows
from wedgehog.reports.history_numbers import RunNumbers, numbers_of

FACTS = "facts.json"


@dataclass(frozen=True, slots=True)
class RunFacts:
    """All that a report of many runs needs of one history."""

    numbers: RunNumbers
    calls: tuple[tuple[Any, ...], ...]
    """A row of `OF_HISTORY` for each call."""


def facts_of(history: History) -> RunFacts:
    """The facts of one history."""
    return RunFacts(numbers_of(history), tuple(history_rows(history)))


def keep_facts(folder: Path) -> None:
    """Write the facts of a finished run beside its history; of a history that can't be read there are none."""
    path = folder / "history.jsonl"
    try:
        history = path.read_bytes()
        body = json.dumps(asdict(facts_of(read(path))))
        write_whole(folder / FACTS, f"{_seal(history, body.encode())}\n{body}\n")
    except (OSError, ValueError):
        return


def refresh_facts(folder: Path) -> None:
    """Write the facts again if another version wrote them, or if they do not fit for another reason."""
    if kept_facts(folder) is None:
        keep_facts(folder)


def kept_facts(folder: Path) -> RunFacts | None:
    """The facts beside a history; None if there are none, or if they are not those of this history and program."""
    try:
        seal, body = _bytes(f"{folder}/{FACTS}").splitlines()
        if seal.decode() != _seal(_bytes(f"{folder}/history.jsonl"), body):
            return None
    except (OSError, ValueError):
        return None
    said = _parsed(body)
    numbers = said["numbers"] | {"times": tuple((measure, taken_s) for measure, taken_s in said["numbers"]["times"])}
    return RunFacts(RunNumbers(**numbers), tuple(map(tuple, said["calls"])))


def _parsed(body: bytes) -> Any:
    """Facts as data. Half a surrogate pair is read by the slower parser only."""
    try:
        return from_json(body)
    except ValueError:
        return json.loads(body)


def _bytes(path: str) -> bytes:
    """A file of one of many runs: a path as text and a file without a buffer take half the time."""
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123
        return file.read()


def _seal(history: bytes, body: bytes) -> str:
    """A hash of all that decides whether the facts hold; a history's hash has a fixed length, so no two join alike."""
    return hashlib.sha256(_program() + hashlib.sha256(history).digest() + body).hexdigest()


@cache
def _program() -> bytes:
    """A hash of the code that computes facts, and of the version of the price table."""
    rooms = Path(record.__file__).parent, Path(__file__).parent
    texts = [path.read_bytes() for room in rooms for path in sorted(room.rglob("*.py"))]
    return hashlib.sha256(b"\0".join([version("genai-prices").encode(), *texts])).digest()
