"""A verdict as a small coloured word: a letter, the words, and never the colour alone."""

from wedgehog.harness.store import StoredRun
from wedgehog.harness.verdict import Status
from wedgehog.reports.markup import Markup, tag
from wedgehog.reports.standing import reads, standing
from wedgehog.reports.words import NONE

LETTERS = {"pass": "P", "fail": "F", "inconclusive": "I", "error": "E", "nothing": NONE, "skipped": "S"}
_TONES = {"pass": "passed", "fail": "failed"}


def run_chip(run: StoredRun, anchor: str = "") -> Markup:
    """The verdict of a run, linked to its section if `anchor` is given."""
    judged = run.judgement
    stands, words = standing(judged), reads(judged)
    colour = " red" if judged.verdict == "fail" else " green" if judged.verdict == "pass" else ""
    letter = LETTERS["skipped" if judged.skipped else judged.verdict]
    word, _, remark = words.partition(" (")
    content = (tag("b", letter), word, tag("small", remark.rstrip(")")) if remark else None)
    href = f"#{anchor}" if anchor else None
    return tag("a" if anchor else "span", content, class_=f"chip {stands}{colour}", href=href)


def status_chip(status: Status) -> Markup:
    """The verdict of one invariant."""
    word = "nothing to judge" if status == "nothing" else status
    return tag("span", tag("b", LETTERS[status]), word, class_=f"chip {_TONES.get(status, status)}")
