"""What a campaign does about a busy machine: it says so once, and plays the runs again that it left in doubt."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from wedgehog.harness.campaign.options import Options
from wedgehog.harness.campaign.plan import key
from wedgehog.harness.campaign.selection import Entry
from wedgehog.harness.record.history import History
from wedgehog.harness.record.judgement import SECOND_RESULT, Judgement
from wedgehog.harness.run.watching.cpu_wait import busy
from wedgehog.harness.sandbox.run_queue import processors


class BusyMachine:
    """What one campaign has found out about its busy machine."""

    def __init__(self, options: Options, say: Callable[[str], None]) -> None:
        """`say` gets single lines for the user."""
        self._options, self._say = options, say
        self._told = False
        self._first: dict[tuple[str, str, int], Judgement] = {}
        self._doubted = 0

    def tell_of(self, what: str, history: History) -> None:
        """Once: if a run without faults waits for processors, others will too."""
        found = busy(history)
        if not found or self._told:
            return
        self._told = True
        jobs, most = self._options.jobs, self._options.most_jobs
        at_once = f"up to {most} runs at once" if most > jobs else f"--jobs {jobs}"
        says = f"busy machine: {what}: {found} ({processors()} processors, {at_once})"
        self._say(f"{says}; what can be late for that reason alone is inconclusive{_fewer(self._options)}")

    def again(self, found: Sequence[tuple[Entry, Judgement]]) -> list[tuple[Entry, Judgement]]:
        """The runs that are played once more: the undecided ones, and those that may have failed only because of it."""
        undecided = [(entry, judgement) for entry, judgement in found if judgement.overloaded]
        doubtful = [(entry, judgement) for entry, judgement in found if judgement.doubtful]
        if undecided:
            self._say(f"the machine was too busy to decide {_runs(undecided)}: once more, one at a time")
        if len(doubtful) > self._options.most_doubted:
            self._say(f"{_runs(doubtful)} failed on a busy machine: too many to play again{_fewer(self._options)}")
            doubtful = []
        elif doubtful:
            self._say(f"{_runs(doubtful)} failed on a busy machine: once more, one at a time")
        self._first = {key(entry): judgement for entry, judgement in undecided + doubtful}
        return undecided + doubtful

    def plays_again(self, entry: Entry, judgement: Judgement) -> bool:
        """Whether a run that has just failed will be played once more at the end, as far as is known now."""
        if not judgement.doubtful or key(entry) in self._first:
            return False
        self._doubted += 1
        return self._doubted <= self._options.most_doubted

    def compared(self, entry: Entry, judgement: Judgement) -> Judgement:
        """The second result, with a remark if the first one was another."""
        first = self._first.get(key(entry))
        if first is None or not first.doubtful:
            return judgement
        if (first.verdict, first.violated) == (judgement.verdict, judgement.violated):
            return judgement
        was = f"violated {', '.join(first.violated)}" if first.violated else "passed"
        remark = f"on a busy machine it first {was}{SECOND_RESULT}"
        return replace(judgement, remarks=(*judgement.remarks, remark))


def _fewer(options: Options) -> str:
    if options.most_jobs > options.jobs:
        return "; try --jobs 1"
    return "; try fewer --jobs" if options.jobs > 1 else ""


def _runs(found: Sequence[object]) -> str:
    return "1 run" if len(found) == 1 else f"{len(found)} runs"
