"""Files that a program writes and reads: written in one piece, read with a sentence for each mistake."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wedgehog.harness.record.expectation import shown

ESCAPED = "backslashreplace"
"""An agent may answer with half a surrogate pair, which UTF-8 has no bytes for; as an escape it is valid JSON."""


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old or the new one, never a part of it."""
    with draft_of(path) as draft:
        draft.write_text(text, encoding="utf-8", errors=ESCAPED)


@contextlib.contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """A file to write, which then takes the place of `path`. An OSError names `path`, not the draft."""
    draft = path.with_name(f".{path.name}.part")
    try:
        yield draft
        draft.replace(path)
    except OSError as wrong:
        if wrong.filename == str(draft):
            raise OSError(wrong.errno, wrong.strerror, str(path)) from None
        raise
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file that a program wrote. ValueError, in one sentence: it can't be read."""
    try:
        data = json.loads(path.read_bytes().decode("utf-8"))
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not UTF-8 text; expected JSON") from None
    except json.JSONDecodeError as wrong:
        raise ValueError(f"{path}:{wrong.lineno}: not valid JSON") from None
    except RecursionError:
        raise ValueError(f"{path}: nested too deeply") from None
    except OSError as wrong:
        raise ValueError(f"{path}: can't be read: {wrong.strerror}") from None
    if not isinstance(data, dict):
        raise ValueError(f"{path}: expected a JSON object, found {shown(data)}")  # noqa: TRY004  a mistake in the file
    return data
