"""Makes a failure simpler: a generator yields scenarios, and is sent which of them fail in the same way.

A search plays them at once, or waits for each; what is tried next is the same.
"""

from collections.abc import Generator
from itertools import islice

from wedgehog.harness.search.corpus import Finding
from wedgehog.harness.search.player import Played
from wedgehog.harness.search.scripts import Drawn
from wedgehog.harness.search.shrink import SIMPLIFICATIONS, Simplification
from wedgehog.harness.search.threshold import thresholds

Trials = Generator[Drawn, bool, None]
"""Yields a scenario, and is sent whether it shows the failure; it ends when nothing is left to try."""


def shows(finding: Finding, played: Played | None) -> bool:
    """Whether a played scenario fails as the finding does; then it is the finding's scenario."""
    finding.replays += 1
    if played is None or not played.failed:
        return False
    agent, violated = played.failure
    if agent != finding.agent or not set(finding.violated) <= set(violated):
        return False
    finding.document, finding.says = played.document, played.says
    return True


def shrink(finding: Finding) -> Trials:
    """Leave out what is not needed, until nothing smaller fails. No scenario is tried twice."""
    tried: set[str] = set()
    before = None
    while finding.document != before:
        before = finding.document
        for simplification in SIMPLIFICATIONS:
            yield from _try_all(finding, simplification, tried)
    finding.whole = True


def _try_all(finding: Finding, simplification: Simplification, tried: set[str]) -> Trials:
    """Try its candidates. After one that fails too, those that did not come last: the next round tries them again."""
    passed = 0
    candidates = simplification(finding.document)
    while (candidate := next(candidates, None)) is not None:
        passed += 1
        if (words := str(candidate)) in tried:
            continue
        tried.add(words)
        if (yield candidate):
            passed -= 1
            candidates = islice(simplification(finding.document), passed, None)


def measure(finding: Finding) -> Trials:
    """Find the numbers of its faults at which the verdict turns.

    The finding keeps its own seconds: at the very point, a run on another clock may pass.
    """
    said = []
    for index in range(len(list(thresholds(finding.document)))):
        kept, threshold = (finding.document, finding.says), list(thresholds(finding.document))[index]
        while (candidate := threshold.next()) is not None:
            threshold.tell(failed=(yield candidate))
        if not threshold.whole:
            finding.document, finding.says = kept
        said.append(threshold.says)
    finding.breaks_at = "; ".join(filter(None, said))
