"""Where the harness is, if there is one: in the environment, or in a file in HOME."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from wedgehog.harness.stdio_proxy import ADDRESS_FILE, ADDRESS_VARIABLE, RUN_VARIABLE


class HarnessAddress(NamedTuple):
    """Whom to call, with which secret, and the mark that processes of its run carry."""

    host: str
    port: int
    secret: str
    mark: str


def find_harness(env: Mapping[str, str]) -> HarnessAddress | None:
    """The harness around us; None where there is none, or where what names it makes no sense."""
    lines = env.get(ADDRESS_VARIABLE, "").split() or _kept(env.get("HOME", ""))
    mark = env.get(RUN_VARIABLE) or (lines[1] if len(lines) > 1 else "")
    parts = lines[0].rsplit(":", 2) if lines else []
    if len(parts) != 3 or not parts[1].isdecimal():
        return None
    return HarnessAddress(parts[0], int(parts[1]), parts[2], mark)


def _kept(home: str) -> list[str]:
    try:
        with open(os.path.join(home, ADDRESS_FILE), encoding="utf-8") as file:  # noqa: PTH118, PTH123  pathlib is slow
            return file.read().split()
    except OSError:
        return []
