"""The timeline of a run: which lanes it has, where its spans lie, and how evidence is linked."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from wedgehog.harness.agents.spec_keys import Timeout
from wedgehog.harness.invariants.scope import folded, together
from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.call import HungUp, ReplyStarted, RequestArrived, RequestRefused
from wedgehog.harness.record.events.fault import FaultArmed, FaultFired
from wedgehog.harness.record.events.files import FileSeen, FilesSeen
from wedgehog.harness.record.events.service import ChatAsked, PageAsked, PipeClosed, PipeOpened, StoreAsked, ToolAsked
from wedgehog.harness.record.events.turn import AbortSent, AgentKilled, Frozen, Thawed
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import fail, inconclusive, passed
from wedgehog.harness.run.judging.fired_timers import timers_fired
from wedgehog.reports import write_folder
from wedgehog.reports.calls import marks, violations
from wedgehog.reports.event_lines import files_in_words
from wedgehog.reports.lane import LaneItem, span_of
from wedgehog.reports.lanes import lanes
from wedgehog.reports.page.run.event_list import FIRST, LAST, listed
from wedgehog.reports.page.run.run_section import EVIDENCE_LINKED
from wedgehog.reports.page.run.timeline_svg import TICKS, timeline_figure

from .conftest import Campaign, HandClock, Telling, dangling, judgement, storm


def _told(tell) -> History:
    clock = HandClock()
    telling = Telling(History(clock), clock)
    tell(telling)
    return telling.history.seal()


def _lane(history: History, name: str, remarks=()) -> list[LaneItem]:
    return [item for lane in lanes(history, remarks) if lane.name == name for item in lane.items]


def _everything(telling: Telling) -> None:
    """A turn that uses all that an agent can talk to, and is killed."""
    add = telling.history.add
    telling.start("all", "agent", time_scale=10.0)
    add(FaultArmed(fault=0, name="kill", link="agent"))
    telling.message(1)
    telling.answered(2)
    telling.later(1).history.add(PageAsked(path="/a", status=200))
    add(ToolAsked(tool="search", token="1.1.1", server=3))
    add(FilesSeen(turn=1, files=(FileSeen("a.txt", "file", 1200), FileSeen("b.txt", "missing"))))
    add(PipeOpened(name="exec", pid=5, child=6))
    telling.later(1).history.add(StoreAsked(number=1, verb="SELECT", rows=3, latency_s=0.5))
    add(ChatAsked(what="poll", text=""))
    add(Frozen(turn=1, whom="tree", pids=(7,), for_s=2.0))
    telling.later(2).history.add(Thawed(turn=1, whom="tree", after_s=2.0))
    add(PipeClosed(name="exec", pid=5, exit_code=0, stdout_bytes=9, stdin_bytes=0))
    add(AgentKilled(turn=1, signal="SIGKILL", whom="tree", pids=(7, 8)))
    add(FaultFired(fault=0, name="kill", link="agent", turn=1, step=1, attempt=1, call=None, proof="gone"))
    telling.end(1, ended="killed")


# ---- lanes


def test_a_lane_for_each_party_that_did_something():
    """User, agent, calls, tool host, files, pages, database and more; lanes without an event are left out."""
    names = ["user", "agent", "model calls", "tool host", "files", "pages", "database", "pipes", "chat", "faults"]
    assert [lane.name for lane in lanes(_told(_everything))] == names
    assert [lane.name for lane in lanes(_told(lambda telling: telling.answered(1)))] == ["user", "agent", "model calls"]


def test_what_stood_in_the_files_is_told_and_what_their_user_wrote():
    """Sizes, and what is not there."""
    assert [item.says for item in _lane(_told(_everything), "files")] == ["a.txt 1,200 bytes, b.txt is not there"]
    files = (FileSeen("a.txt", "file", 1200), FileSeen("queue", "other"))
    assert files_in_words(FilesSeen(turn=1, files=files, by_user=("queue",))) == "queue is no regular file"


def test_a_call_is_a_wait_a_stream_and_a_hang_up():
    """The reply's bytes begin at the first byte; the agent's hang-up is a moment on the same row."""

    def tell(telling: Telling) -> None:
        telling.message(1)
        call = telling.request(1)
        telling.later(1).accept(call)
        telling.later(4).history.add(HungUp(call=call))
        telling.whole(call, how="hung up", first_byte_s=3.0)

    wait, stream, gone = _lane(_told(tell), "model calls")
    assert (wait.start_s, wait.end_s, stream.start_s, stream.end_s) == (0.0, 5.0, 3.0, 5.0)
    assert (gone.start_s, gone.end_s, gone.row) == (5.0, None, wait.row)
    assert "the agent closes call 1" in gone.says


def test_a_call_that_delivers_nothing_has_no_stream():
    """A stalled call is a wait up to the hang-up."""
    items = _lane(_told(storm(1, "a")), "model calls")
    assert [item.tone for item in items[:2]] == ["wait", "hangup"]


def test_calls_at_the_same_time_lie_in_rows_of_their_own():
    """Two open calls do not cover each other, and a later one takes the first free row."""

    def tell(telling: Telling) -> None:
        telling.message(1)
        first, second = telling.request(1), telling.request(1)
        telling.later(1).whole(first)
        telling.whole(second)
        telling.later(1).whole(telling.request(1))

    assert [item.row for item in _lane(_told(tell), "model calls") if item.whole] == [0, 1, 0]


def test_the_agent_is_at_work_until_its_kill():
    """A killed agent's span ends at the signal, not at the end of the turn."""
    history = _told(_everything)
    at_work = next(item for item in _lane(history, "agent") if item.says == "at work on turn 1")
    kill = next(item for item in _lane(history, "agent") if "2 processes" in item.says)
    assert at_work.end_s == kill.start_s == history.first(AgentKilled).at_s


def test_a_tool_without_an_end_reaches_to_the_end_of_its_turn():
    """The first command ran to its end; the second was running when the turn ended."""
    done, open_ = _lane(_told(dangling), "tools")
    assert (done.tone, open_.tone) == ("tool", "tool open")
    assert "it did not end" in open_.says
    assert open_.end_s == pytest.approx(9.5)


def test_a_timer_that_the_judge_names_is_drawn_where_it_ran():
    """The sentence of the judge is read back: each hung-up call has a span of the timer's time."""
    history = _told(storm(3, "a"))
    said = list(timers_fired(history.turns[0], [Timeout(name="idle", s=0.05)], history))
    assert [item.end_s - item.start_s for item in _lane(history, "timers", said)] == pytest.approx([0.054] * 3)
    assert _lane(history, "timers") == []


def test_the_clock_covers_all_that_is_drawn():
    """From the first item to the end of the last one, and never an empty span."""
    shown = lanes(_told(dangling))
    assert span_of(shown) == pytest.approx(9.9)
    assert span_of([]) > 0


# ---- the drawing


def _drawn(history: History, bad=(), scale=1.0) -> ET.Element:
    figure = timeline_figure("run-1", lanes(history), bad, listed(history, bad, bad).ids, scale)
    return ET.fromstring(str(figure))


def test_every_place_lies_within_the_picture():
    """All x are percentages from 0 to 100, so the picture fits each width."""
    for one in _drawn(_told(_everything)).find(".//svg").iter():
        for name in ("x", "x1", "x2"):
            if name in one.attrib and one.get(name) != "0":
                assert 0 <= float(one.get(name).removesuffix("%")) <= 100
        if one.tag == "rect":
            assert float(one.get("x")[:-1]) + float(one.get("width")[:-1]) <= 100


def test_a_scaled_run_has_both_clocks():
    """The second clock shows the scenario's own seconds at the same places."""
    history = _told(dangling)
    ticks = [one.text for one in _drawn(history, scale=10.0).iter("text") if one.get("class") == "tick"]
    assert ticks == ["0 s", "2 s", "4 s", "6 s", "8 s", "0 s", "20 s", "40 s", "60 s", "80 s"]
    assert 2 <= len([one for one in _drawn(history).iter("text") if one.get("class") == "tick"]) <= TICKS


def test_a_violating_event_is_marked_and_linked_to_the_list():
    """A triangle, a class, an id for the place, and a link to the event."""
    history = _told(dangling)
    refusal = history.first(RequestRefused).id
    drawn = _drawn(history, {refusal})
    (place,) = [one for one in drawn.iter("g") if one.get("id") == f"run-1-p{refusal}"]
    assert place.find("a").get("href") == f"#run-1-e{refusal}"
    assert "▼" in "".join(place.itertext())
    assert not list(_drawn(history).iter("a"))


def test_what_violates_lies_above_what_is_drawn_at_its_place():
    """What is drawn later would take the click on its link."""
    history = _told(storm(5, "a"))
    drawn = _drawn(history, {history.first(ReplyStarted).id})
    tones = [one.get("class", "") for one in drawn.iter("g")]
    (violating,) = [tone for tone in tones if tone.endswith(" violating")]
    assert violating.removesuffix(" violating") in tones[: tones.index(violating)]
    assert violating.removesuffix(" violating") not in tones[tones.index(violating) :]


def test_a_storm_stays_small():
    """160 calls and their faults are drawn in less than 100 kB."""
    history = _told(storm(160, "a"))
    assert len(ET.tostring(_drawn(history, {it.id for it in history.of(ReplyStarted)}))) < 100_000


# ---- the list of events


def test_the_list_keeps_its_ends_and_what_a_verdict_links_to():
    """The middle of a long list is left out, and the number of events left out is right."""
    history = _told(storm(160, "a"))
    middle = history.of(ReplyStarted)
    wanted = [it.id for it in middle][80]
    shown = listed(history, (), {wanted})
    gaps = [line for line in shown.lines if isinstance(line, int)]
    assert wanted in shown.ids
    assert len(shown.ids) == FIRST + LAST + 1
    assert len(shown.ids) + sum(gaps) == shown.total


def test_the_list_keeps_what_came_around_the_stop_of_a_turn():
    """A reader wants to see what the agent did just before its user stopped it, and behind that."""

    def tell(telling: Telling) -> None:
        telling.start("endless", "agent")
        telling.message(1)
        for number in range(200):
            if number == 100:
                telling.history.add(AbortSent(turn=1))
            telling.later(0.1).accept(telling.request(1, number + 1))
        telling.end(1, ended="aborted")

    history = _told(tell)
    stop = next(history.of(AbortSent)).id
    asked = [it.id for it in history.of(RequestArrived)]
    before, behind = max(it for it in asked if it < stop), min(it for it in asked if it > stop)
    assert {before, stop, behind} <= listed(history, (), ()).ids


def test_only_verdicts_that_do_not_pass_mark_events():
    """Evidence of a pass is no violation."""
    event = Event(id=3)
    good = passed().named("a")
    assert violations([fail("x", [event]).named("b"), good, fail("y", [event]).named("c")]) == {3: ["b", "c"]}


def test_an_undecided_invariant_is_not_called_violated():
    """An inconclusive verdict has evidence too."""
    event = Event(id=3)
    open_ = inconclusive("z", [event]).named("d")
    assert violations([open_]) == {}
    assert marks([open_]) == {3: "leaves d undecided"}
    found = [fail("x", [event]).named("b"), fail("y", [event]).named("c"), open_]
    assert marks(found) == {3: "evidence against b, c, and leaves d undecided"}


def test_in_the_page_evidence_leads_to_its_event_and_its_place(campaign: Campaign, tmp_path: Path):
    """The verdict links to the event in the list, and the event to its place in the timeline."""
    history = _told(dangling)
    refusal = history.first(RequestRefused)
    verdict = fail("refused", [refusal]).named("tool_call_pairing")
    campaign.run(judgement("x", "a", "fail", "pass", violated=("tool_call_pairing",), verdicts=(verdict,)), dangling)
    write_folder(campaign.folder)
    page = (campaign.folder / "report.html").read_text(encoding="utf-8")
    assert f'<a href="#run-1-e{refusal.id}">#{refusal.id} request refused' in page
    item = re.search(rf'<li id="run-1-e{refusal.id}" class="violating">.*?</li>', page)
    assert item and "evidence against tool_call_pairing" in re.sub("<[^>]+>", "", item[0])
    assert f'href="#run-1-p{refusal.id}"' in item[0] and f'id="run-1-p{refusal.id}"' in page


def test_in_the_page_each_finding_has_its_sentence_and_its_evidence(campaign: Campaign):
    """Two turns that are late are two violations: both are said, linked and marked."""
    history = _told(dangling)
    first, second = list(history.of(RequestArrived))[:2]
    verdict = together([fail("turn 1 is late", [first]), fail("turn 2 is late", [second])]).named("turn_deadline")
    campaign.run(judgement("x", "a", "fail", violated=("turn_deadline",), verdicts=(verdict,)), dangling)
    write_folder(campaign.folder)
    page = (campaign.folder / "report.html").read_text(encoding="utf-8")
    for says, event in (("turn 1 is late", first), ("turn 2 is late", second)):
        row = next(row for row in re.findall("<tr>.*?</tr>", page) if says in row)
        assert f'<a href="#run-1-e{event.id}">#{event.id} request arrived' in row
        assert f'<li id="run-1-e{event.id}" class="violating">' in page


def test_of_many_violations_some_of_each_kind_have_a_sentence_and_all_have_their_evidence():
    """A storm of breaches is not a page of sentences, and hides no other kind."""
    events = [Event(id=number) for number in range(42)]
    found = [fail(f"breach {event.id}", [event]) for event in events[:40]]
    found += [fail("another kind", [events[40]]), *(fail(f"session {n}: breach 1", [events[41]]) for n in (1, 2))]
    verdict = folded(together(found))
    assert verdict.says == "breach 0" and verdict.evidence == (0,)
    alike = ["breach 1", "breach 2", "and 37 more like it"]
    assert verdict.more[2].like == "breach 3"
    assert [it.says for it in verdict.more] == [*alike, "another kind", "session 1: breach 1", "session 2: breach 1"]
    assert verdict.all_evidence == tuple(range(42))
    kinds = folded(together(fail("breach " + "of this kind " * event.id, [event]) for event in events))
    assert len(kinds.more) == 12 and kinds.more[-1].says == "and 30 more of other kinds"
    assert kinds.all_evidence == tuple(range(42))


def test_in_the_page_each_piece_of_evidence_has_a_link_to_its_event(campaign: Campaign):
    """The first ones stand in the table, the rest is folded; a link leads to an event of the list."""
    told = _told(storm(300, "buggy"))
    proof = list(told.of(ReplyStarted))[:300]
    verdict = fail("300 paid calls, 13 allowed", proof).named("paid_call_bound")
    wanted = judgement("x", "buggy", "fail", violated=("paid_call_bound",), verdicts=(verdict,))
    campaign.run(wanted, storm(300, "buggy"))
    write_folder(campaign.folder)
    page = (campaign.folder / "report.html").read_text(encoding="utf-8")
    folded = re.search(r"and 296 more<details.*?</details>", page)
    assert folded and folded[0].count("<a href=") == 296
    links = re.findall(r'<a href="#(run-1-e\d+)"', page)
    assert {f"run-1-e{event.id}" for event in proof} <= set(links)
    assert all(f'<li id="{link}"' in page for link in links)
    listed = re.search(r'<ol class="events">.*?</ol>', page, re.DOTALL)
    assert listed and "left out here" in listed[0]


def test_in_the_page_the_links_to_evidence_have_an_end(campaign: Campaign):
    """The rest of a very long storm is in verdicts.json, so that the page stays small."""
    proof = list(_told(storm(700, "buggy")).of(ReplyStarted))[:700]
    verdict = fail("700 paid calls", proof).named("paid_call_bound")
    campaign.run(judgement("x", "b", "fail", violated=("paid_call_bound",), verdicts=(verdict,)), storm(700, "buggy"))
    write_folder(campaign.folder)
    page = (campaign.folder / "report.html").read_text(encoding="utf-8")
    folded = re.search(r"and 696 more<details.*?</details>", page)
    assert folded and folded[0].count("<a href=") == EVIDENCE_LINKED - 4
    assert folded[0].endswith(f", and {700 - EVIDENCE_LINKED} more in verdicts.json</details>")
