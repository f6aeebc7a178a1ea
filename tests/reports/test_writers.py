"""report.html, junit.xml and summary.md."""

import html
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest

from wedgehog.harness.record.verdict import fail
from wedgehog.reports import write_campaign, write_folder
from wedgehog.reports.campaign_folder import load
from wedgehog.reports.markdown import LINES, code, escaped
from wedgehog.reports.markup import tag, text
from wedgehog.reports.page import distributions

from .conftest import Telling, judgement, plain_run, storm, storm_judgement, whole_campaign

EVIL = '<script>alert(1)</script><img src=x onerror=alert(2)>" onload="x\' \x00\x1b[31m'


class Page(HTMLParser):
    """The elements, attributes and words of a page."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    def all(self, attribute: str) -> list[str]:
        return [attrs[attribute] for _, attrs in self.elements if attribute in attrs]


def _page(folder) -> Page:
    if not (folder / "report.html").exists():
        write_folder(folder)
    return Page((folder / "report.html").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A realistic campaign's folder with all its reports, written once; with drawings, where matplotlib is there."""
    folder = whole_campaign(tmp_path_factory.mktemp("written") / "runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wedgehog.reports.page.latency_section.DRAWS", distributions.DRAWS)
        write_folder(folder)
    return folder


def _evil(telling: Telling) -> None:
    telling.model = EVIL
    telling.start(EVIL, EVIL)
    telling.message(1, EVIL)
    call = telling.request(1, path=f"/{EVIL}", background="")
    telling.accept(call)
    telling.whole(call, EVIL)
    telling.end(1, EVIL, EVIL)


def test_every_writer_leaves_its_file(sample):
    """The four files of a campaign, in its folder."""
    assert [path.name for path in write_campaign(load(sample))] == [
        "summary.csv",
        "junit.xml",
        "report.html",
        "summary.md",
    ]
    assert all((sample / name).stat().st_size for name in ("summary.csv", "junit.xml", "report.html", "summary.md"))


def test_an_empty_campaign_can_be_reported(campaign):
    """Nothing ran, and each file says so."""
    write_folder(campaign.folder)
    assert "Nothing ran" in (campaign.folder / "report.html").read_text()
    assert ET.parse(campaign.folder / "junit.xml").getroot().get("tests") == "0"
    assert (campaign.folder / "summary.csv").read_text().startswith("scenario,agent,")


# ---- the page


def test_repeats_with_the_same_result_are_one_cell(campaign):
    """Three repeats, two of them passed: `2 of 3` and `1 of 3`, not three badges."""
    for repeat, verdict in enumerate(("pass", "pass", "fail"), 1):
        campaign.run(judgement("plain", "mine", verdict, repeat=repeat), plain_run)
    matrix = (write_campaign(load(campaign.folder))[2]).read_text().split("<h2>Verdicts</h2>")[1].split("</table>")[0]
    assert matrix.count('class="chip') == 2
    assert "pass 2 of 3" in matrix
    assert "fail 1 of 3" in matrix


def test_words_of_an_agent_stay_text(campaign):
    """A script in an answer, an error, a name, a path, a verdict or campaign.json is shown as text."""
    campaign.describe(command=EVIL, machine={EVIL: EVIL}, families={EVIL: EVIL}, whys={EVIL: EVIL})
    campaign.run(
        judgement(EVIL, EVIL, "fail", "pass", violated=(EVIL,), says=EVIL, remarks=(EVIL,), report_number=EVIL,
                  verdicts=(fail(EVIL, []).named(EVIL),)),
        _evil,
    )  # fmt: skip
    page = _page(campaign.folder)
    assert not {name for name, _ in page.elements} & {"script", "img", "iframe", "object", "link", "base", "form"}
    assert not [key for _, attrs in page.elements for key in attrs if key.startswith("on")]
    assert sum("<script>alert(1)</script>" in words for words in page.words) > 8
    assert "\x1b" not in "".join(page.words)


def test_the_page_loads_nothing_and_runs_nothing(written):
    """A strict policy, no script, and no address outside the page."""
    page = _page(written)
    policies = [attrs["content"] for _, attrs in page.elements if attrs.get("http-equiv") == "Content-Security-Policy"]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]
    assert page.elements[[name for name, _ in page.elements].index("head") + 2][1].get("http-equiv")
    assert not page.all("src")
    assert not [name for name, _ in page.elements if name in ("script", "link")]
    assert all(href.startswith("#") for href in page.all("href"))
    source = (written / "report.html").read_text()
    assert not re.search(r"url\(|@import|https?://", source)


def test_the_page_is_well_formed_and_its_links_lead_somewhere(written):
    """Elements are closed in order; each cell links to the section of its run."""
    page = _page(written)
    assert page.open == []
    ids = page.all("id")
    assert len(ids) == len(set(ids))
    assert {href.removeprefix("#") for href in page.all("href")} <= set(ids)
    assert len([href for href in page.all("href") if href.startswith("#run-")]) >= 9


def test_an_expected_failure_differs_from_an_unexpected_one_in_words(written):
    """The headline counts unexpected results only, and a badge says `expected`."""
    page = _page(written)
    words = " ".join(page.words)
    assert "3 of 7 runs did not end as expected" in words
    assert "pass expected" in words
    assert "ended before it was judged" in words
    assert "wedgehog replay runs/latest/timeout-in-mid-tool/fixed" in words


def test_a_section_answers_what_a_reader_asks(written):
    """Calls, evidence, proof of the fault, what was executed, the incident's number."""
    words = " ".join(_page(written).words)
    for part in (
        "160 calls, 1.1.1 to 1.1.160, to /v1/messages: 32,400 bytes sent, 0 bytes of the reply's body arrived",
        "fired 160 times",
        "the toxic counted 0",
        "#5 reply started at 0.40 s",
        "9b1f0e6c2d7a4e55",
        "160 attempts to the backstop, $20 to $30",
        "1.1.2 shell (it started and did not end)",
        "genai-prices 0.0.40, table of 2025-04-28",
    ):
        assert part in words


def test_a_very_long_list_of_calls_is_cut_in_its_middle(campaign):
    """The page stays readable, says what it left out, and shows the last calls."""
    campaign.run(storm_judgement(), storm(800, "buggy"))
    words = " ".join(_page(campaign.folder).words)
    assert "calls left out here; history.jsonl holds all" in words
    assert "1.1.800" in words
    assert "1.1.400 " not in words


def test_a_long_title_pushes_no_column_out_of_sight(campaign):
    """The row with the scenario and the incident's number wraps, so that all columns stay within the page."""
    long = storm_judgement()
    campaign.run(long, storm(3, "buggy"))
    page = _page(campaign.folder)
    style = re.search(r"<style>(.*?)</style>", (campaign.folder / "report.html").read_text(), re.DOTALL)[1]
    assert ("table", {"class": "numbers"}) in page.elements and ("tr", {"class": "group"}) in page.elements
    kept = [rule for rule in re.findall(r"([^{}]+)\{([^}]*)\}", style) if "white-space: nowrap" in rule[1]]
    later = style[style.index("tr.group th {") :].partition("}")[0]
    assert not any("tr.group" in selector for selector, _ in kept) and "white-space: normal" in later


def test_markup_escapes_unless_told_that_it_is_markup():
    """Text, attributes and nested lists alike."""
    assert tag("p", "<b>", class_='"x"') == '<p class="&quot;x&quot;">&lt;b&gt;</p>'
    assert text(["<", tag("br"), None, 3]) == "&lt;<br>3"
    assert tag("p", class_=tag("b", '"')) == '<p class="&lt;b&gt;&amp;quot;&lt;/b&gt;"></p>'


# ---- junit.xml


def _suites(folder):
    if not (folder / "junit.xml").exists():
        write_folder(folder)
    return ET.parse(folder / "junit.xml").getroot()


def test_junit_counts_expected_red_as_passed_and_surprises_as_failures(written):
    """Failures, errors (inconclusive, unfinished) and skipped runs are counted; matrix cells are left out."""
    root = _suites(written)
    counts = {key: root.get(key) for key in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "8", "failures": "1", "errors": "2", "skipped": "1"}
    storm_suite = next(suite for suite in root if suite.get("name") == "stall-after-headers")
    assert [case.get("name") for case in storm_suite] == ["buggy", "fixed"]
    assert [child.tag for child in storm_suite[0]] == ["properties"]


def test_junit_says_why_and_how_to_replay(written):
    """A failure has its sentence and its command, and each case its verdict."""
    failure = _suites(written).find(".//failure")
    assert "pass expected" in failure.get("message")
    assert "tool call 1.1.2" in failure.get("message")
    assert "replay: wedgehog replay" in failure.text
    case = _suites(written).find(".//testcase[@name='fixed']")
    properties = {one.get("name"): one.get("value") for one in case.iter("property")}
    assert (properties["verdict"], properties["expected"]) == ("pass", "pass")


def test_junit_stays_xml_whatever_was_said(campaign):
    """Characters that XML forbids are escaped."""
    campaign.run(judgement(EVIL, EVIL, "fail", "pass", says=EVIL + "\ufffe"), _evil)
    assert "\\x00" in _suites(campaign.folder).find(".//failure").get("message")


@pytest.mark.parametrize(("repeat", "name"), [(1, "fixed"), (2, "fixed (repeat 2)")])
def test_repeats_are_cases_of_their_own(campaign, repeat, name):
    """Each repeat has a name of its own."""
    campaign.run(judgement("plain", "fixed", repeat=repeat), plain_run)
    assert _suites(campaign.folder).find(".//testcase").get("name") == name


# ---- summary.md


def test_a_pipe_in_a_name_does_not_end_its_cell(campaign):
    """Every line of the table has the same number of cells."""
    campaign.run(judgement("a|b", "c`d|e", "fail", "pass", says="x | y\n| z", violated=("p|q",)), plain_run)
    write_folder(campaign.folder)
    lines = (campaign.folder / "summary.md").read_text().split("\n")
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 3
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {12}


def test_markdown_shows_markup_as_words():
    """Tags, links and emphasis are escaped."""
    assert escaped("<b>[x](y) *z* `q` | ~") == r"&lt;b&gt;\[x\]\(y\) \*z\* \`q\` \| \~"
    assert code("a `b` c") == "`` a `b` c ``"


@pytest.mark.parametrize(
    ("said", "seen"),
    [
        ("@octocat and @org/team", r"@(?=\w)"),
        ("me@example.org", r"\w@(?=\w)"),
        ("see #1, a/b#12", r"#(?=\d)"),
        ("gh-7 and GH-7", r"(?i)GH-(?=\d)"),
        ("http://evil.example/x", r"://"),
        ("www.evil.example", r"(?i)www\."),
        ("WWW.evil.example", r"(?i)www\."),
    ],
)
def test_a_comment_that_quotes_an_agent_mentions_no_user_and_links_nowhere(said, seen):
    """GitHub looks for these after it has read the markup; a person reads the same words."""
    assert re.search(seen, said)
    rendered = html.unescape(re.sub(r"\\(?=[^\w\s])", "", escaped(said)))
    assert not re.search(seen, rendered)
    assert rendered.replace("\u200b", "") == said


@pytest.mark.parametrize("said", ["see abc1234", "see " + "0123456789abcdef0123" * 2, "me/it: DEADBEEF,", "1234567"])
def test_a_comment_that_quotes_an_agent_links_no_commit(said):
    """GitHub links seven digits of a commit's hash, or more."""
    assert not re.search(r"(?i)[0-9a-f]{7}", escaped(said))
    assert escaped(said).replace("\u200b", "") == said


def test_words_that_are_no_hash_are_left_alone():
    assert escaped("refaceds, 123456, x1234567") == "refaceds, 123456, x1234567"


def test_a_comment_that_quotes_an_agent_has_no_formula():
    """GitHub looks for two dollar signs in one piece of text, after the markup."""
    assert escaped("$x^2$") == "<span>&#36;</span>x^2<span>&#36;</span>"


def test_the_markdown_summary_counts_and_replays(written):
    """The counts first, then the commands that play unexpected runs again."""
    said = (written / "summary.md").read_text()
    assert "**4 passed, 1 failed, 1 skipped, 1 inconclusive" in said
    assert "`wedgehog replay runs/latest/timeout-in-mid-tool/fixed`" in said


def test_the_markdown_summary_has_at_most_sixty_lines_and_the_worst_stand_first(campaign):
    """What is left out is counted."""
    for number in range(70):
        campaign.run(judgement(f"good{number}", "a"), plain_run)
    for number in range(15):
        failed = judgement(f"bad{number}", "a", "fail", violated=("turn_deadline",), says="too slow")
        campaign.run(failed, plain_run)
        campaign.run(replace(failed, repeat=2), plain_run)
    write_folder(campaign.folder)
    lines = (campaign.folder / "summary.md").read_text().rstrip("\n").split("\n")
    assert 50 <= len(lines) <= LINES
    assert lines[6].startswith("| ✗ | bad0 |") and any(line.startswith("| ✓ | good") for line in lines)
    assert sum(line.startswith("- **bad") for line in lines) == 5 and "- **bad0, a** (2 repeats): too slow" in lines
    assert [line for line in lines if line.startswith("… and")] == [
        "… and 48 more results; report.html and summary.csv hold all.",
        "… and 10 more results that were not expected; report.html and summary.csv hold all.",
    ]


def test_of_many_red_runs_the_markdown_summary_counts_the_kinds_and_shows_one_of_each_first(campaign):
    """The first five by the alphabet may all be red for one reason."""
    for number in range(8):
        late = judgement(f"a{number}", "a", "fail", violated=("turn_deadline",), says="too slow")
        campaign.run(late, plain_run)
    campaign.run(judgement("z", "a", "fail", violated=("no_half_calls",), says="half a call ran"), plain_run)
    write_folder(campaign.folder)
    lines = (campaign.folder / "summary.md").read_text().split("\n")
    assert r"Violated, by runs: turn\_deadline 8, no\_half\_calls 1" in lines
    assert [line for line in lines if line.startswith("- **")][:2] == [
        "- **a0, a**: too slow",
        "- **z, a**: half a call ran",
    ]
