"""The runs of a campaign in the page: whole sections for the worst ones, one row of a table for each other one."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from wedgehog.harness.record.store import StoredRun
from wedgehog.reports.campaign_folder import SINGLE_FIX, StoredCampaign
from wedgehog.reports.markup import Markup, html_table, line, tag
from wedgehog.reports.page.answers.related_runs import RelatedRuns
from wedgehog.reports.page.matrix import NumberedRun
from wedgehog.reports.page.run.run_section import anchor, run_section
from wedgehog.reports.result_category import (
    ATTENTION,
    WORST_FIRST,
    ResultCategory,
    agent_name,
    alike,
    result_category,
    run_badge,
)
from wedgehog.reports.words import one_line

OPEN_ALL_UP_TO = 3
"""Up to this many runs, all are shown unfolded."""
ALL_SECTIONS_UP_TO = 400
"""With more runs, passes are counted and not listed, and of repeats that ended alike only the first has a section."""
OPEN_AT_MOST = 5
"""The most runs that need attention and are unfolded; they are printed, folded ones are not."""

SECTIONS_BYTES = 4_000_000
ROWS_BYTES = 2_500_000
"""The sizes of all sections and of all rows, so that a page of 10,000 runs stays below 10 MB."""

UNLISTED: tuple[ResultCategory, ...] = ("shown", "passed", "skipped")
"""Results that a large campaign counts and does not list."""

MEANINGS = {
    "answered": "the user got the whole answer.",
    "surfaced": "no answer, but an error that the user could see.",
    "silent": "no answer and no error until the deadline.",
    "hidden": "no answer, and no word of an error: the turn ended with nothing, or with other words.",
    "truncated": "a part of a reply was shown as if it were whole.",
    "stopped by its user": "aborted, or its front end gave up.",
    "lost call": "the provider accepted it, and its reply did not arrive whole.",
    "paid": "the provider accepted the request, so it is billed, whatever arrived.",
    "continuation": "the request that carries the results of tool calls back to the model.",
    "recovery message": "one more message, after all faults are removed, to see whether the agent still works. "
    "Only numbers that name it count it.",
    "N allowed": "the bound of the invariant, by the scenario, by the agent's own spec or the stock one.",
    "1.2.3": "turn 1, step 2 (a step for each round of tool calls), attempt 3; of a tool call its number in the reply.",
}
"""What the words of the page mean."""

_HEADS = (("verdict", "keep"), ("run", "keep"), ("why", "says"), ("folder", "says"))


@dataclass(frozen=True)
class AllRuns:
    """The runs in the order of the page, worst first, and what each of them is shown as."""

    campaign: StoredCampaign

    @cached_property
    def ordered(self) -> list[NumberedRun]:
        """All runs; among equals a failure that was expected comes before a pass."""
        return sorted(enumerate(self.campaign.runs), key=lambda it: _rank(it[1]))

    @cached_property
    def bad(self) -> list[NumberedRun]:
        """The runs that need attention."""
        return [(n, run) for n, run in self.ordered if result_category(run.judgement) in ATTENTION]

    @property
    def counted(self) -> bool:
        """Whether the campaign is so large that passes are counted and not listed."""
        return len(self.campaign.runs) > ALL_SECTIONS_UP_TO

    @cached_property
    def representatives(self) -> list[NumberedRun]:
        """The runs that may have a section: of a large campaign, the first of the repeats that ended alike."""
        if not self.counted:
            return self.ordered
        first: dict[object, NumberedRun] = {}
        for number, run in self.ordered:
            first.setdefault(alike(run.judgement), (number, run))
        return list(first.values())

    @cached_property
    def sections(self) -> dict[int, Markup]:
        """Whole sections by the number of their run, as many as there is room for."""
        made: dict[int, Markup] = {}
        room = SECTIONS_BYTES
        # In a large campaign not each run is shown, and which ones have room is known only at the end.
        related = RelatedRuns([(n, run, "" if self.counted else anchor(n)) for n, run in self.representatives])
        few = len(self.campaign.runs) <= OPEN_ALL_UP_TO
        unfolded = {number for number, _ in self.bad[:OPEN_AT_MOST]}
        for number, run in self._for_room():
            section = run_section(number, run.again(), self.campaign, related, unfolded=few or number in unfolded)
            room -= len(section)
            if room < 0:
                break
            made[number] = section
        return {number: made[number] for number, _ in self.representatives if number in made}

    def _for_room(self) -> list[NumberedRun]:
        """The order in which runs get a section, while there is room: one run of each scenario comes first.

        Variants of a fix come later. Last come repeats that ended like an earlier one.
        """
        first: dict[object, int] = {}
        for number, run in self.representatives:
            first.setdefault(alike(run.judgement), number)

        def later(it: NumberedRun) -> tuple[bool, bool, bool]:
            number, judged = it[0], it[1].judgement
            is_bad, is_variant = result_category(judged) in ATTENTION, judged.agent.startswith(SINGLE_FIX)
            return first[alike(judged)] != number, not is_bad, is_variant

        return sorted(self.representatives, key=later)

    @cached_property
    def rows(self) -> dict[int, Markup]:
        """One row for each run without a section, as many as there is room for."""
        made: dict[int, Markup] = {}
        room = ROWS_BYTES
        for number, run in self.ordered:
            if number in self.sections or (self.counted and result_category(run.judgement) in UNLISTED):
                continue
            made[number] = self._row(number, run)
            room -= len(made[number])
            if room < 0:
                break
        return made

    def address(self, number: int) -> str:
        """The id of what the page shows of a run; empty if it shows nothing of it."""
        return anchor(number) if number in self.sections or number in self.rows else ""

    def parts(self) -> Sequence[Markup]:
        """All sections, then the table of the other runs."""
        if not self.campaign.runs:
            return ()
        shown = [tag("section", tag("h2", "Run by run"), _legend(), list(self.sections.values()), id="runs")]
        if self.rows:
            table = html_table(_HEADS, self.rows.values(), tall=True)
            title = tag("h2", f"{len(self.rows):,} other runs")
            words = "Their histories are in the folders named here."
            shown.append(tag("section", title, tag("p", words, class_="soft"), table))
        if left := self._left():
            shown.append(tag("p", left, class_="soft"))
        return shown

    def _left(self) -> str:
        """How many runs are in no section and no row."""
        left = [run for n, run in enumerate(self.campaign.runs) if n not in self.sections and n not in self.rows]
        kinds = Counter(result_category(run.judgement) for run in left)
        named = ", ".join(f"{kinds[kind]:,} {kind}" for kind in WORST_FIRST if kinds[kind])
        return (
            f"{len(left):,} more runs are only in the matrices, the numbers and summary.csv: {named}." if left else ""
        )

    def _row(self, number: int, run: StoredRun) -> Markup:
        judged = run.judgement
        cells = (
            run_badge(run),
            f"{judged.scenario}, {agent_name(judged)}",
            one_line(judged.skipped or judged.says, 100),
            self.campaign.place(run.folder),
        )
        return line(_HEADS, cells, id_=anchor(number))


def _rank(run: StoredRun) -> tuple[int, bool]:
    return WORST_FIRST.index(result_category(run.judgement)), run.judgement.verdict != "fail"


def _legend() -> Markup:
    """What the words of the page mean: folded on a screen, open on paper."""
    items = [tag("div", tag("dt", word), tag("dd", meaning)) for word, meaning in MEANINGS.items()]
    return tag("details", tag("summary", "What the words mean"), tag("dl", items, class_="stack"), class_="more words")
