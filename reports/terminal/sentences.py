"""The sentences of the report in a terminal: what was skipped, what passed, what needs attention, the totals."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.text import Text

from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.record.store import StoredRun
from wedgehog.reports.cost import total_words
from wedgehog.reports.groups import grouped
from wedgehog.reports.reasons import causes_first, run_reasons
from wedgehog.reports.repeats import flaky
from wedgehog.reports.result_category import ATTENTION, SIGNS, agent_name, attention_heading, result_category, tally
from wedgehog.reports.terminal.printer import STYLES, Printer
from wedgehog.reports.words import NONE, many

SKIPPED_NAMED = 4
"""How many scenarios with the same reason are named; the rest is counted."""
EACH_IN_FULL = 8
"""Of more results that need attention, only the first one of each kind is printed in full."""


@dataclass(frozen=True)
class Sentences(Printer):
    """Prints the sentences."""

    def details(self) -> None:
        """What was skipped or failed as expected; with `verbose` also why each run passed."""
        self._skipped()
        if self.verbose:
            self._passed()
        self._expected_failures()

    def doubts(self) -> None:
        """Of the lines below the tables, those that need attention: edited programs, and repeats that do not agree."""
        lines = (*self.campaign.edited, *flaky(self.rows))
        if lines:
            self.console.print()
        for line in lines:
            self.say(line)

    def summary(self) -> None:
        """What needs attention, and the totals."""
        self._attention()
        self._closing()

    def _skipped(self) -> None:
        """The reasons of skipped runs, each once per agent."""
        runs = [run for run in self.campaign.runs if run.judgement.skipped]
        if runs:
            self.heading("Skipped")
        for alike in grouped(runs, lambda run: (run.judgement.agent, run.judgement.skipped)).values():
            names = list(dict.fromkeys(run.judgement.scenario for run in alike))
            more = f" and {len(names) - SKIPPED_NAMED} more" if len(names) > SKIPPED_NAMED else ""
            judged, shown = alike[0].judgement, ", ".join(names[:SKIPPED_NAMED])
            self.say(f"{NONE} {judged.agent}: {judged.skipped} ({shown}{more})", indent=2)

    def _passed(self) -> None:
        """What supports each pass, once for runs with the same sentences."""
        runs = [run for run in self.campaign.runs if run.judgement.verdict == "pass"]
        runs = [run for run in runs if result_category(run.judgement) == "passed"]
        if runs:
            self.heading("Passed")
        for alike in grouped(runs, self._said).values():
            judged = alike[0].judgement
            names = dict.fromkeys(agent_name(run.judgement) for run in alike)
            self.say(f"{SIGNS['passed']} {judged.scenario}, {', '.join(names)}", STYLES["passed"], indent=2)
            self._each_invariant(alike[0])

    def _expected_failures(self) -> None:
        """Why the runs with an expected or known failure failed."""
        failed = [run for run in self.campaign.runs if run.judgement.verdict == "fail"]
        runs = [run for run in failed if result_category(run.judgement) in ("passed", "known")]
        if runs:
            self.heading("Failed, as expected")
        for alike in grouped(runs, self._said).values():
            self._why(alike)

    def _said(self, run: StoredRun) -> object:
        """The key of runs of which the same is printed."""
        judged = run.judgement
        reasons = _reasons(judged) if self.verbose else ()
        return judged.scenario, judged.says, judged.violated, judged.known, *reasons

    def _attention(self) -> None:
        runs = [run for run in self.campaign.runs if result_category(run.judgement) in ATTENTION]
        if runs:
            self.heading(attention_heading(run.judgement for run in runs))
        results = list(grouped(runs, self._alike).values())
        in_full = self.verbose or len(results) <= EACH_IN_FULL
        for first, *others in [[it] for it in results] if in_full else grouped(results, _kind).values():
            self._result(first)
            if others:
                names = ", ".join(result[0].judgement.scenario for result in others)
                self.say(f"{many(len(others), 'more scenario')} with this result (-v says why): {names}", indent=4)
        self._fixes_of(run for run in runs if not run.judgement.expected)
        if self.campaign.unfinished:
            self.heading("Unfinished")
        for lost in self.campaign.unfinished:
            self.say(f"{self.campaign.place(lost.folder)}: {lost.why}", indent=2)

    def _result(self, repeats: Sequence[StoredRun]) -> None:
        """Why these repeats ended as they did, and how to play the first of them again."""
        recorded = self.campaign.numbers[repeats[0].folder].recorded
        self._why(repeats[:1] if recorded else repeats)
        if recorded and len(repeats) > 1:
            self.say(f"and {many(len(repeats) - 1, 'more repeat')} with this result", "dim", indent=4)
        if repeats[0].judgement.replay:
            self.whole(f"    replay: {repeats[0].judgement.replay}", "cyan")

    def _fixes_of(self, runs: Iterable[StoredRun]) -> None:
        """How to fix what these runs violate: each invariant once, that of most runs first."""
        judged = [run.judgement for run in runs]
        fixes = {it.name: it.fix for one in judged for it in causes_first(one) if it.fix and it.name in one.violated}
        often = Counter(name for one in judged for name in one.violated)
        if fixes:
            self.heading("How to fix")
        for name, fix in sorted(fixes.items(), key=lambda pair: -often[pair[0]]):
            runs_of_it = f" ({often[name]} runs)" if often[name] > 1 else ""
            self.say(Text.assemble(self.text(f"{name}{runs_of_it}: ", "bold"), self.text(fix)), indent=2)
        if fixes:
            self.say(f"More of each: wedgehog explain {max(fixes, key=lambda name: often[name])}", "dim", indent=2)

    def _alike(self, run: StoredRun) -> object:
        """The key of repeats with the same result, or of runs of an agent that could not be played for one reason."""
        judged = run.judgement
        if not self.campaign.numbers[run.folder].recorded:
            return judged.agent, judged.says
        return judged.scenario, judged.agent, judged.verdict, judged.violated

    def _why(self, runs: Sequence[StoredRun]) -> None:
        """One sentence for runs with the same result."""
        judged = runs[0].judgement
        sign, style = SIGNS[result_category(judged)], STYLES[result_category(judged)]
        scenarios = list(dict.fromkeys(run.judgement.scenario for run in runs))
        where = scenarios[0] if len(scenarios) == 1 else f"{len(scenarios)} scenarios"
        names = ", ".join([where, *dict.fromkeys(agent_name(run.judgement) for run in runs)])
        reasons = run_reasons(judged)
        says = judged.says or ", ".join(judged.violated) or judged.verdict
        known = f" (known: {judged.known})" if result_category(judged) == "known" else ""
        if len(reasons) < 2:
            self.say(Text.assemble(self.text(f"{sign} {names}: ", style), self.text(f"{says}{known}")), indent=2)
        else:
            self.say(Text.assemble(self.text(f"{sign} {names}", style), self.text(known)), indent=2)
            for it in reasons:
                self.say(Text.assemble(self.text(f"{it.name}: ", "bold"), self.text(it.says)), indent=4)
        if self.verbose:
            self._each_invariant(runs[0])

    def _each_invariant(self, run: StoredRun) -> None:
        for reason in _reasons(run.judgement):
            self.say(reason, "dim", indent=4)

    def _closing(self) -> None:
        self.console.print()
        if not self.rows and not self.campaign.unfinished:
            self.say("Nothing ran.")
        counts = tally((row.standing for row in self.rows), self.campaign.lost)
        bad = self.campaign.unfinished or any(row.standing in ATTENTION for row in self.rows)
        spent = f", {total_words(self.rows)}" if self.rows else ""
        self.say(Text.assemble(self.text(counts, "bold red" if bad else "bold green"), self.text(spent)))
        if clocks := _both_clocks(run.judgement for run in self.campaign.runs):
            self.say(clocks)
        page = self.campaign.folder / "report.html"
        self.whole(f"report: {page if page.is_file() else self.campaign.folder}")


def _kind(repeats: Sequence[StoredRun]) -> object:
    """The key of results of one agent that violate the same invariants, or leave the same ones undecided."""
    judged = repeats[0].judgement
    undecided = tuple(it.name for it in judged.verdicts if it.status == "inconclusive")
    return judged.agent, result_category(judged), judged.violated or undecided


def _reasons(judged: Judgement) -> list[str]:
    """A line for each invariant that was judged, and the remarks."""
    found = [(it, it.says or it.because) for it in judged.verdicts if it.status != "nothing"]
    told = {verdict.says for verdict in judged.verdicts}
    remarks = [it for it in (*filter(None, [judged.clocks]), *judged.remarks) if it not in told]
    return [f"{it.name} {it.status}{f': {said}' if said else ''}" for it, said in found] + remarks


def _both_clocks(judgements: Iterable[Judgement]) -> str:
    """The virtual and the real time of all simulated runs together; empty if there are none."""
    played = [(it.virtual_s, it.real_s) for it in judgements if it.virtual_s is not None and it.real_s is not None]
    virtual_s, real_s = (sum(column) for column in zip(*played, strict=True)) if played else (0.0, 0.0)
    return f"virtual time: {virtual_s:.0f} s; the runs took {real_s:.1f} s, added up" if played else ""
