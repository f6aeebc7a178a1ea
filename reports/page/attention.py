"""What is wrong: three lines above everything, and the list of runs that a person should look at."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from wedgehog.harness.record.judgement import Judgement
from wedgehog.reports.campaign_folder import StoredCampaign
from wedgehog.reports.groups import grouped
from wedgehog.reports.markup import Markup, tag
from wedgehog.reports.page.matrix import NumberedRun, RunAddress
from wedgehog.reports.reasons import causes_first, run_reasons
from wedgehog.reports.result_category import ATTENTION, alike, attention_heading, result_category, run_badge
from wedgehog.reports.words import many, one_line

LINES = 3
SHOWN = 25
"""The most cards of the list; all other runs follow below it."""
WORDS = 220
IN_WORDS = {
    "inconclusive": "not decided (inconclusive)",
    "error": "not judged, because something else broke (error)",
    "pass": "passed, where a failure is expected",
}
"""What the first lines say of a result that is no violation; a new reader knows none of the words."""


def headline(campaign: StoredCampaign) -> str:
    """The result in one sentence."""
    categories = [result_category(run.judgement) for run in campaign.runs]
    counted = [category for category in categories if category not in ("skipped", "shown")]
    unfinished = campaign.lost
    bad, total = sum(one in ATTENTION for one in counted) + unfinished, len(counted) + unfinished
    if not total:
        return "Nothing ran"
    if bad:
        return f"{bad:,} of {many(total, 'run')} did not end as expected"
    return "The run ended as expected" if total == 1 else f"All {total:,} runs ended as expected"


def wrong_lines(campaign: StoredCampaign, runs: Sequence[NumberedRun], address: RunAddress) -> Markup | None:
    """At most three lines: the most frequent kinds of wrong result, each with a run to begin with."""
    lines = list(_kinds(runs, address))
    if campaign.unfinished:
        lines.append(tag("li", tag("strong", many(campaign.lost, "run")), " not judged: the campaign ended before"))
    if not lines:
        return _nothing_wrong(campaign)
    if len(lines) > LINES:
        more = f"{len(lines) - LINES + 1} more kinds of result that were not expected: see below"
        lines = [*lines[: LINES - 1], tag("li", more)]
    return tag("ol", lines, class_="wrong")


def _kinds(runs: Sequence[NumberedRun], address: RunAddress) -> Iterator[Markup]:
    """Runs that need attention by what is not as expected, the largest group first."""
    groups: dict[str, list[NumberedRun]] = {}
    for number, run in runs:
        groups.setdefault(", ".join(_unexpected(run.judgement)), []).append((number, run))
    for what, group in sorted(groups.items(), key=lambda item: -len(item[1])):
        judged = group[0][1].judgement
        agents = _some(Counter(run.judgement.agent for _, run in group))
        link, name = address(group[0][0]), f"{judged.scenario}, {judged.agent}"
        place = tag("a", name, href=f"#{link}") if link else name
        reasons = map(str, run_reasons(judged))
        says = next(reasons, "") or (f"{judged.expected} expected" if judged.expected else "")
        said = f": {one_line(says.removeprefix(f'{what}: '), WORDS)}" if says else ""
        yield tag("li", tag("strong", what), f" in {many(len(group), 'run')} of {agents}. ", place, said)


def _unexpected(judged: Judgement) -> list[str]:
    """The violated invariants that are not expected, then what was not decided, or what is expected and missing."""
    _, _, fails = judged.expected.partition("fail: ")
    wanted = [name for name in fails.split(";") if name]
    found = [name for name in dict.fromkeys(it.name for it in causes_first(judged)) if name in judged.violated]
    found = [name for name in found or judged.violated if name not in wanted]
    if judged.verdict == "fail" and found:
        return found
    names = [verdict.name for verdict in judged.verdicts if verdict.name and verdict.status == judged.verdict]
    words = IN_WORDS.get(judged.verdict, judged.verdict)
    if judged.verdict in ("pass", "fail"):
        names = [name for name in wanted if name not in judged.violated]
        words = IN_WORDS["pass"] if wanted else words
    return [*found, f"{words}: {', '.join(names)}" if names else words]


def _some(agents: Mapping[str, int]) -> str:
    names = list(agents)
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _nothing_wrong(campaign: StoredCampaign) -> Markup | None:
    """What stands there if nothing is wrong: the expected and the known failures."""
    expected = [it.judgement for it in campaign.runs if it.judgement.verdict == "fail" and not it.judgement.skipped]
    if not expected:
        return None
    kinds = Counter(name for judged in expected for name in judged.violated)
    most = ", ".join(f"{name} {number}" for name, number in kinds.most_common(4))
    others = f" and {many(len(kinds) - 4, 'other invariant')}" if len(kinds) > 4 else ""
    words = f"{many(len(expected), 'run')} failed as expected, as known, or only to be shown: {most}{others}."
    return tag("ol", tag("li", words), class_="wrong")


def attention_list(campaign: StoredCampaign, runs: Sequence[NumberedRun], address: RunAddress) -> Markup | None:
    """The runs that need attention, repeats that ended alike as one, with reason and replay; then unfinished ones."""
    played = Counter((it.judgement.scenario, it.judgement.agent) for it in campaign.runs)
    cards = list(grouped(runs, lambda pair: alike(pair[1].judgement)).values())
    items = [_look(card, played, address) for card in cards[:SHOWN]]
    if left := sum(map(len, cards[SHOWN:])):
        items.append(tag("li", f"{left:,} more, run by run below", class_="unfinished"))
    for lost in campaign.unfinished[:SHOWN]:
        words = (tag("strong", campaign.place(lost.folder)), tag("p", f"Unfinished: {lost.why}"))
        items.append(tag("li", words, class_="unfinished"))
    if not items:
        return None
    title = tag("h2", attention_heading(run.judgement for _, run in runs))
    return tag("section", title, tag("ul", items, class_="plain attention"))


def _why(judged: Judgement) -> Markup:
    """A line for each violation."""
    reasons = run_reasons(judged)
    if not reasons:
        return tag("p", ", ".join(judged.violated))
    items = [tag("li", tag("strong", f"{it.name}: ") if it.name else None, it.says) for it in reasons]
    return tag("ul", items, class_="plain reasons")


def _look(card: Sequence[NumberedRun], played: Mapping[tuple[str, str], int], address: RunAddress) -> Markup:
    """One card for repeats that ended alike, by the first of them."""
    number, run = card[0]
    judged = run.judgement
    of = played[judged.scenario, judged.agent]
    return tag(
        "li",
        run_badge(run, address(number)),
        " ",
        tag("strong", f"{judged.scenario}, {judged.agent}"),
        f" ({len(card)} of {of} repeats)" if of > 1 else None,
        _why(judged),
        tag("p", f"Expected: {judged.expected}", class_="soft") if judged.expected else None,
        tag("pre", judged.replay) if judged.replay else None,
        class_=result_category(judged),
    )
