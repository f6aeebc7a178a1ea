"""What `wedgehog fuzz` prints: what was tried, what was found, and how to play it."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from wedgehog.harness.faults.base import registered
from wedgehog.harness.search.corpus import Corpus, Finding
from wedgehog.harness.search.found import Found
from wedgehog.harness.search.search import Objective, Search

UNCLEAR_SHOWN = 3
NUMBERS = re.compile(r"\w*\d[\w.]*")
"""Parts that may differ between two sentences about one failure: numbers and ids of calls."""


@dataclass(frozen=True)
class FuzzReport:
    """The lines about one search."""

    search: Search
    named: Sequence[str]
    """The agents as the user named them: a replay command repeats them."""
    objective: Objective | None
    folder: Path
    _: KW_ONLY
    names_agents: bool
    """Whether each finding names its agent."""

    def lines(self) -> Iterator[str]:
        """What was tried and found, for the terminal."""
        found = self.search.result
        yield from _coverage(self.search, found)
        yield from _doubts(found)
        yield from self._greatest(found)
        if not found.findings:
            yield "no failure found"
        for alike in alike_findings(found.findings):
            yield ""
            yield from self._finding(alike[0])
            for other in alike[1:]:
                yield f"    the same with {'; '.join(map(_words, other.document['faults']))}: {other.path}"

    def _greatest(self, found: Found) -> Iterator[str]:
        objective = self.objective
        if objective is None or not found.greatest:
            return
        path = Corpus(self.folder).greatest_path(objective)
        yield f"greatest {objective}: {found.greatest[0].measures}"
        for line in found.greatest[0].document["faults"]:
            yield f"    {_words(line)}"
        yield f"    {path}"
        yield self._play_it(path)

    def _play_it(self, path: Path) -> str:
        agents = (word for name in self.named for word in ("--agent", name))
        return f"    play it: {shlex.join(['wedgehog', 'run', str(path), *agents])}"

    def _finding(self, finding: Finding) -> Iterator[str]:
        agent = f" ({finding.agent})" if self.names_agents else ""
        says = finding.says.removeprefix(f"{finding.violated[0]}: ")
        yield f"✗ {', '.join(finding.violated)}{agent}: {says}"
        for line in finding.document["faults"]:
            yield f"    {_words(line)}"
        size = f"{finding.replays} replays" if finding.whole else f"{finding.replays} replays, not at its smallest yet"
        yield f"    {finding.path} ({size})"
        if finding.breaks_at:
            yield f"    breaking point: {finding.breaks_at}"
        if finding.again:
            yield f"    {finding.again} other scenarios show the same"
        if finding.live:
            yield f"    live: {finding.live}"
        yield self._play_it(finding.path)


def alike_findings(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Findings of one sentence together, the smallest first: one bug often shows under several faults."""
    found: dict[tuple[object, ...], list[Finding]] = {}
    for finding in sorted(findings, key=lambda it: (len(it.document["faults"]), len(str(it.document)), it.path.stem)):
        found.setdefault((finding.agent, finding.violated, NUMBERS.sub("#", finding.says)), []).append(finding)
    return sorted(found.values(), key=lambda alike: alike[0].path.stem)


def _coverage(search: Search, found: Found) -> Iterator[str]:
    tried = search.coverage.tried
    every = {cell.fault for cell in search.all_cells}
    unasked = {name for name, fault in registered().items() if fault.unofficial} - every
    faults = {cell.fault for cell in tried}
    places = {cell.place for cell in tried}
    yield (
        f"tried {found.tried} scenarios: {len(faults)} of {len(every)} faults, "
        f"{len(places)} of {len({cell.place for cell in search.all_cells})} places, "
        f"{len(tried)} of {len(search.all_cells)} single faults"
    )
    if missing := sorted(every - faults):
        yield f"not tried yet: {', '.join(missing)}; the next search goes on from here"
    if absent := sorted(registered().keys() - every - unasked):
        yield f"not for this agent: {', '.join(absent)}"
    if unasked:
        yield f"tried only if asked (--also), because no official provider shows it: {', '.join(sorted(unasked))}"


def _doubts(found: Found) -> Iterator[str]:
    for name in found.gone:
        yield f"✓ {name} passes now"
    if found.unsteady:
        first = found.unsteady[0]
        yield f"{len(found.unsteady)} failed once and not again, such as {', '.join(first.failure[1])}: {first.says}"
    for finding in found.untried:
        yield f"failed once, and the budget ended before a second try: {finding.path}"
    if found.unclear:
        yield f"{len(found.unclear)} were not decided, such as:"
        for played in found.unclear[:UNCLEAR_SHOWN]:
            says = next(it.says for it in played.judgements if it.verdict in ("error", "inconclusive"))
            yield f"    {'; '.join(map(_words, played.document['faults']))}: {says}"


def _words(line: Mapping[str, object]) -> str:
    """A fault's line as it stands in a scenario file, on one line."""
    import yaml

    order = [key for key in ("link", "at", "do", "times") if key in line]
    shown = yaml.safe_dump({key: line[key] for key in order}, default_flow_style=True, sort_keys=False, width=10_000)
    return shown.strip()
