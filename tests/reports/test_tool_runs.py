"""A tool run is counted once, however many replies offered its call."""

import pytest

from wedgehog.harness.record.events.call import ToolCallOffered
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.store import StoredRun, read_run
from wedgehog.reports.data.otlp import resource_spans
from wedgehog.reports.data.perfetto import trace_events
from wedgehog.reports.history_numbers import times
from wedgehog.reports.lanes import lanes
from wedgehog.reports.page.run.narrative import narrated

from .conftest import Campaign, Tell, Telling, judgement


def _offer(telling: Telling) -> None:
    call = telling.later(0.1).request(1)
    telling.accept(call)
    offered = (ToolCallOffered("1.1.1", "shell", True),)
    telling.later(0.1).whole(call, stop="tool", tool_calls=offered)


def _ran(telling: Telling, took_s: float) -> None:
    telling.later(0.1).history.add(BeaconSeen(token="1.1.1", phase="started"))
    telling.later(took_s).history.add(BeaconSeen(token="1.1.1", phase="done", exit_code=0))


def _offered_three_times(telling: Telling) -> None:
    """Two replies offer a tool call, then it runs; a third reply offers it again, and it does not run again."""
    telling.start("s", "a")
    telling.message(1)
    _offer(telling)
    _offer(telling)
    _ran(telling, 2.0)
    _offer(telling)
    telling.end(1, error="Error", exit_code=1)


def _ran_twice(telling: Telling) -> None:
    """Each of two replies offers the same tool call, and the agent runs it each time."""
    telling.start("s", "a")
    telling.message(1)
    for took_s in (2.0, 3.0):
        _offer(telling)
        _ran(telling, took_s)
    telling.end(1, error="Error", exit_code=1)


def _stored(campaign: Campaign, tell: Tell) -> StoredRun:
    return read_run(campaign.run(judgement("s", "a"), tell))


@pytest.fixture
def offered_three_times(campaign: Campaign) -> StoredRun:
    return _stored(campaign, _offered_three_times)


@pytest.fixture
def ran_twice(campaign: Campaign) -> StoredRun:
    return _stored(campaign, _ran_twice)


def _tool_times(run: StoredRun) -> list[float]:
    return [round(taken_s, 3) for measure, taken_s in times(run.history) if measure == "tool"]


def _drawn(run: StoredRun) -> list[float]:
    items = [item for lane in lanes(run.history) if lane.name == "tools" for item in lane.items]
    return [round(item.until_s - item.start_s, 3) for item in items]


def _spans_of_tools(run: StoredRun) -> list[tuple[str, str]]:
    """The span ids of the tool runs, each with the call that is its parent."""
    spans = resource_spans(run, "place")["scopeSpans"][0]["spans"]
    order = [span["spanId"] for span in spans if span["name"].startswith("chat ")]
    tools = [span for span in spans if span["name"] == "execute_tool shell"]
    return [(tool["spanId"], f"call {1 + order.index(tool['parentSpanId'])}") for tool in tools]


def _traced(run: StoredRun) -> int:
    return sum(it["ph"] == "X" and it["name"] == "tool 1.1.1 shell" for it in trace_events(run, 1, "s/a"))


def test_a_run_of_a_call_that_three_replies_offer_counts_once(offered_three_times: StoredRun):
    """In the latencies, on the timeline and in the Chrome trace."""
    assert _tool_times(offered_three_times) == [2.0]
    assert _drawn(offered_three_times) == [2.0]
    assert _traced(offered_three_times) == 1


def test_its_span_belongs_to_the_last_reply_before_it_started(offered_three_times: StoredRun):
    """The second of three."""
    assert [parent for _, parent in _spans_of_tools(offered_three_times)] == ["call 2"]


def test_a_call_that_ran_twice_counts_twice(ran_twice: StoredRun):
    """Each run belongs to the reply before it, and has an id of its own."""
    assert _tool_times(ran_twice) == _drawn(ran_twice) == [2.0, 3.0]
    spans = _spans_of_tools(ran_twice)
    assert [parent for _, parent in spans] == ["call 1", "call 2"]
    assert len(dict(spans)) == _traced(ran_twice) == 2


def test_a_run_before_the_end_of_its_reply_belongs_to_the_first_reply(campaign: Campaign):
    """The agent runs the call while the reply still streams."""

    def early(telling: Telling) -> None:
        telling.start("s", "a")
        telling.message(1)
        _ran(telling, 1.0)
        _offer(telling)
        _offer(telling)
        telling.end(1, error="Error", exit_code=1)

    assert [parent for _, parent in _spans_of_tools(_stored(campaign, early))] == ["call 1"]


def test_the_narrative_names_a_call_once(ran_twice: StoredRun):
    """Two replies offer it, it runs twice, and no request carries its result."""
    said = " ".join(narrated(ran_twice.history))
    assert said.count("Tool call 1.1.1 ran 2 times.") == 1
    assert "a result of tool call 1.1.1 shell (it ran to the end)." in said
