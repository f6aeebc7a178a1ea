"""The run folder: everything needed to judge and report again, elsewhere.

    runs/<time>-<id>/                campaign.json summary.csv junit.xml report.html bodies/<hash>
        <scenario>/<agent>/          scenario.yaml history.jsonl verdicts.json agent.log session/…

Each event is written and flushed as it happens, so that a kill at any time loses at most the one being written.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.files import ESCAPED, read_object, write_whole
from wedgehog.harness.record.history import History, read
from wedgehog.harness.record.judgement import Judgement, read_judgement, write_judgement

BODIES = "bodies"
"""The campaign's folder of request and reply bodies."""
MOST_COMPARED = 4
"""How many of a run's last bodies of one size are read again to find a repeat."""


class RunStore:
    """One run's folder, while the run lasts."""

    def __init__(self, folder: Path, bodies: Path) -> None:
        """Make the folder; `bodies` keeps request and reply bodies by hash, each once."""
        folder.mkdir(parents=True, exist_ok=True)
        bodies.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.hides: dict[str, str] = {}
        """Texts that are stored as others, such as passwords."""
        self._bodies = bodies
        self._by_size: dict[int, list[str]] = {}
        self._history = (folder / "history.jsonl").open("w", encoding="utf-8", errors=ESCAPED)
        self._failed: OSError | None = None
        """Why an event could not be written: the history is not whole, even if later ones can be."""

    def write(self, event: Event) -> None:
        """Append one event and flush it. An OSError names the file: that of a full disk does not."""
        line = self._hidden(json.dumps(event.as_json(), ensure_ascii=False)) + "\n"
        try:
            self._history.write(line)
            self._history.flush()
        except OSError as wrong:
            self._failed = OSError(wrong.errno, wrong.strerror, self._history.name)
            raise self._failed from None

    def keep_body(self, body: bytes) -> str:
        """Keep a body once, whatever the order of its JSON keys; return its name, a hash of 16 hex digits."""
        for text, instead in self.hides.items():
            body = body.replace(text.encode(), instead.encode())
        name = hashlib.sha256(body).hexdigest()[:16]
        alike = self._by_size.setdefault(len(body), [])
        if name in alike:
            return name
        same = next((it for it in alike[-MOST_COMPARED:] if _same_json(self._kept_body(it), body)), None)
        if same is not None:
            return same
        alike.append(name)
        self._write_body(name, body)
        return name

    def _kept_body(self, name: str) -> bytes:
        return (self._bodies / name).read_bytes()

    def _write_body(self, name: str, body: bytes) -> None:
        path = self._bodies / name
        if not path.exists():
            path.write_bytes(body)

    def keep_text(self, name: str, text: str) -> None:
        """Write a small file beside the history."""
        (self.folder / name).write_text(self._hidden(text), encoding="utf-8", errors=ESCAPED)

    def hide_in(self, name: str) -> None:
        """Hide what must not be stored in a file that another process wrote here."""
        path = self.folder / name
        if self.hides and path.is_file():
            self.keep_text(name, path.read_text(encoding="utf-8", errors=ESCAPED))

    def _hidden(self, text: str) -> str:
        for secret, instead in self.hides.items():
            text = text.replace(secret, instead)
        return text

    def close(self, judgement: Judgement | None = None) -> None:
        """Close the history; write the judgement, if any, in one piece. OSError: an event could not be written."""
        if self._failed is not None:
            with contextlib.suppress(OSError):
                self._history.close()
            raise self._failed
        self._history.close()
        if judgement is not None:
            write_judgement(self.folder, judgement)


def _same_json(one: bytes, other: bytes) -> bool:
    try:
        return bool(json.loads(one) == json.loads(other))
    except (ValueError, RecursionError):
        return False


@dataclass(frozen=True)
class StoredRun:
    """One finished run, as read from its folder."""

    folder: Path
    judgement: Judgement

    @cached_property
    def history(self) -> History:
        """Its history, read at the first use. ValueError, OSError: it can't be read."""
        return read(self.folder / "history.jsonl")

    def again(self) -> "StoredRun":
        """The same run, whose history is kept only as long as this object."""
        return StoredRun(self.folder, self.judgement)

    @property
    def session_files(self) -> tuple[Path, ...]:
        """The agent's session files, as copied at the end."""
        kept = self.folder / "session"
        return tuple(sorted(path for path in kept.rglob("*") if path.is_file())) if kept.is_dir() else ()


def read_run(folder: Path) -> StoredRun:
    """One run's folder. ValueError, in one sentence, if it is none or a file in it can't be read."""
    for name in ("history.jsonl", "verdicts.json"):
        if not (folder / name).is_file():
            raise ValueError(f"{folder}: no run folder ({name} is missing)")
    run = StoredRun(folder, read_judgement(folder))
    run.history  # noqa: B018  a run whose history can't be read is none
    return run


_MARKS = ("campaign.json", "verdicts.json", "history.jsonl")


def check_run_folder(folder: Path) -> None:
    """Look at the folder, its parent and its children, no deeper. ValueError: it is of no campaign, scenario or run."""
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder")
    ours = any((folder / name).is_file() for name in _MARKS) or (folder.resolve().parent / _MARKS[0]).is_file()
    if not ours and not any(_is_run(place) for place in folder.iterdir()):
        raise ValueError(f"{folder}: no run folder; expected that of a campaign, such as runs/latest, or of one run")


def _is_run(place: Path) -> bool:
    return all(os.access(place / name, os.R_OK) for name in ("verdicts.json", "history.jsonl", "scenario.yaml"))


def run_folders(campaign: Path) -> Iterator[Path]:
    """Outermost folders of finished runs at or below `folder`, by name: an agent's own folders may have such files."""
    outermost: list[Path] = []
    for folder in sorted({path.parent for path in campaign.rglob("verdicts.json")}, key=lambda path: path.parts):
        if not outermost or not folder.is_relative_to(outermost[-1]):
            outermost.append(folder)
    return iter(outermost)


class CampaignStore:
    """A campaign's folder: `runs/<time>-<id>`; `runs/latest` points to the newest."""

    def __init__(self, out: Path, started: datetime, run_id: str) -> None:
        """Make `out/<time>-<id>`; the time is UTC, so that names sort over midnight and daylight saving alike."""
        self.folder = out / f"{started.astimezone(UTC):%Y%m%dT%H%M%SZ}-{run_id}"
        self.folder.mkdir(parents=True)
        _point(out / "latest", self.folder)

    @classmethod
    def reopen(cls, folder: Path) -> "CampaignStore":
        """The store of a campaign that goes on."""
        store = cls.__new__(cls)
        store.folder = folder
        return store

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Lock the folder, so that no second process plays into it. A dead process holds nothing. ValueError."""
        holder = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise ValueError(f"{self.folder}: another process plays this campaign now") from None
        finally:
            os.close(holder)

    def run(self, scenario: str, agent: str, repeat: int = 1) -> RunStore:
        """Open the folder of one run."""
        return RunStore(self.run_folder(scenario, agent, repeat), self.folder / BODIES)

    def run_folder(self, scenario: str, agent: str, repeat: int = 1) -> Path:
        """The path of one run's folder; repeats after the first carry their number."""
        name = agent if repeat == 1 else f"{agent}.{repeat}"
        return self.folder / safe_name(scenario) / safe_name(name)

    @contextlib.contextmanager
    def replaced(self, scenario: str, agent: str, repeat: int = 1) -> Iterator[None]:
        """Keep a finished run while it is played again; it comes back if the second play does not end."""
        folder = self.run_folder(scenario, agent, repeat)
        first = first_result(folder)
        folder.rename(first)
        try:
            yield
        finally:
            if not (folder / "verdicts.json").is_file():
                shutil.rmtree(folder, ignore_errors=True)
                first.rename(folder)
            shutil.rmtree(first, ignore_errors=True)

    def describe(self, description: dict[str, Any]) -> None:
        """Write campaign.json."""
        write_whole(self.folder / "campaign.json", json.dumps(description, indent=1, ensure_ascii=False) + "\n")

    def description(self) -> dict[str, Any]:
        """What campaign.json says. ValueError: it can't be read."""
        return read_object(self.folder / "campaign.json")

    def add_to_description(self, key: str, *values: str) -> None:
        """Add values to a list in campaign.json."""
        known = self.description()
        self.describe(known | {key: [*known.get(key, []), *values]})


def first_result(folder: Path) -> Path:
    """Where a run is kept while it is played again. No run has such a name."""
    return folder.with_name(f".{folder.name}")


def safe_name(name: str) -> str:
    """A name that is one folder on every system."""
    return "".join(c if c.isalnum() or c in "-_.@" else "_" for c in name).strip(".") or "_"


def _point(link: Path, target: Path) -> None:
    """`runs/latest`, if the file system has links."""
    draft = link.with_name(f".latest.{os.getpid()}")
    try:
        draft.unlink(missing_ok=True)
        draft.symlink_to(target.name)
        draft.replace(link)
    except OSError:
        draft.unlink(missing_ok=True)
