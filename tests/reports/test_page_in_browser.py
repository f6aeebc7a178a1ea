"""The page in a real browser: what is there at each width, what a click shows, and that nothing runs or is loaded."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.verdict import fail
from wedgehog.reports import write_folder

pytest.importorskip("playwright")

from playwright.async_api import Browser

from tests.browsers import has_browser

from .browser import Tab, browser
from .conftest import Campaign, Telling, dangling, judgement

pytestmark = [pytest.mark.usefixtures("drawings"), pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[Browser]:
    """One browser for all tests: to start it takes longer than most of them."""
    async with browser() as started:
        yield started


@pytest_asyncio.fixture(loop_scope="module")
async def tab(shared: Browser) -> AsyncIterator[Tab]:
    """A tab of its own for each test."""
    opened = Tab(shared)
    yield opened
    await opened.close()


@pytest.fixture(scope="module", autouse=True)
def _needs_a_browser() -> None:
    if not has_browser():
        pytest.skip("no browser is installed")


WIDTHS = (1300, 700, 390)
HOSTILE = "<script>document.title = 'owned'</script><img src=http://127.0.0.1:9/x onerror=alert(1)>\x1b[31m\udc80"


async def _report(folder: Path, tab: Tab, width: int = 1300, **how: Any) -> Path:
    write_folder(folder)
    path = folder / "report.html"
    await tab.show(path, width, **how)
    return path


def _quiet(tab: Tab, path: Path) -> None:
    """Nothing was requested but the page itself, and neither console nor log has an entry."""
    assert set(tab.asked) == {path.as_uri()}
    assert not tab.loud


async def _seen(tab: Tab, selector: str) -> bool:
    """Whether the first such element has a size on the screen."""
    return bool(await tab.value(f"document.querySelector({selector!r})?.checkVisibility() ?? false"))


async def test_matrix_and_timeline_are_there_at_each_width_and_in_both_colours(sample, tab: Tab):
    """The page never scrolls sideways, and the timeline lies inside of it."""
    path = await _report(sample, tab)
    for width in WIDTHS:
        for dark in (False, True):
            await tab.show(path, width, dark=dark)
            assert await tab.value("document.documentElement.scrollWidth") == width
            for part in ("table .chip", ".run[open] .timeline svg rect"):
                assert await _seen(tab, part)
            box = "document.querySelector('.run[open] .timeline svg').getBoundingClientRect()"
            assert 0 < await tab.value(f"{box}.right") <= width
            skips = "(h => h.some((one, at) => one.tagName[1] - (h[at - 1]?.tagName[1] ?? 0) > 1))"
            assert not await tab.value(f"{skips}([...document.querySelectorAll('h1, h2, h3, h4')])")
            paper = await tab.value("getComputedStyle(document.body).backgroundColor")
            assert (paper == "rgb(20, 23, 26)") is dark
    _quiet(tab, path)


async def test_a_click_on_a_violation_shows_its_evidence(campaign: Campaign, tab: Tab):
    """The folded list opens at the event, and from there one comes to its place in the timeline."""
    verdict = fail("refused", [Event(id=12)]).named("tool_call_pairing")
    campaign.run(judgement("x", "a", "fail", "pass", violated=("tool_call_pairing",), verdicts=(verdict,)), dangling)
    path = await _report(campaign.folder, tab)
    assert not await _seen(tab, "#run-1-e12")
    await tab.click(".stacked a[href='#run-1-e12']")
    assert await tab.value("document.querySelector(':target').id") == "run-1-e12"
    assert await _seen(tab, "#run-1-e12")
    await tab.click("#run-1-e12 a")
    assert await tab.value("document.querySelector(':target').id") == "run-1-p12"
    assert await tab.value("getComputedStyle(document.querySelector(':target rect')).strokeWidth") == "4px"
    await tab.click("#run-1-p12 a")
    assert await tab.value("location.hash") == "#run-1-e12"
    _quiet(tab, path)


async def test_output_of_an_agent_is_inert(campaign: Campaign, tab: Tab):
    """Markup, escape codes, half a character and a line of 1 MB: shown as text, cut, and nothing is run or loaded."""

    def tell(telling: Telling) -> None:
        telling.start(HOSTILE, HOSTILE)
        telling.message(1, HOSTILE)
        call = telling.request(1, path=HOSTILE)
        telling.accept(call)
        telling.whole(call, HOSTILE)
        telling.end(1, HOSTILE + "A" * 1_000_000, HOSTILE)

    campaign.run(judgement("x", "a", "fail", "pass", says=HOSTILE, violated=(HOSTILE,)), tell)
    path = await _report(campaign.folder, tab)
    assert (await tab.value("document.title")).startswith("Wedgehog: ")
    assert await tab.value("document.querySelectorAll('img, script, iframe, object').length") == 0
    assert "<script>document.title" in await tab.value("document.body.textContent")
    assert path.stat().st_size < 500_000
    _quiet(tab, path)


async def test_the_longest_names_fit_a_phone(campaign: Campaign, tab: Tab):
    """They break anywhere; the page never scrolls sideways."""
    scenario, agent = "s" * 100, "a" * 100
    campaign.run(judgement(scenario, agent, "fail", says="late", violated=("turn_deadline",)), dangling)
    campaign.run(judgement(scenario, "other"), dangling)
    path = await _report(campaign.folder, tab)
    for width in WIDTHS:
        await tab.show(path, width)
        assert await tab.value("document.documentElement.scrollWidth") == width


async def test_a_printed_page_holds_what_needs_attention_and_no_folded_run(sample, tab: Tab):
    """Two open runs, the matrices, the tables and the meanings of words are printed; folded runs are one line each.

    Of an open run, the tables of its turns, calls and files are on the screen only.
    """
    await _report(sample, tab)
    assert await _seen(tab, ".run[open] .screen") and await _seen(tab, ".attention pre")
    assert not await _seen(tab, ".words dl")
    await tab.print_out()
    assert not await _seen(tab, ".run[open] .screen") and not await _seen(tab, ".attention pre")
    assert await _seen(tab, ".run[open] .timeline") and await _seen(tab, "ol.wrong")
    assert await _seen(tab, ".words dl")
    assert not await _seen(tab, ".run:not([open]) .timeline")
    assert (await tab.pdf()).count(b"/Type /Page\n") <= 8


async def test_of_many_unexpected_runs_two_are_printed_open(campaign: Campaign, tab: Tab):
    """The screen has more of them open; each other one is a line on paper."""
    for number in range(8):
        campaign.run(judgement(f"s{number}", "a", "fail", violated=("tool_call_pairing",)), dangling)
    await _report(campaign.folder, tab)
    shown = "[...document.querySelectorAll('.run .inside')].filter(it => it.checkVisibility()).length"
    assert await tab.value(shown) == 5
    await tab.print_out()
    assert await tab.value(shown) == 2
