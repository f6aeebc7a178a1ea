"""The exit code of a campaign."""

from collections.abc import Sequence

from wedgehog.harness.record.judgement import Judgement

FAILED = 1
"""The exit code if a run failed."""
UNCLEAR = 3
"""The exit code if no run failed, and at least one is an error or inconclusive, or an agent played nothing."""


def exit_code(judgements: Sequence[Judgement]) -> int:
    """1 if any run failed; else 3 if any is an error or inconclusive; else 0. Known failures and cells don't count."""
    known = [j for j in judgements if j.known and j.verdict == "fail"]
    counted = [j for j in judgements if j not in known and not (j.matrix_only or j.skipped)]
    states = [_counts_as(judgement) for judgement in counted]
    return FAILED if "fail" in states else UNCLEAR if "unclear" in states else 0


def _counts_as(judgement: Judgement) -> str:
    if judgement.in_order:
        return "pass"
    return "unclear" if judgement.verdict in ("error", "inconclusive") else "fail"
