"""A request before it is encoded, and its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

texts = st.sampled_from(["", " ", "Hi", "go on", "naïve 👩‍🚀", "\ud800", "\x00", "x" * 300]) | st.text(max_size=8)
arguments = st.dictionaries(st.sampled_from(["command", "path"]), texts, max_size=2)


@dataclass(frozen=True)
class Asked:
    """A request before it is bytes."""

    path: str
    headers: dict[str, str]
    document: Any
