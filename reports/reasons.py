"""Why a run ended as it did: the parts of its judgement's sentence, one for each violated invariant, causes first."""

from collections.abc import Iterator
from dataclasses import dataclass

from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.record.verdict import Verdict


@dataclass(frozen=True, slots=True)
class RunReason:
    """What one invariant says; `name` is empty where the sentence is not that of violations."""

    name: str
    says: str

    def __str__(self) -> str:
        return f"{self.name}: {self.says}" if self.name else self.says


def run_reasons(judged: Judgement) -> list[RunReason]:
    """The parts of the sentence; one part if it is not made of what the violated invariants say."""
    failed = dict.fromkeys(RunReason(it.name, it.says) for it in causes_first(judged) if it.status == "fail")
    if "; ".join(map(str, failed)) == judged.says:
        return list(failed)
    return [RunReason("", judged.says)] if judged.says else []


def causes_first(judged: Judgement) -> Iterator[Verdict]:
    """All verdicts, in the order in which the sentence names them; those that it does not name are last."""
    places = {id(it): judged.says.find(f"{it.name}: {it.says}") for it in judged.verdicts}
    yield from sorted(judged.verdicts, key=lambda it: (places[id(it)] < 0, places[id(it)]))
