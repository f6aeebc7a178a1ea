"""What campaign.json says of a campaign: versions, machine, command line, and the scenarios."""

import contextlib
import platform
import shlex
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

from wedgehog.harness.campaign.selection import Entry
from wedgehog.harness.record.ledger import price_table_date


def wedgehog_version() -> str:
    """The installed version."""
    with contextlib.suppress(PackageNotFoundError):
        return version("wedgehog")
    return "source"


def of_all_runs(network: str, seed: int, command_line: str, started: str) -> dict[str, object]:
    """What holds for all runs."""
    return {
        "wedgehog": wedgehog_version(),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "network": network,
        "seed": seed,
        "command_line": command_line or shlex.join(sys.argv),
        "started": started,
        "prices": str(price_table_date()),
    }


def of_scenarios(entries: Iterable[Entry]) -> dict[str, object]:
    """Family, reason and tags of each scenario."""
    files = {it.file.scenario.name: it.file for it in entries}
    return {
        "families": {name: file.family for name, file in files.items()},
        "whys": {name: file.scenario.why for name, file in files.items()},
        "tags": {name: file.scenario.tags for name, file in files.items()},
    }
