"""A verdict as a small coloured word: a letter, the words, and never the colour alone."""

from wedgehog.harness.record.store import StoredRun
from wedgehog.harness.record.verdict import Status
from wedgehog.reports.markup import Markup, tag
from wedgehog.reports.result_category import reads, result_category
from wedgehog.reports.words import NONE

LETTERS = {"pass": "P", "fail": "F", "inconclusive": "I", "error": "E", "nothing": NONE, "skipped": "S"}
_TONES = {"pass": "passed", "fail": "failed"}


def run_badge(run: StoredRun, anchor: str = "") -> Markup:
    """The verdict of a run, linked to its section if `anchor` is given."""
    judged = run.judgement
    words = reads(judged)
    letter = LETTERS["skipped" if judged.skipped else judged.verdict]
    word, _, remark = words.partition(" (")
    content = (tag("b", letter), word, tag("small", remark.rstrip(")")) if remark else None)
    href = f"#{anchor}" if anchor else None
    return tag("a" if anchor else "span", content, class_=_classes(run), href=href)


def small_badge(run: StoredRun, anchor: str) -> Markup:
    """Only the letter, for a cell of a large matrix; its words are the link's name and show when it is pointed at."""
    judged = run.judgement
    words = ": ".join(part for part in (reads(judged), ", ".join(judged.violated)) if part)
    letter = LETTERS["skipped" if judged.skipped else judged.verdict]
    return tag("a", tag("b", letter), class_=_classes(run, "small"), href=f"#{anchor}", title=words, aria_label=words)


def _classes(run: StoredRun, more: str = "") -> str:
    colour = {"fail": "red", "pass": "green"}.get(run.judgement.verdict, "")
    return " ".join(part for part in ("chip", result_category(run.judgement), colour, more) if part)


def status_badge(status: Status) -> Markup:
    """The verdict of one invariant."""
    word = "nothing" if status == "nothing" else status
    return tag("span", tag("b", LETTERS[status]), word, class_=f"chip {_TONES.get(status, status)}")
