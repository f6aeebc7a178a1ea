"""What a search keeps on disk: what was tried, and the scenarios that it found. The next search goes on from there.

fuzz/<agents>/tried.jsonl        a line for each drawn scenario
fuzz/<agents>/tried-sim.jsonl    of searches in virtual time: a line for each batch of scenarios
fuzz/<agents>/found/*.yaml       the smallest scenario of each failure
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from wedgehog.harness.record.files import write_whole
from wedgehog.harness.record.store import safe_name
from wedgehog.harness.search.cells import SECOND_MESSAGE, SearchCell
from wedgehog.harness.search.drawn_scenario import fault_of
from wedgehog.harness.search.fault_order import Alone
from wedgehog.harness.search.player import Played, as_yaml
from wedgehog.harness.search.scripts import Drawn, kinds_in


@dataclass
class Finding:
    """One distinct failure, and the smallest scenario that shows it so far."""

    agent: str
    violated: tuple[str, ...]
    document: Drawn
    says: str
    path: Path
    replays: int = 0
    """How often a smaller scenario was tried."""
    confirmed: bool = False
    """Whether it failed a second time."""
    whole: bool = False
    """Whether no smaller scenario is left to try."""
    again: int = 0
    """How many other drawn scenarios show the same failure."""
    breaks_at: str = ""
    live: str = ""
    """What its scenario showed live, if it was found in virtual time and then played live."""
    seconds: float = 0.0
    """How long its scenario took when it was found."""

    @property
    def faults(self) -> frozenset[str]:
        """Names of the faults."""
        return fault_names(self.document)

    def explains(self, played: Played) -> bool:
        """Whether a failed scenario shows nothing new: the same violations, with at least these faults."""
        return played.failure == (self.agent, self.violated) and self.faults <= fault_names(played.document)

    def shown_live(self, played: Played) -> str:
        """What its scenario showed live, in words."""
        if played.failed and played.failure == (self.agent, self.violated):
            return "fails too"
        one = next(judgement for judgement in played.judgements if judgement.agent == self.agent)
        return "passes" if one.verdict == "pass" else f"{one.verdict}: {one.says}"


def fault_names(document: Drawn) -> frozenset[str]:
    """Names of what a scenario does to the agent: its faults and second messages, else the kinds of its script."""
    beside = {SECOND_MESSAGE} if any("during" in turn for turn in document["turns"]) else set()
    return frozenset(map(fault_of, document["faults"])) | beside or frozenset(kinds_in(document["turns"]))


class Corpus:
    """The folder of one search."""

    def __init__(self, folder: Path, tried: str = "tried") -> None:
        """Make the folder, and read what an earlier search left there in the list `tried`."""
        self.folder = folder
        self._found = folder / "found"
        self._found.mkdir(parents=True, exist_ok=True)
        self._tried = folder / f"{tried}.jsonl"
        self.lines = list(_lines(self._tried))

    @property
    def cells(self) -> list[SearchCell]:
        """The cells that were tried."""
        return [SearchCell(**words) for line in self.lines for words in line["cells"]]

    @property
    def known(self) -> list[Path]:
        """Scenarios that earlier searches found."""
        return sorted(self._found.glob("*.yaml"))

    def forget(self) -> None:
        """Begin anew; found scenarios stay."""
        self.lines = []
        self._tried.unlink(missing_ok=True)

    def keep(self, cells: list[SearchCell], played: Played) -> None:
        """Write a line about one drawn scenario."""
        verdicts = [judgement.verdict for judgement in played.judgements]
        self._line(
            {"cells": [asdict(cell) for cell in cells], "verdicts": verdicts, "seconds": round(played.seconds, 2)}
        )

    def keep_batch(self, cells: list[SearchCell], *, ordered: bool, alone: Mapping[str, Any]) -> None:
        """Write a line about a batch: its new cells, whether it was an ordered one, and what a fault did alone."""
        self._line({"cells": [asdict(cell) for cell in cells], "ordered": ordered, "alone": alone})

    @property
    def alone(self) -> dict[str, list[Alone]]:
        """What each fault that was tried alone did."""
        lines = (line.get("alone", {}) for line in self.lines)
        return {fault: [Alone.read(it) for it in seen] for line in lines for fault, seen in line.items()}

    @property
    def ordered(self) -> int:
        """How many ordered batches were played."""
        return sum(bool(line.get("ordered")) for line in self.lines)

    def _line(self, line: dict[str, Any]) -> None:
        self.lines.append(line)
        with self._tried.open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")

    def new_path(self, played: Played) -> Path:
        """A free file name for a failure."""
        stem = safe_name("-".join([played.failure[1][0].replace("_", "-"), *sorted(fault_names(played.document))]))
        stem = stem.lower().replace("_", "-").replace(".", "-")
        names = [stem, *(f"{stem}-{number}" for number in range(2, 1000))]
        taken = {path.stem for path in self._found.glob("*.yaml")}
        return self._found / f"{next(name for name in names if name not in taken)}.yaml"

    def greatest_path(self, objective: str) -> Path:
        """The file of the greatest scenario; it is no failure, so it lies beside those that were found."""
        return self.folder / f"greatest-{objective}.yaml"

    def save_greatest(self, played: Played, objective: str) -> None:
        """Write it as a file that replays anywhere."""
        path = self.greatest_path(objective)
        why = f"The greatest {objective} that a search found: {played.measures}."
        write_whole(path, as_yaml({**played.document, "name": path.stem, "why": why}))

    def save(self, finding: Finding) -> None:
        """Write the finding's scenario as a file that replays anywhere."""
        why = f"Found by a search with {finding.agent}: {finding.says}"
        document = {**finding.document, "name": finding.path.stem, "why": why}
        write_whole(finding.path, as_yaml(document))


def read_scenario(path: Path) -> Drawn:
    """The document of a scenario file."""
    found: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {"faults": [], **found}


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The whole lines; the last one may be cut where a search was killed."""
    for text in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        try:
            yield json.loads(text)
        except ValueError:
            continue
