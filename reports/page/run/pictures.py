"""Pictures of an agent's page, as a part of the report."""

import base64
from pathlib import Path

from wedgehog.harness.record.views import Turn
from wedgehog.reports.markup import Markup, tag

READ_AT_MOST = 1_000_000
"""A larger picture stays in the run's folder."""


def picture(folder: Path, turn: Turn) -> Markup | None:
    """The page at the end of the turn; None if there is no picture."""
    if turn.end is None or not turn.end.picture:
        return None
    file = folder / Path(turn.end.picture).name
    try:
        taken = file.read_bytes() if file.stat().st_size <= READ_AT_MOST else b""
    except OSError:
        return None
    source = f"data:image/jpeg;base64,{base64.b64encode(taken).decode()}"
    return (
        tag("img", src=source, alt=f"The page at the end of {turn}", class_="page", loading="lazy") if taken else None
    )
