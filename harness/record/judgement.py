"""The judgement of one run: `verdicts.json`."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from wedgehog.harness.record.expectation import first_mistake
from wedgehog.harness.record.files import read_object, write_whole
from wedgehog.harness.record.verdict import Level, Status, Verdict

IN_ORDER: tuple[Status, ...] = ("pass", "nothing")
"""Verdicts that are in order where nothing is expected."""
SECOND_RESULT = "; this is its second result, played alone"
"""How the remark ends that names another first result."""


@dataclass(frozen=True)
class Judgement:
    """The judgement of one run; `verdicts.json` is this, as data."""

    scenario: str
    agent: str
    network: str
    verdict: Status
    violated: tuple[str, ...] = ()
    expected: str = ""
    """As written: "pass", "fail: a;b", or empty if the scenario expects nothing of this agent."""
    as_expected: bool | None = None
    """None if nothing is expected."""
    says: str = ""
    """The reason, in one sentence."""
    skipped: str = ""
    """Why the scenario does not apply to this agent; such a run never counts."""
    known: str = ""
    """The reason that the agent's spec gives for a known failure."""
    matrix_only: bool = False
    """A cell of the fix matrix without an expectation: shown, never counted."""
    repeat: int = 1
    world: str = "live"
    """`sim`: played in virtual time."""
    virtual_s: float | None = None
    """How long it took by the virtual clock; None for a live run, and for one that an error stopped."""
    real_s: float | None = None
    """How long the simulation took."""
    verdicts: tuple[Verdict, ...] = ()
    level: Level = "safe"
    """The level of the agent's spec or of the command line; it decides which violations count."""
    strict: tuple[str, ...] = ()
    """The invariants that fail at level `strict` and not at `safe`."""
    replay: str = ""
    remarks: tuple[str, ...] = field(default=())
    own_limit: str = ""
    """How the agent exceeds the tighter limit of its spec, where a common bound is judged."""
    bound: str = ""
    """The common bound of a turn and its source, such as `120 s, the stock bound`; empty: the spec's limit holds."""
    lacked_processors: bool = False
    """Whether the agent, its network and the harness waited for a processor during much of the run."""
    report_number: str = ""
    """What the incident's report measured, in its own words; shown beside the measured time."""

    @property
    def in_order(self) -> bool:
        """Whether it came as expected, or passed where nothing is expected."""
        return self.verdict in IN_ORDER if self.as_expected is None else self.as_expected

    @property
    def clocks(self) -> str:
        """Both clocks of a simulated run in one sentence; empty if one of them is not known."""
        if self.virtual_s is None or self.real_s is None:
            return ""
        return f"Virtual time: {self.virtual_s:g} s, played in {self.real_s:g} s."

    @property
    def overloaded(self) -> bool:
        """Whether a busy machine left it undecided."""
        undecided = (it for it in self.verdicts if it.status == "inconclusive")
        return self.verdict == "inconclusive" and any(it.overload for it in undecided)

    @property
    def doubtful(self) -> bool:
        """Whether it is not as it should be, perhaps only because the machine was busy."""
        return self.lacked_processors and self.verdict in ("fail", "pass") and not self.in_order and not self.known


_JUDGEMENT: TypeAdapter[Judgement] = TypeAdapter(Judgement)


def write_judgement(folder: Path, judgement: Judgement) -> None:
    """Write verdicts.json in one piece."""
    write_whole(folder / "verdicts.json", json.dumps(asdict(judgement), indent=1, ensure_ascii=False) + "\n")


def read_judgement(folder: Path) -> Judgement:
    """The judgement of a finished run. ValueError, in one sentence: its file can't be read."""
    path = folder / "verdicts.json"
    try:
        return _JUDGEMENT.validate_json(path.read_bytes())
    except (ValidationError, OSError):
        return _judgement_of(path)


def _judgement_of(path: Path) -> Judgement:
    """The same by the parser of Python, which names a mistake by its line and reads half a surrogate pair."""
    try:
        return _JUDGEMENT.validate_python(read_object(path))
    except ValidationError as wrong:
        raise ValueError(f"{path}: {first_mistake(wrong)}") from None


def never_played(judgements: Sequence[Judgement]) -> dict[str, str]:
    """The agents whose runs were all skipped, each with the first reason.

    Not a specimen of which its scenarios expect a verdict: it may need what this system does not have.
    """
    reasons: dict[str, list[str]] = {}
    for judgement in judgements:
        if not judgement.matrix_only:
            reasons.setdefault(judgement.agent, []).append("" if judgement.expected else judgement.skipped)
    return {agent: skipped[0] for agent, skipped in reasons.items() if all(skipped)}
