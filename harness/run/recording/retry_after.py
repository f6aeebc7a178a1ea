"""Reads the Retry-After of a refusal."""

import contextlib
import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def retry_after_s(value: float | str | None, now: datetime) -> tuple[float | None, bool]:
    """Retry-After in seconds from `now`, and whether it was a date. Unreadable values ask for nothing."""
    if value is None:
        return None, False
    with contextlib.suppress(ValueError):
        seconds = float(value)
        return (seconds, False) if math.isfinite(seconds) else (None, False)
    with contextlib.suppress(ValueError):
        date = parsedate_to_datetime(str(value))
        return ((date if date.tzinfo else date.replace(tzinfo=UTC)) - now).total_seconds(), True
    return None, False
