"""junit.xml: one suite per scenario, one case per agent.

A run with the expected verdict is a passed case, also where that is a fail. Failure: the verdict or the set of violated
invariants is not the expected one. Error: inconclusive, an error of the harness, or an unfinished run. Skipped: the
scenario does not apply, or the failure is known. Cells of the fix matrix without `expect` are left out.
"""

from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree as ET

from wedgehog.harness.record.store import StoredRun
from wedgehog.reports.campaign_folder import StoredCampaign, Unfinished
from wedgehog.reports.reasons import causes_first
from wedgehog.reports.result_category import agent_name, reads, result_category
from wedgehog.reports.words import clean

_OUTCOME = {"failed": "failure", "inconclusive": "error", "error": "error", "skipped": "skipped", "known": "skipped"}
_COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def write(campaign: StoredCampaign, path: Path) -> None:
    """Write junit.xml."""
    root = ET.Element("testsuites", name="wedgehog")
    by_scenario: dict[str, list[StoredRun]] = {}
    for run in campaign.runs:
        if result_category(run.judgement) != "shown":
            by_scenario.setdefault(run.judgement.scenario, []).append(run)
    for scenario, runs in by_scenario.items():
        suite = ET.SubElement(root, "testsuite", name=clean(scenario))
        for run in runs:
            suite.append(_case(run, campaign))
    if campaign.unfinished:
        suite = ET.SubElement(root, "testsuite", name="unfinished runs")
        suite.extend(_unfinished(run, campaign) for run in campaign.unfinished)
    _count(root, root)
    for suite in root:
        _count(suite, suite)
    ET.indent(root)
    ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _count(holder: ET.Element, within: ET.Element) -> None:
    cases = list(within.iter("testcase"))
    holder.set("tests", str(len(cases)))
    for name, child in _COUNTED.items():
        holder.set(name, str(sum(case.find(child) is not None for case in cases)))
    holder.set("time", f"{sum(float(case.get('time', '0')) for case in cases):.3f}")


def _case(run: StoredRun, campaign: StoredCampaign) -> ET.Element:
    judged = run.judgement
    lasted = campaign.numbers[run.folder].lasted_s
    case = ET.Element(
        "testcase", classname=clean(judged.scenario), name=clean(agent_name(judged)), time=f"{max(lasted, 0):.3f}"
    )
    properties = ET.SubElement(case, "properties")
    for key, value in _properties(run, campaign):
        ET.SubElement(properties, "property", name=key, value=clean(value))
    outcome = _OUTCOME.get(result_category(judged))
    if outcome:
        why = judged.skipped or (judged.known if result_category(judged) == "known" else judged.says)
        said = ET.SubElement(case, outcome, message=clean(f"{reads(judged)}: {why}" if why else reads(judged)))
        if outcome != "skipped":
            said.set("type", judged.verdict)
            said.text = clean("\n".join(_details(run)))
    return case


def _properties(run: StoredRun, campaign: StoredCampaign) -> Iterable[tuple[str, str]]:
    judged = run.judgement
    yield from (("verdict", judged.verdict), ("expected", judged.expected), ("violated", ";".join(judged.violated)))
    yield from (("network", judged.network), ("run_dir", campaign.place(run.folder)), ("replay", judged.replay))


def _details(run: StoredRun) -> Iterable[str]:
    for verdict in causes_first(run.judgement):
        if verdict.status not in ("pass", "nothing"):
            yield f"{verdict.name}: {verdict.status}: {verdict.says}"
    if run.judgement.replay:
        yield f"replay: {run.judgement.replay}"


def _unfinished(run: Unfinished, campaign: StoredCampaign) -> ET.Element:
    case = ET.Element("testcase", classname="unfinished runs", name=clean(campaign.place(run.folder)), time="0")
    ET.SubElement(case, "error", type="unfinished", message=clean(run.why))
    return case
