"""Runs as traces for other tools: Chrome trace events that Perfetto can lay out, and OTLP as its protobuf has it."""

import base64
import http.server
import json
import re
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from wedgehog.harness.commands.cli import app
from wedgehog.harness.invariants.scope import folded, together
from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.run import AgentStarted
from wedgehog.harness.record.events.turn import Frozen
from wedgehog.harness.record.store import read_run
from wedgehog.harness.record.verdict import fail
from wedgehog.reports.call_attributes import call_rows
from wedgehog.reports.data.export import chosen, traces_address, write_export
from wedgehog.reports.data.otlp import resource_spans
from wedgehog.reports.data.perfetto import VIOLATIONS, microseconds, trace_events
from wedgehog.reports.lane import MOST_ROWS
from wedgehog.reports.lanes import lanes

from .conftest import DANGLING, Campaign, Telling, dangling, judgement, storm, storm_judgement

PHASES = {"request", "wait", "stream"}


def _trace(folder: Path) -> list[dict[str, Any]]:
    return list(trace_events(read_run(folder), 1, "s/a"))


def _spans(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["ph"] == "X"]


def _dangling(campaign: Campaign) -> Path:
    verdict = fail(DANGLING, [Event(id=10)]).named("tool_call_pairing")
    violated = ("tool_call_pairing",)
    judged = judgement("calls", "buggy", "fail", violated=violated, says=DANGLING, verdicts=(verdict,))
    return campaign.run(judged, dangling)


def _crowded(telling: Telling) -> None:
    """More calls at the same time than a lane of the page has rows, and an agent that stands still after its turn."""
    telling.start("crowded", "agent")
    telling.message(1)
    calls = [telling.later(0.1).request(1) for _ in range(MOST_ROWS + 3)]
    for call in calls:
        telling.accept(call)
        telling.later(0.2).whole(call, "Yes", first_byte_s=0.75)
    telling.history.add(Frozen(turn=1, whom="tree", pids=(7,), for_s=9.0))
    telling.later(0.1).end(1, "Yes")


# ---- Perfetto


def _nested(track: list[dict[str, Any]]) -> bool:
    """Whether each two spans of a track lie apart, or one in the other, as the format asks."""
    ordered = sorted(track, key=lambda it: (it["ts"], -it["dur"]))
    open_until: list[int] = []
    for it in ordered:
        while open_until and open_until[-1] <= it["ts"]:
            open_until.pop()
        if open_until and it["ts"] + it["dur"] > open_until[-1]:
            return False
        open_until.append(it["ts"] + it["dur"])
    return True


def _tracks(events: list[dict[str, Any]]) -> dict[tuple[int, int], list[dict[str, Any]]]:
    tracks: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for it in _spans(events):
        tracks.setdefault((it["pid"], it["tid"]), []).append(it)
    return tracks


KEYS = {"M": set[str](), "X": {"cat", "ts", "dur"}, "i": {"cat", "ts", "s"}}
"""By phase, beside what every event has: the Trace Event Format of Chrome, which Perfetto reads."""


def test_a_trace_is_what_the_format_asks(sample: Path, tmp_path: Path):
    """Whole microseconds, known phases, a name for each process and track, spans of a track that nest."""
    out = tmp_path / "trace.json"
    said: list[str] = []
    runs = write_export(chosen(sample, (), said.append), "perfetto", out)
    events = json.loads(out.read_text())["traceEvents"]
    assert runs == 8 and not said  # nine are finished; one was not played
    assert {it["pid"] for it in events} == set(range(1, runs + 1))
    named = {(it["pid"], it["tid"]) for it in events if it["name"] == "thread_name"}
    for it in events:
        assert {type(it["pid"]), type(it["tid"])} == {int} and isinstance(it["args"], dict) and it["name"]
        assert set(it) == {"ph", "name", "pid", "tid", "args"} | KEYS[it["ph"]]
        if it["ph"] == "M":
            assert it["name"] in ("process_name", "thread_name") and it["args"]["name"]
        else:
            assert type(it["ts"]) is int and it["ts"] >= 0 and (it["pid"], it["tid"]) in named
        if it["ph"] == "X":
            assert type(it["dur"]) is int and it["dur"] >= 0
        if it["ph"] == "i":
            assert it["s"] == "t"
    assert all(map(_nested, _tracks(events).values()))


def test_what_overlaps_has_tracks_of_its_own(campaign: Campaign):
    """As many as it needs, and one for the part that outlasts its span: a viewer draws no crossing spans."""
    folder = campaign.run(judgement("crowded", "agent"), _crowded)
    events = _trace(folder)
    assert all(map(_nested, _tracks(events).values()))
    names = [it["args"]["name"] for it in events if it["name"] == "thread_name"]
    assert f"model calls {MOST_ROWS + 3}" in names and "agent, meanwhile" in names


def test_a_trace_holds_each_item_of_the_timeline(campaign: Campaign):
    """At the times that the page shows, with its sentence and its events."""
    folder = _dangling(campaign)
    run = read_run(folder)
    items = [it for lane in lanes(run.history) for it in lane.items if it.tone != "stream"]
    shown = [it for it in _trace(folder) if "says" in it["args"] and it["cat"] != "violation"]
    assert [(it["ts"], it["args"]["says"], it["args"]["events"]) for it in shown] == [
        (microseconds(item.start_s), item.says, list(item.events)) for item in items
    ]
    assert [it["dur"] for it in shown if it["ph"] == "X"] == [
        microseconds(item.end_s) - microseconds(item.start_s) for item in items if item.end_s is not None
    ]


def test_a_call_is_divided_into_its_phases(campaign: Campaign):
    """Request, wait and stream follow each other and fill the call; the first byte is a moment of its own."""

    def told(telling: Telling) -> None:
        telling.start("s", "a")
        telling.message(1)
        call = telling.request(1)
        telling.later(0.25).accept(call)
        telling.later(1.0).whole(call, "Yes", first_byte_s=0.5)
        telling.end(1, "Yes")

    events = _trace(campaign.run(judgement("s", "a"), told))
    (whole,) = [it for it in events if it["name"].startswith("call 1")]
    parts = [it for it in _spans(events) if it["name"] in PHASES]
    assert [(it["name"], it["dur"]) for it in parts] == [("request", 250_000), ("wait", 250_000), ("stream", 750_000)]
    assert all(one["ts"] + one["dur"] == other["ts"] for one, other in pairwise(parts))
    assert sum(it["dur"] for it in parts) == whole["dur"]
    assert [it["ts"] for it in events if it["name"] == "first byte"] == [500_000]
    assert whole["args"]["gen_ai.usage.input_tokens"] == 8_000


def test_what_violates_is_marked(campaign: Campaign):
    """On a track of its own, and at the span whose event it is."""
    events = _trace(_dangling(campaign))
    marks = [it for it in events if it.get("cat") == "violation"]
    assert [(it["name"], it["args"]["events"]) for it in marks] == [("tool_call_pairing", [10])]
    tracks = {it["tid"]: it["args"]["name"] for it in events if it["name"] == "thread_name"}
    assert tracks[marks[0]["tid"]] == VIOLATIONS
    assert [it["args"]["events"][0] for it in events if "violates" in it["args"]] == [10]


def test_each_event_of_many_violations_has_a_sentence_of_its_kind(campaign: Campaign):
    """Also those that the page counts in one line, in both forms of a trace."""
    verdict = folded(together(fail(f"breach {number}", [Event(id=number)]) for number in range(6))).named("mine")
    assert verdict.more[-1].says == "and 3 more like it"
    folder = campaign.run(judgement("s", "a", "fail", violated=("mine",), verdicts=(verdict,)), dangling)
    marks = [it["args"]["says"] for it in _trace(folder) if it.get("cat") == "violation"]
    events = [_values(it["attributes"]) for it in _otlp(folder)[0]["events"] if it["name"] == "wedgehog.violation"]
    for said in (marks, [it["wedgehog.says"] for it in events]):
        assert sorted(said) == ["breach 0", "breach 1", "breach 2", *["breach 3"] * 3]


# ---- OpenTelemetry


def _values(attributes: list[dict[str, Any]]) -> dict[str, Any]:
    return {it["key"]: next(iter(it["value"].values())) for it in attributes}


def _otlp(folder: Path) -> list[dict[str, Any]]:
    return list(resource_spans(read_run(folder), "c/s/a")["scopeSpans"][0]["spans"])


def _as_protobuf_has_it(data: Any) -> Any:
    """OTLP/JSON writes ids as hex, protobuf's own JSON as base64."""
    if isinstance(data, list):
        return [_as_protobuf_has_it(one) for one in data]
    if not isinstance(data, dict):
        return data
    ids = {"traceId", "spanId", "parentSpanId"}
    return {
        key: base64.b64encode(bytes.fromhex(value)).decode() if key in ids else _as_protobuf_has_it(value)
        for key, value in data.items()
    }


def test_the_file_is_a_request_of_the_protocol(sample: Path, tmp_path: Path):
    """The official protobuf reads each field of it; ids have their length, each parent is in its trace."""
    trace_service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    from google.protobuf.json_format import ParseDict

    out = tmp_path / "trace.json"
    write_export(chosen(sample, (), pytest.fail), "otlp", out)
    said = _as_protobuf_has_it(json.loads(out.read_text()))
    read = ParseDict(said, trace_service.ExportTraceServiceRequest())
    traces = [list(it.scope_spans[0].spans) for it in read.resource_spans]
    assert len({spans[0].trace_id for spans in traces}) == len(traces) == 8
    for spans in traces:
        known = {span.span_id: span for span in spans}
        assert len(known) == len(spans) and all(len(it) == 8 for it in known)
        assert {len(span.trace_id) for span in spans} == {16} and len({span.trace_id for span in spans}) == 1
        assert [span.name for span in spans if not span.parent_span_id] == [spans[0].name]
        for span in spans[1:]:
            assert span.parent_span_id in known
            assert spans[0].start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
            assert span.end_time_unix_nano <= spans[0].end_time_unix_nano


def test_spans_are_run_turn_call_and_tool(campaign: Campaign):
    """Each below the one that asked for it, with the names of the GenAI conventions."""
    spans = _otlp(_dangling(campaign))
    names = {span["spanId"]: span["name"] for span in spans}
    assert [(span["name"], names.get(span.get("parentSpanId"))) for span in spans] == [
        ("run calls", None),
        ("invoke_agent buggy", "run calls"),
        ("invoke_agent buggy", "run calls"),
        ("chat claude-sonnet-4-6", "invoke_agent buggy"),
        ("chat claude-sonnet-4-6", "invoke_agent buggy"),
        ("execute_tool shell", "chat claude-sonnet-4-6"),
        ("execute_tool shell", "chat claude-sonnet-4-6"),
    ]
    call = _values(spans[3]["attributes"])
    assert call["gen_ai.request.model"] == "claude-sonnet-4-6" and call["gen_ai.usage.input_tokens"] == "8000"
    assert _values(spans[5]["attributes"])["gen_ai.operation.name"] == "execute_tool"
    refused = spans[4]
    assert refused["status"] == {"code": 2, "message": "refused 400 by validation"} and not spans[3]["status"]
    assert _values(refused["attributes"])["error.type"] == "invalid_request_error"
    marks = [it for it in spans[0]["events"] if it["name"] == "wedgehog.violation"]
    assert [_values(it["attributes"])["wedgehog.invariant"] for it in marks] == ["tool_call_pairing"]


def test_a_fault_is_an_event_of_the_call_that_it_hit(campaign: Campaign):
    """The call failed; so did the turn, whose user saw an error."""
    folder = campaign.run(storm_judgement(), storm(2, "buggy"))
    spans = _otlp(folder)
    calls = [span for span in spans if span["name"].startswith("chat")]
    for span in calls[:2]:
        assert span["status"]["code"] == 2
        events = [it["name"] for it in span["events"]]
        assert "wedgehog.faults" in events and "wedgehog.model_calls" in events
        (struck,) = [it for it in span["events"] if it["name"] == "wedgehog.faults"]
        assert _values(struck["attributes"])["wedgehog.says"].startswith("stall on llm after 0 body bytes")
        assert int(span["startTimeUnixNano"]) <= int(struck["timeUnixNano"]) <= int(span["endTimeUnixNano"])
    assert not calls[2]["status"] and not calls[2]["events"]
    rows = call_rows(read_run(folder))
    wanted = {key for key, value in rows[0].items() if value not in (None, [])} | {"gen_ai.conversation.id"}
    assert set(_values(calls[0]["attributes"])) == wanted


def test_a_reply_that_did_not_arrive_has_no_finish_reason(campaign: Campaign):
    """What the script would have said never reached the agent; the type of the error says how the reply ended."""
    folder = campaign.run(storm_judgement(), storm(1, "buggy"))
    stalled, whole = (_values(it["attributes"]) for it in _otlp(folder) if it["name"].startswith("chat"))
    assert "gen_ai.response.finish_reasons" not in stalled and stalled["error.type"] == "stalled"
    assert "gen_ai.response.finish_reasons" in whole
    assert [row["gen_ai.response.finish_reasons"] for row in call_rows(read_run(folder))] == [[], ["end"]]


def test_the_times_are_those_of_the_wall_clock(campaign: Campaign):
    """The start of the run, and the run's clock from there on; the sample begins on 1 May 2025."""
    spans = _otlp(campaign.run(storm_judgement(), storm(1, "buggy")))
    zero_ns = 1_746_057_600 * 10**9
    assert spans[0]["startTimeUnixNano"] == str(zero_ns)
    (call, *_) = [span for span in spans if span["name"].startswith("chat")]
    assert call["startTimeUnixNano"] == str(zero_ns + 400_000_000)


# ---- both


@pytest.mark.parametrize("form", ["perfetto", "otlp"])
def test_no_key_and_no_body_is_exported(campaign: Campaign, form: str, tmp_path: Path):
    """Nor the command line or the words of the agent, where its own keys can be."""

    def told(telling: Telling) -> None:
        telling.start("s", "a")
        telling.history.add(AgentStarted(argv=("agent", "--key", "sk-argv"), executable="/bin/agent"))
        telling.message(1)
        call = telling.request(1, key="hash-of-key", body_hash="hash-of-body")
        telling.accept(call)
        telling.whole(call, "sk-reply")
        telling.end(1, answer="sk-answer", error="Error: sk-error")

    campaign.run(judgement("s", "a"), told)
    out = tmp_path / "out.json"
    write_export(chosen(campaign.folder, (), pytest.fail), form, out)  # type: ignore[arg-type]
    assert not re.findall(r"sk-\w+|hash-of-\w+", out.read_text())


def test_a_run_has_the_same_ids_from_its_own_folder(campaign: Campaign, tmp_path: Path):
    """So that an export of the whole campaign and one of the run are one trace."""
    folder = _dangling(campaign)
    (one,), (other,) = chosen(campaign.folder, ["calls"], pytest.fail), chosen(folder, (), pytest.fail)
    assert one.trace == other.trace == f"{campaign.folder.name}/calls/buggy"
    assert other.name == "calls/buggy"


# ---- the command


@pytest.fixture
def wedgehog(campaign: Campaign, monkeypatch: pytest.MonkeyPatch):
    """Runs the command beside a campaign of two runs."""
    campaign.run(storm_judgement(), storm(1, "buggy"))
    _dangling(campaign)
    monkeypatch.chdir(campaign.folder.parent)
    monkeypatch.setenv("COLUMNS", "200")
    Path("there.json").write_text("mine")

    def run(*words: str) -> Result:
        return CliRunner().invoke(app, ["export", *words])

    return run


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "nowhere: no such folder"),
        (["latest/bodies"], "latest/bodies: no finished run in this folder"),
        (["latest", "call"], "no run 'call' (did you mean 'calls'?)"),
        (["latest", "calls/buggy", "zzz"], "expected SCENARIO or SCENARIO/AGENT, as in calls/buggy, stall-after"),
        (["latest", "--out", "there.json"], "there.json: exists already; it is not overwritten"),
        (["latest", "--out", "no/there.json"], "no: no such folder"),
        (["latest", "--to", "http://127.0.0.1:1"], "--to: expected --format otlp too"),
        (["latest", "--format", "otlp", "--to", "127.0.0.1:4318"], "expected the address of a collector"),
        (["latest", "--format", "otlp", "--to", "http://127.0.0.1:1"], "nothing took the traces there"),
    ],
)
def test_a_mistake_is_one_line(wedgehog, words: list[str], said: str):
    """And nothing is written or replaced."""
    before = sorted(Path().rglob("*"))
    ran = wedgehog(*words)
    assert ran.exit_code == 2 and said in ran.stderr and ran.stderr.count("\n") == 1, ran.stderr
    assert sorted(Path().rglob("*")) == before and Path("there.json").read_text() == "mine"


def test_the_command_writes_the_chosen_runs(wedgehog):
    """Into the run's folder if no file is named; a second export replaces that one."""
    for _ in range(2):
        ran = wedgehog("latest", "calls", "--format", "otlp")
        assert ran.exit_code == 0 and "trace.otlp.json: 1 run;" in ran.stderr, ran.stderr
    (only,) = json.loads(Path("latest/trace.otlp.json").read_text())["resourceSpans"]
    assert only["scopeSpans"][0]["spans"][0]["name"] == "run calls"
    assert wedgehog("latest/calls/buggy", "--out", "one.json").exit_code == 0
    assert {it["pid"] for it in json.loads(Path("one.json").read_text())["traceEvents"]} == {1}


def test_a_run_that_cannot_be_read_is_named_and_left_out(wedgehog):
    """The others are exported."""
    Path("latest/calls/buggy/verdicts.json").write_text("{")
    ran = wedgehog("latest")
    assert ran.exit_code == 0 and "calls/buggy/verdicts.json:1: not valid JSON" in ran.stderr
    assert "trace.perfetto.json: 1 run;" in ran.stderr


@pytest.fixture
def collector() -> Iterator[tuple[str, list[tuple[str, str, Any]]]]:
    """A server that takes traces, of /full none and of /part not all; its address, and what it got."""
    got: list[tuple[str, str, Any]] = []
    part = {"rejectedSpans": "3", "errorMessage": "too old"}  # an int64 is text in OTLP's JSON
    said = {"full": b"no room", "part": json.dumps({"partialSuccess": part}).encode()}

    class Takes(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            got.append((self.path, self.headers["content-type"], body))
            self.send_response(429 if self.path.startswith("/full") else 200)
            self.end_headers()
            self.wfile.write(said.get(self.path.split("/")[1], b"{}"))

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Takes) as httpd:
        serving = threading.Thread(target=httpd.serve_forever, args=(0.01,))
        serving.start()
        yield f"http://127.0.0.1:{httpd.server_port}", got
        httpd.shutdown()
        serving.join()


def test_each_run_is_sent_to_a_collector(wedgehog, collector):
    """One request for each, and no file unless one is named; a refusal is one line."""
    address, got = collector
    ran = wedgehog("latest", "--format", "otlp", "--to", address)
    assert ran.exit_code == 0 and f"sent 2 runs to {address}" in ran.stderr, ran.stderr
    assert [it[:2] for it in got] == [("/v1/traces", "application/json")] * 2
    assert [len(it[2]["resourceSpans"]) for it in got] == [1, 1] and not list(Path("latest").glob("trace.*"))
    for path, why in (("full", "refused with 429: no room"), ("part", "3 spans were refused: too old")):
        refused = wedgehog("latest", "--format", "otlp", "--to", f"{address}/{path}")
        assert refused.exit_code == 2 and f"/{path}/v1/traces: {why}" in refused.stderr


def test_the_path_of_a_collector_is_added_once():
    """Both forms of its address are in use."""
    assert traces_address("http://127.0.0.1:4318/") == "http://127.0.0.1:4318/v1/traces"
    assert traces_address("https://host/otlp/v1/traces") == "https://host/otlp/v1/traces"
