"""How a run counts, and in which words its verdict reads: a red one that was expected is no failure."""

from collections.abc import Iterable, Mapping
from typing import Literal

from wedgehog.harness.record.store import Judgement
from wedgehog.reports.words import NONE

ResultCategory = Literal["passed", "failed", "inconclusive", "error", "skipped", "known", "shown"]
"""`known`: it fails for a reason its spec gives; `shown`: a cell of the fix matrix that counts as nothing."""

STANDINGS: tuple[ResultCategory, ...] = ("passed", "failed", "skipped", "inconclusive", "error", "known", "shown")

SIGNS: Mapping[ResultCategory, str] = {
    "passed": "✓",
    "failed": "✗",
    "inconclusive": "?",
    "error": "!",
    "skipped": NONE,
    "known": "~",
    "shown": "·",
}

ATTENTION: tuple[ResultCategory, ...] = ("failed", "error", "inconclusive")
"""What a person should look at."""

_PLURALS = {"error": "errors", "known": "known failures", "shown": "only shown"}
_SINGULARS = {"known": "known failure", "shown": "only shown"}


def result_category(judgement: Judgement) -> ResultCategory:
    """As what the run counts."""
    if judgement.skipped:
        return "skipped"
    if judgement.matrix_only:
        return "shown"
    if judgement.as_expected or (judgement.as_expected is None and judgement.verdict in ("pass", "nothing")):
        return "passed"
    if judgement.verdict == "error":
        return "error"
    if judgement.verdict == "inconclusive" or judgement.in_doubt:
        return "inconclusive"
    return "known" if judgement.known and judgement.verdict == "fail" else "failed"


def attention_heading(looked_at: Iterable[Judgement]) -> str:
    """What stands over them: only where something was expected can it come otherwise."""
    return "Not as expected" if any(judgement.as_expected is not None for judgement in looked_at) else "Not passed"


def reads(judgement: Judgement) -> str:
    """The verdict in words: `pass`, `fail (expected)`, `fail (pass expected)`, …"""
    if judgement.skipped:
        return "skipped"
    verdict = "nothing judged" if judgement.verdict == "nothing" else judgement.verdict
    remark = _remark(judgement)
    return f"{verdict} ({remark})" if remark else verdict


def _remark(judgement: Judgement) -> str:
    wanted = judgement.expected.partition(":")[0].strip()
    if judgement.verdict not in ("pass", "fail"):
        return ""
    if judgement.as_expected is not None:
        if judgement.as_expected:
            return "expected" if judgement.verdict == "fail" else ""
        return "otherwise than expected" if wanted == judgement.verdict else f"{wanted} expected"
    if judgement.known:
        return "known" if judgement.verdict == "fail" else "known failure is gone"
    return ""


def tally(standings: Iterable[str], unfinished: int = 0) -> str:
    """`14 passed, 1 failed, 2 skipped`, and what else there was."""
    counted = list(standings)
    numbers: dict[str, int] = {name: counted.count(name) for name in STANDINGS}
    parts = [f"{numbers[name]} {name}" for name in STANDINGS[:3]]
    for name in STANDINGS[3:]:
        if numbers[name]:
            words = _SINGULARS if numbers[name] == 1 else _PLURALS
            parts.append(f"{numbers[name]} {words.get(name, name)}")
    if unfinished:
        parts.append(f"{unfinished} unfinished")
    return ", ".join(parts)
