"""How a run counts, how its verdict reads in words, and its badge in the page. An expected fail is no failure."""

from collections.abc import Iterable, Mapping
from typing import Literal

from wedgehog.harness.record.judgement import IN_ORDER, Judgement
from wedgehog.harness.record.store import StoredRun
from wedgehog.harness.record.verdict import Status
from wedgehog.reports.markup import Markup, tag
from wedgehog.reports.words import NONE

ResultCategory = Literal["passed", "failed", "inconclusive", "error", "skipped", "known", "shown"]
"""`known`: a failure that the agent's spec lists. `shown`: a cell of the fix matrix, which does not count."""

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
"""Categories that a person should look at."""

WORST_FIRST: tuple[ResultCategory, ...] = (*("failed", "error", "inconclusive", "known", "shown", "passed", "skipped"),)

LETTERS = {"pass": "P", "fail": "F", "inconclusive": "I", "error": "E", "nothing": NONE, "skipped": "S"}
_TONES = {"pass": "passed", "fail": "failed"}
_PLURALS = {"error": "errors", "known": "known failures", "shown": "only shown"}
_SINGULARS = {"known": "known failure", "shown": "only shown"}


def result_category(judgement: Judgement) -> ResultCategory:
    """The category under which the run counts."""
    return _category(judgement, in_order=judgement.in_order, known=bool(judgement.known))


def alike(judgement: Judgement) -> tuple[object, ...]:
    """What repeats that ended alike have in common."""
    said = (result_category(judgement), judgement.verdict, judgement.violated)
    return (judgement.scenario, judgement.agent, *said)


def verdict_category(judgement: Judgement) -> ResultCategory:
    """The category by the verdict alone: a fail is failed, whatever the scenario or the spec expects of the agent."""
    return _category(judgement, in_order=judgement.verdict in IN_ORDER, known=False)


def _category(judgement: Judgement, *, in_order: bool, known: bool) -> ResultCategory:
    if judgement.skipped:
        return "skipped"
    if judgement.matrix_only:
        return "shown"
    if in_order:
        return "passed"
    if judgement.verdict == "error":
        return "error"
    if judgement.verdict == "inconclusive":
        return "inconclusive"
    return "known" if known and judgement.verdict == "fail" else "failed"


def agent_name(judgement: Judgement) -> str:
    """The agent, with the number of a repeat."""
    return judgement.agent if judgement.repeat == 1 else f"{judgement.agent} (repeat {judgement.repeat})"


def attention_heading(judgements: Iterable[Judgement]) -> str:
    """The heading over these runs; it depends on whether any of them has `expect`."""
    return "Not as expected" if any(judgement.as_expected is not None for judgement in judgements) else "Not passed"


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
        return "not as expected" if wanted == judgement.verdict else f"{wanted} expected"
    if judgement.known:
        return "known" if judgement.verdict == "fail" else "known failure is gone"
    return ""


def tally(standings: Iterable[str], unfinished: int = 0) -> str:
    """`14 passed, 1 failed, 2 skipped`, and the number of each other category that occurs."""
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


# ---- badges in the page: a letter and words; the colour never stands alone


def run_badge(run: StoredRun, anchor: str = "", share: str = "") -> Markup:
    """The verdict of a run, linked to its section if `anchor` is given; `share` is `3 of 3` for its repeats."""
    word, _, remark = reads(run.judgement).partition(" (")
    content = (tag("b", _letter(run)), f"{word} {share}".rstrip(), tag("small", remark.rstrip(")")) if remark else None)
    href = f"#{anchor}" if anchor else None
    return tag("a" if anchor else "span", content, class_=_classes(run), href=href)


def small_badge(run: StoredRun, anchor: str) -> Markup:
    """Only the letter, for a cell of a large matrix; the words are the link's title."""
    words = ": ".join(part for part in (reads(run.judgement), ", ".join(run.judgement.violated)) if part)
    classes = _classes(run, "small")
    href = f"#{anchor}" if anchor else None
    return tag(
        "a" if href else "span", tag("b", _letter(run)), class_=classes, href=href, title=words, aria_label=words
    )


def _letter(run: StoredRun) -> str:
    return LETTERS["skipped" if run.judgement.skipped else run.judgement.verdict]


def _classes(run: StoredRun, more: str = "") -> str:
    colour = {"fail": "red", "pass": "green"}.get(run.judgement.verdict, "")
    return " ".join(part for part in ("chip", result_category(run.judgement), colour, more) if part)


def status_badge(status: Status) -> Markup:
    """The verdict of one invariant."""
    return tag("span", tag("b", LETTERS[status]), status, class_=f"chip {_TONES.get(status, status)}")
