"""The gate: a run against its baseline. Its exit code, and its words for a terminal, a pull request, CI and GitHub."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from wedgehog.harness.record.judgement import never_played
from wedgehog.reports.campaign_folder import StoredCampaign, load
from wedgehog.reports.gate.baseline import Baseline, settings_of, world_of
from wedgehog.reports.gate.difference import KIND_SIGNS, KIND_WORDS, KINDS, Difference, DifferenceKind
from wedgehog.reports.gate.differences import differences, exit_code, unchanged, unfinished, worst_first
from wedgehog.reports.gate.side_notes import side_notes
from wedgehog.reports.gate.turn_bounds import Pair
from wedgehog.reports.markdown import escaped
from wedgehog.reports.played_cells import Key, PlayedCell, cells_of, skipped_of
from wedgehog.reports.words import clean, many, one_line

MOST_LINES = 60
"""The most lines of the Markdown page."""
MOST_CHARS = 300
"""The most characters of a sentence in it, and of an annotation."""
NOTHING_PLAYED = "the run"
NAMES = ("the baseline", "this run")
WORDS = {**KIND_WORDS, "new": "without a baseline", "gone": "not played"}
_ANNOTATIONS: dict[DifferenceKind, str] = {
    "worse": "error",
    "undecided": "error",
    "known": "warning",
    "new": "warning",
    "gone": "warning",
}
_JUNIT: dict[DifferenceKind, str] = {"worse": "failure", "undecided": "error"}


@dataclass(frozen=True)
class GateResult:
    """What the gate found."""

    found: tuple[Difference, ...]
    cells: tuple[Key, ...]
    """What was played."""
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0: nothing worse; 1: something is worse; 3: nothing is worse, and something is undecided."""
        return exit_code(self.found)

    @property
    def headline(self) -> str:
        """`2 worse, 1 undecided; 36 of 40 as before`."""
        numbers = Counter(it.kind for it in self.found)
        parts = [f"{numbers[kind]} {WORDS[kind]}" for kind in KINDS if numbers[kind]]
        found = [it for it in self.found if it.kind != "gone"]
        same = f"{len(unchanged(self.cells, found))} of {many(len(self.cells), 'result')} as before"
        return f"{', '.join(parts)}; {same}" if parts else same


def gate(folder: Path, baseline: Baseline) -> GateResult:
    """Compare the run in a campaign's folder with a baseline. ValueError: no such folder."""
    campaign = load(folder)
    cells = cells_of(campaign)
    compared = baseline.quantities(world_of(campaign))
    found = differences(baseline.played, cells, baseline.false_alarms, compared, skipped_of(campaign))
    found += unfinished(campaign, campaign.unfinished)
    if not cells and not campaign.unfinished:
        found.append(Difference(NOTHING_PLAYED, "", "undecided", "nothing was played that the gate could compare"))
    found += _never_played(campaign, found) if cells else ()
    notes = side_notes(baseline, settings_of(campaign), _pairs(cells, baseline), NAMES)
    return GateResult(tuple(worst_first(found)), tuple(cells), tuple(notes))


def _never_played(campaign: StoredCampaign, found: Iterable[Difference]) -> Iterator[Difference]:
    """The agents that skipped each scenario, and of which nothing else says it: the baseline has no result of them."""
    told = {it.agent for it in found if it.kind == "undecided"}
    for agent, reason in never_played([run.judgement for run in campaign.runs]).items():
        if agent not in told:
            yield Difference(NOTHING_PLAYED, agent, "undecided", f"it played no scenario: {reason}")


def _pairs(cells: Mapping[Key, PlayedCell], baseline: Baseline) -> list[Pair]:
    before = baseline.played
    return [(before[key], cell) for key, cell in cells.items() if key in before]


def gate_lines(result: GateResult) -> Iterator[str]:
    """One line per difference, then the sum."""
    for it in result.found:
        yield f"{KIND_SIGNS[it.kind]} {WORDS[it.kind]}: {it.where}: {one_line(it.says)}"
    yield from (f"note: {note}" for note in result.notes)
    yield f"gate: {result.headline}"


def write_gate(result: GateResult, folder: Path) -> None:
    """Write gate.md and gate.xml (JUnit) into a campaign's folder."""
    (folder / "gate.md").write_text("\n".join(markdown_lines(result)) + "\n", encoding="utf-8")
    _junit(result, folder / "gate.xml")


def markdown_lines(result: GateResult) -> list[str]:
    """The page for a pull request: at most 60 lines, the worst first."""
    title = {0: "✓ nothing got worse", 1: "✗ something got worse", 3: "? not everything was decided"}
    lines = [f"## Wedgehog: {title[result.exit_code]}", "", f"**{escaped(result.headline)}**", ""]
    lines += [part for note in result.notes for part in (f"Note: {escaped(note)}.", "")]
    if not result.found:
        return lines
    lines += ["| | scenario | agent | what |", "| --- | --- | --- | --- |"]
    room = MOST_LINES - len(lines) - 2
    shown = result.found if len(result.found) <= room else result.found[:room]
    lines += [_markdown_row(it) for it in shown]
    if len(shown) < len(result.found):
        lines += ["", f"… and {len(result.found) - len(shown)} more, in `gate.xml`."]
    return lines


def _markdown_row(it: Difference) -> str:
    words = (f"{KIND_SIGNS[it.kind]} {WORDS[it.kind]}", *map(escaped, (it.scenario, it.agent)), escaped(_short(it)))
    return f"| {' | '.join(words)} |"


def _short(it: Difference) -> str:
    return one_line(it.says, MOST_CHARS)


def annotations(result: GateResult) -> Iterator[str]:
    """Workflow commands of GitHub Actions: one annotation per difference that a person must look at."""
    for it in result.found:
        if it.kind in _ANNOTATIONS:
            title = _escaped_property(f"{WORDS[it.kind]}: {it.where}")
            yield f"::{_ANNOTATIONS[it.kind]} title={title}::{_escaped_data(_short(it))}"


def _escaped_data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escaped_property(text: str) -> str:
    return _escaped_data(one_line(text)).replace(":", "%3A").replace(",", "%2C")


def _junit(result: GateResult, path: Path) -> None:
    """One case per cell: worse is a failure, undecided an error."""
    by_cell: dict[Key, list[Difference]] = {key: [] for key in result.cells}
    for it in result.found:
        by_cell.setdefault((it.scenario, it.agent), []).append(it)
    suite = ET.Element("testsuite", name="wedgehog gate", tests=str(len(by_cell)))
    for (scenario, agent), found in by_cell.items():
        case = ET.SubElement(suite, "testcase", classname=clean(scenario), name=clean(agent or scenario), time="0")
        _outcome(case, found)
    for name, child in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(len(suite.findall(f"testcase/{child}"))))
    ET.indent(suite)
    ET.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def _outcome(case: ET.Element, found: Sequence[Difference]) -> None:
    bad = next((it for it in found if it.kind in _JUNIT), None)
    if bad is not None:
        ET.SubElement(case, _JUNIT[bad.kind], message=clean(bad.says), type=bad.kind)
    elif any(it.kind == "gone" for it in found):
        ET.SubElement(case, "skipped", message=clean(found[0].says))
    said = "\n".join(f"{WORDS[it.kind]}: {it.says}" for it in found if it is not bad)
    if said:
        ET.SubElement(case, "system-out").text = clean(said)
