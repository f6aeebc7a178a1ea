"""The recorder: what the fake provider saw becomes events, and a harmed reply is recorded as far as it arrived."""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import format_datetime
from hashlib import sha256
from types import SimpleNamespace
from typing import Any

import pytest
from freezegun import freeze_time

from wedgehog.fake_llm import observer as fact
from wedgehog.fake_llm.conversation import Conversation, Message, ToolCallSeen, ToolResultSeen, ToolSpec
from wedgehog.fake_llm.reply import Reply, Text, ToolCall, Usage
from wedgehog.fake_llm.script.position import CallPosition
from wedgehog.harness.inject.limited_reply import LimitKind, PartialDelivery
from wedgehog.harness.record.clock import WallClock
from wedgehog.harness.record.events.call import (
    CallUnscripted,
    HungUp,
    ReplyEnded,
    ReplyStarted,
    RequestArrived,
    RequestRefused,
)
from wedgehog.harness.record.history import History
from wedgehog.harness.run.recording.placing import SentReply
from wedgehog.harness.run.recording.recorder import Recorder
from wedgehog.harness.run.recording.retry_after import retry_after_s
from wedgehog.reports.calls import took_s

CONN = fact.Conn(7, ("127.0.0.1", 4000))
REPLY = Reply((Text("The lighthouse keeper counted."), ToolCall("shell", {"command": "ls"}), ToolCall("shell", {})))
OFFERS = (("1.1.1", "bash", True), ("1.1.2", "bash", True))
MARKS = (
    fact.FrameMark(100, 0, False),
    fact.FrameMark(200, 6, True),
    fact.FrameMark(300, 10, True),
    fact.FrameMark(400, 15, True),
    fact.FrameMark(450, 15, False),
)
"""A stream of 450 bytes: its start, a text block, two tool calls, its end."""


@dataclass
class FakeHarm:
    """An injector that limits the calls it is told to."""

    limited: dict[int, LimitKind] = field(default_factory=dict)
    lost: set[int] = field(default_factory=set)
    when_closed: Callable[[int], None] = lambda call: None
    told: list[tuple[Any, ...]] = field(default_factory=list)
    demands: asyncio.Queue[Any] = field(default_factory=asyncio.Queue)

    async def gate(self, point: fact.Point) -> Sequence[int]:
        return (point.call,)

    def limits(self, call: int) -> LimitKind | None:
        return self.limited.get(call)

    def refused(self, call: int) -> None:
        self.told.append(("refused", call))

    def edited(self, call: int, names: Sequence[str]) -> None:
        self.told.append(("edited", call, tuple(names)))

    def ended(self, call: int, paid: bool) -> None:
        self.told.append(("ended", call, paid))

    def dropped(self, call: int) -> bool:
        return call in self.lost

    def closed(self, call: int) -> None:
        self.told.append(("closed", call))
        self.when_closed(call)


class FakePlacing:
    """Everything is turn 1, step 2; results whose id begins with t are known, and t1 also where a text names it."""

    def __init__(self) -> None:
        self.replies: dict[int, SentReply] = {}

    def place(self, call: int, conversation: Conversation) -> CallPosition:
        return CallPosition(1, 2, call, "", (1,))

    def token_of_result(self, call_id: str, text: str) -> str:
        return "1.1.1" if call_id.startswith("t") or "t1" in text else ""

    def read(self, conversation: Conversation) -> Conversation:
        return conversation

    def tokens_in_text(self, conversation: Conversation) -> tuple[str, ...]:
        found = [text for said in conversation.messages for text in said.text.split() if text.count(".") == 2]
        return tuple(found)

    def answered_in_text(self, conversation: Conversation) -> tuple[str, ...]:
        return ()

    def replies_begun(self, conversation: Conversation) -> tuple[int, ...]:
        return ()

    def replies_twice(self, conversation: Conversation) -> tuple[int, ...]:
        return ()

    def replies_in(self, conversation: Conversation) -> tuple[int, ...]:
        return ()

    def quotes(self, conversation: Conversation) -> tuple[int, ...]:
        return ()

    def sent(self, call: int) -> SentReply | None:
        return self.replies.get(call)


class Rig:
    """A recorder among fakes, and the facts of a call in their order."""

    def __init__(self, clock: Any, **more: Any) -> None:
        self.clock = clock
        self.harm = FakeHarm()
        self.history = History(clock)
        self.bodies: list[bytes] = []
        self.placing = FakePlacing()
        self.recorder = Recorder(self.history, clock, self.placing, self.harm, self._keep, **more)  # type: ignore[arg-type]

    def _keep(self, body: bytes) -> str:
        self.bodies.append(body)
        return sha256(body).hexdigest()[:16]

    def asks(self, call: int = 1, talk: Conversation | None = None, method: str = "POST", conn: Any = CONN) -> None:
        self.recorder.saw(
            fact.RequestSeen(
                *(call, conn, "anthropic", "/v1/messages", method, "k1", talk, b"{}" * call, 2 * call),
                user_agent="sdk/1" + "x" * 300,
                host="llm.test:80",
            )
        )

    def accepted(self, call: int = 1, edited: tuple[str, ...] = (), **more: Any) -> None:
        """A request is answered with the reply."""
        self.asks(call, TALK, **more)
        self.placing.replies[call] = SentReply(REPLY, OFFERS)
        self.recorder.saw(fact.WriteStarted(call, 200, 1000, True, edited))

    def ends(self, call: int = 1, how: Any = "complete", body: int = 450, tokens: int = 15) -> None:
        self.recorder.saw(fact.WriteEnded(call, 120, body, tokens, MARKS, how, "tool"))

    def of(self, kind: Any) -> list[Any]:
        return list(self.history.of(kind))

    @property
    def ended(self) -> ReplyEnded:
        (event,) = self.of(ReplyEnded)
        return event


TALK = Conversation(
    "anthropic",
    "claude",
    True,
    (Message("user", "hi"), Message("tool", tool_results=(ToolResultSeen("t1", "ab"), ToolResultSeen("x", "", True)))),
    (ToolSpec("bash"),),
)


@pytest.fixture
def rig(manual_clock: Any) -> Rig:
    return Rig(manual_clock)


# ---- requests


def test_the_runner_looks_at_the_turn_after_some_calls_whatever_the_time(rig: Rig):
    """In virtual time thousands of calls can come before its next tick."""
    for call in range(1, 25):
        rig.asks(call, TALK)
    assert rig.harm.demands.empty()
    rig.asks(25, TALK)
    assert rig.harm.demands.get_nowait() == ("look", None)


def test_results_that_are_part_of_a_text_are_recorded_without_a_size(rig: Rig):
    """Once each; a result that has a message of its own is not told twice."""
    said = Message("user", "Observation: ok 1.2.1 1.1.1")
    rig.asks(1, replace(TALK, messages=(*TALK.messages, said)))
    (arrived,) = rig.of(RequestArrived)
    assert [(r.token, r.in_text) for r in arrived.results] == [("1.1.1", False), ("", False), ("1.2.1", True)]


@pytest.mark.parametrize(
    ("text", "prints"),
    [("ok 1.1.1", ""), ("ok 1.1.2", "1.1.2"), ("first 1.1.2 ok 1.1.1", ""), ("saved to a file", "")],
)
def test_a_result_with_the_output_of_another_command_is_recorded_as_that(rig: Rig, text: str, prints: str):
    """A terminal shows earlier output too, so its own output excuses all others."""
    rig.asks(1, replace(TALK, messages=(Message("tool", tool_results=(ToolResultSeen("t1", text),)),)))
    (arrived,) = rig.of(RequestArrived)
    assert [(r.token, r.prints) for r in arrived.results] == [("1.1.1", prints)]


@pytest.mark.parametrize(("text", "printed"), [("ok 1.1.1", True), ("t1 could not be executed", False)])
def test_a_result_that_names_the_id_of_its_call_is_not_its_output(rig: Rig, text: str, printed: bool):
    """An error may name the call that it is about; only what the command printed is its output."""
    rig.asks(1, replace(TALK, messages=(Message("tool", tool_results=(ToolResultSeen("t1", text),)),)))
    (arrived,) = rig.of(RequestArrived)
    assert [(r.token, r.printed) for r in arrived.results] == [("1.1.1", printed)]


def test_a_request_is_recorded_with_its_place_its_shape_and_the_results_it_carries(rig: Rig):
    """Everything a check needs later, and the body by its hash only."""
    rig.asks(3, TALK)
    (arrived,) = rig.of(RequestArrived)
    assert (arrived.turn, arrived.step, arrived.attempt, arrived.turns_seen) == (1, 2, 3, (1,))
    assert (arrived.model, arrived.stream, arrived.tools, arrived.key) == ("claude", True, ("bash",), "k1")
    assert [(r.token, r.chars, r.is_error) for r in arrived.results] == [("1.1.1", 2, False), ("", 0, True)]
    assert arrived.body_hash == sha256(rig.bodies[0]).hexdigest()[:16]


def test_a_request_is_recorded_with_its_method_its_host_and_the_tool_calls_without_a_result(rig: Rig):
    """An answered call is not open; a call of which nothing else is known is named by its id on the wire."""
    said = Message("assistant", tool_calls=tuple(ToolCallSeen(id_, "bash", "{}") for id_ in ("t1", "t2", "other")))
    rig.asks(1, replace(TALK, messages=(said, *TALK.messages)))
    (arrived,) = rig.of(RequestArrived)
    assert (arrived.method, arrived.host, len(arrived.user_agent)) == ("POST", "llm.test:80", 200)
    assert [(it.id, it.token) for it in arrived.open_calls] == [("t2", "1.1.1"), ("other", "")]


@pytest.mark.parametrize("role", ["system", "user"])
def test_what_a_request_says_of_missing_tools_is_recorded_where_the_scenario_has_tools(manual_clock: Any, role: Any):
    """As digests of lines; what the model said is none, and without tools nothing is recorded."""
    rig = Rig(manual_clock, has_tools=True)
    model = Message("assistant", "The tool server failed.")
    rig.asks(1, replace(TALK, messages=(model, *TALK.messages)))
    rig.asks(2, replace(TALK, messages=(Message(role, "MCP server 'git' failed to start."), *TALK.messages)))
    assert [len(it.tool_notices) for it in rig.of(RequestArrived)] == [0, 1]
    without = Rig(manual_clock)
    without.asks(1, TALK)
    assert [it.tool_notices for it in without.of(RequestArrived)] == [None]


def test_a_body_that_cannot_be_read_is_still_a_request(rig: Rig):
    """It is refused, and its refusal must have something to stand on."""
    rig.asks(1, None)
    rig.recorder.saw(fact.RefusalSent(1, 400, "invalid", "not JSON", False, False))
    (arrived,) = rig.of(RequestArrived)
    assert (arrived.turn, arrived.background) == (0, "unreadable")
    assert len(rig.of(RequestRefused)) == 1


def test_a_list_of_models_is_no_request_for_the_model(rig: Rig):
    """A GET leaves no trace, neither its answer nor its refusal."""
    rig.asks(1, None, method="GET")
    rig.recorder.saw(fact.RefusalSent(1, 404, "not_found", "", False, False))
    rig.recorder.saw(fact.WriteStarted(1, 200, 0, False))
    rig.ends(1)
    assert rig.history.events == [] and rig.harm.told == []


def test_a_request_beyond_the_script_is_told(rig: Rig):
    """It makes the run an error."""
    rig.asks(1, TALK)
    rig.recorder.saw(fact.RequestUnscripted(1, "no line"))
    assert rig.of(CallUnscripted)[0].why == "no line"


async def test_the_gate_is_the_nemesis_business(rig: Rig):
    """The recorder holds nothing by itself."""
    assert await rig.recorder.gate(fact.Point(5, CONN, 0, 0, (), 0, -1, False)) == (5,)


# ---- refusals


def test_a_refusal_by_our_validator_is_told_to_the_nemesis_and_a_scripted_one_is_not(rig: Rig):
    """Only the agent's own mistakes must reach it unharmed."""
    rig.asks(1, TALK)
    rig.asks(2, TALK)
    rig.recorder.saw(fact.RefusalSent(1, 429, "rate", "slow down", False, True, 7))
    rig.recorder.saw(fact.RefusalSent(2, 400, "invalid", "no result", True, False))
    assert rig.harm.told == [("refused", 2)]
    scripted, ours = rig.of(RequestRefused)
    assert (scripted.scripted, scripted.status, scripted.retry_after_s) == (True, 429, 7)
    assert (ours.scripted, ours.pairing, ours.retry_after_s) == (False, True, None)


def test_a_refusal_that_a_lenient_provider_does_not_enforce_is_no_refusal(rig: Rig):
    """The request was answered."""
    rig.asks(1, TALK)
    rig.recorder.saw(fact.RefusalSent(1, 400, "invalid", "no result", True, False, enforced=False))
    assert rig.of(RequestRefused) == [] and rig.harm.told == []


@pytest.mark.parametrize(
    ("header", "seconds", "is_date"),
    [
        (None, None, False),
        (7, 7, False),
        (2.5, 2.5, False),
        ("30", 30, False),
        ("Mon, 01 Jun 2026 12:01:40 GMT", 100, True),
        ("Mon, 01 Jun 2026 11:59:50 GMT", -10, True),
        ("soon", None, False),
        ("", None, False),
    ],
)
def test_retry_after_is_seconds_from_now_in_either_form_and_garbage_asks_for_nothing(
    header: Any, seconds: float | None, is_date: bool
):
    """A date in the past is a negative wait, not an error."""
    now = datetime(2026, 6, 1, 12, tzinfo=UTC)
    assert retry_after_s(header, now) == (seconds, is_date)


@pytest.mark.parametrize("header", ["Mon, 01 Jun 2026 12:00:10", "Mon, 01 Jun 2026 12:00:10 -0000"])
def test_a_date_that_names_no_zone_is_read_as_utc(header: str):
    """HTTP dates are always UTC; a naive one must not crash the recorder."""
    assert retry_after_s(header, datetime(2026, 6, 1, 12, tzinfo=UTC)) == (10, True)


@pytest.mark.parametrize("header", ["nan", "inf", "-inf", "1e999"])
def test_a_number_that_is_no_time_asks_for_nothing(header: str):
    """Else every retry would come too early for ever."""
    assert retry_after_s(header, datetime(2026, 6, 1, 12, tzinfo=UTC)) == (None, False)


@pytest.mark.parametrize("now", ["2026-12-31T23:59:50+00:00", "2026-03-29T00:59:50+00:00", "2026-10-25T00:59:50+00:00"])
def test_a_date_is_counted_across_midnight_and_daylight_saving(now: str):
    """Twenty seconds stay twenty seconds, whatever the calendar of the machine does in them."""
    with freeze_time(now, tz_offset=2):
        clock = WallClock()
        header = format_datetime(datetime.fromtimestamp(clock.wall().timestamp() + 20, UTC), usegmt=True)
        assert retry_after_s(header, clock.wall()) == (20, True)


# ---- replies


def test_a_whole_reply_is_paid_and_delivered_whole(rig: Rig):
    """All tokens, bytes, blocks, text and tool calls."""
    rig.accepted()
    rig.ends()
    assert rig.of(ReplyStarted)[0].input_tokens == 1000
    end = rig.ended
    assert (end.how, end.tokens_delivered, end.bytes_delivered, end.blocks_delivered) == ("complete", 15, 450, 3)
    assert [call.whole for call in end.tool_calls] == [True, True]
    assert end.text_delivered == "The lighthouse keeper counted."
    assert rig.harm.told == [("edited", 1, ()), ("ended", 1, True)]


@pytest.mark.parametrize(("body", "first_byte_s"), [(450, 2.0), (0, None)])
async def test_the_first_byte_is_sent_when_the_gate_before_it_has_passed(
    rig: Rig, manual_clock: Any, body: int, first_byte_s: float | None
):
    """The time from the request to the first byte; none if the agent hung up before a byte of the body."""
    rig.accepted()
    await rig.recorder.gate(fact.Point(1, CONN, 0, 0, (), 450, fact.ARRIVED, True))
    await manual_clock.advance(2)
    await rig.recorder.gate(fact.Point(1, CONN, 0, 0, (), 450, fact.BEFORE_HEAD, True))
    await manual_clock.advance(3)
    await rig.recorder.gate(fact.Point(1, CONN, 0, 0, (), 450, 200, True))
    rig.ends(body=body)
    assert rig.ended.first_byte_s == first_byte_s


async def test_no_call_is_shorter_than_the_time_to_its_first_byte():
    """Both begin at the time of the request's event, also where some time passes before it is written."""
    times = itertools.count(1)
    rig = Rig(SimpleNamespace(now=lambda: next(times) / 1_000_000))
    rig.recorder._look = lambda: [next(times) for _ in range(9)]
    rig.accepted()
    await rig.recorder.gate(fact.Point(1, CONN, 0, 0, (), 450, fact.BEFORE_HEAD, True))
    rig.ends()
    (call,) = rig.history.seal().calls
    assert rig.ended.first_byte_s is not None and took_s(call) is not None
    assert 0 < rig.ended.first_byte_s <= took_s(call)


def test_the_end_of_a_refusal_is_not_the_end_of_a_reply(rig: Rig):
    """The injector reads that it is unpaid, and it is not billed."""
    rig.asks(1, TALK)
    rig.recorder.saw(fact.RefusalSent(1, 429, "rate", "", False, True))
    rig.ends()
    assert rig.of(ReplyEnded) == [] and rig.harm.told == [("ended", 1, False)]


@pytest.mark.parametrize(
    ("at", "tokens", "blocks", "whole"),
    [
        (0, 0, 0, [False, False]),
        (99, 0, 0, [False, False]),
        (199, 0, 0, [False, False]),
        (200, 6, 1, [False, False]),
        (299, 6, 1, [False, False]),
        (300, 10, 2, [True, False]),
        (400, 15, 3, [True, True]),
        (10_000, 15, 3, [True, True]),
    ],
)
@pytest.mark.parametrize("how", ["cut", "stalled"])
def test_of_a_limited_reply_only_what_had_arrived_is_delivered(
    rig: Rig, how: Any, at: int, tokens: int, blocks: int, whole: list[bool]
):
    """Frames that arrived whole count; a tool call behind the limit was never offered whole; all is billed."""
    rig.harm.limited[1] = how
    rig.accepted()
    rig.ends()
    assert rig.of(ReplyEnded) == [], "the network has not decided yet"
    rig.recorder.delivered(1, PartialDelivery(at, how))
    end = rig.ended
    assert (end.how, end.output_tokens, end.body_bytes) == (how, 15, 450)
    assert (end.tokens_delivered, end.blocks_delivered, end.bytes_delivered) == (tokens, blocks, min(at, 450))
    assert [call.whole for call in end.tool_calls] == whole


def test_a_drip_counts_as_a_stall(rig: Rig):
    """Nobody ever reads it to its end."""
    rig.harm.limited[1] = "slowed"
    rig.accepted()
    rig.ends()
    rig.recorder.delivered(1, PartialDelivery(210, "slowed"))
    assert (rig.ended.how, rig.ended.tokens_delivered) == ("stalled", 6)


@pytest.mark.parametrize(
    ("at", "how", "hung_up", "whole"),
    [
        (449, "stalled", 1, [True, True]),
        (450, "complete", 0, [True, True]),
        (9000, "complete", 0, [True, True]),
        (10, "stalled", 1, [False, False]),
    ],
)
def test_a_drip_that_reached_its_end_is_a_whole_reply_without_a_hang_up(
    rig: Rig, at: int, how: str, hung_up: int, whole: list[bool]
):
    """A slow agent that reads all of it closes its connection as any other does."""
    rig.harm.limited[1] = "slowed"
    rig.harm.when_closed = lambda call: rig.recorder.delivered(call, PartialDelivery(at, "slowed"))
    rig.accepted()
    rig.ends()
    rig.recorder.saw(fact.ConnectionClosed(CONN))
    end = rig.ended
    assert (end.how, end.bytes_delivered, end.tokens_delivered) == (how, min(at, 450), 15 if at > 400 else 0)
    assert [call.whole for call in end.tool_calls] == whole
    assert len(rig.of(HungUp)) == hung_up


@pytest.mark.parametrize(("how", "at_s"), [("cut", 3.0), ("stalled", 5.0)])
async def test_a_cut_is_dated_when_the_fake_wrote_its_last_byte(rig: Rig, manual_clock: Any, how: Any, at_s: float):
    """Its proof takes a while, and an agent that tries again at once must not seem to do so before it could know."""
    rig.harm.limited[1] = how
    rig.accepted()
    await manual_clock.advance(3)
    rig.ends()
    await manual_clock.advance(2)
    rig.recorder.delivered(1, PartialDelivery(200, how))
    assert rig.ended.at_s == at_s


def test_the_text_that_was_delivered_is_in_proportion_to_its_tokens(rig: Rig):
    """A fragment to look for in the answer."""
    rig.harm.limited[1] = "cut"
    rig.accepted()
    rig.ends()
    rig.recorder.delivered(1, PartialDelivery(200, "cut"))
    assert rig.ended.text_delivered == "The lighthouse keeper counted."[:12]


def test_of_a_reply_that_was_hung_up_on_only_a_part_was_delivered(rig: Rig):
    """What had been generated by then is not the whole of it."""
    rig.accepted()
    rig.ends(how="hung_up", body=200, tokens=6)
    text = "The lighthouse keeper counted."
    assert 0 < len(rig.ended.text_delivered) < len(text) and text.startswith(rig.ended.text_delivered)


def test_the_end_of_a_limited_reply_is_written_once(rig: Rig):
    """The network may tell it twice, and the run's end once more."""
    rig.harm.limited[1] = "stalled"
    rig.accepted()
    rig.ends()
    rig.recorder.delivered(1, PartialDelivery(200, "stalled"))
    rig.recorder.delivered(1, None)
    rig.recorder.flush()
    assert rig.ended.bytes_delivered == 200


def test_a_reply_whose_fault_is_healed_while_the_fake_still_writes_was_not_hung_up(rig: Rig):
    """The end of the fault closed the connection, and no more than it let through has arrived."""
    rig.harm.limited[1] = "stalled"
    rig.accepted()
    rig.recorder.delivered(1, PartialDelivery(200, "stalled"))
    rig.harm.limited.clear()
    rig.harm.lost.add(1)
    rig.ends(how="hung_up", body=300, tokens=10)
    assert (rig.ended.how, rig.ended.bytes_delivered) == ("stalled", 200)
    assert rig.of(HungUp) == []


def test_a_call_that_carries_the_last_words_ends_the_turn_with_them(rig: Rig):
    """It is recorded as an answer: its words, its stop, and no offer of a tool."""
    rig.accepted()
    rig.placing.replies[1] = SentReply(REPLY, (), 0, "Done at last")
    rig.ends()
    assert (rig.ended.stop, rig.ended.text_delivered, rig.ended.tool_calls) == ("end", "Done at last", ())


@pytest.mark.parametrize(("usage", "scripted"), [(None, False), (Usage(input_tokens=8000), True)])
def test_a_call_whose_tokens_the_script_sets_is_marked(rig: Rig, usage: Usage | None, scripted: bool):
    """What it costs is the script's number."""
    rig.asks(1, TALK)
    rig.placing.replies[1] = SentReply(replace(REPLY, usage=usage), OFFERS)
    rig.recorder.saw(fact.WriteStarted(1, 200, 8000, True))
    assert [event.scripted for event in rig.of(ReplyStarted)] == [scripted]


def test_a_limit_that_is_decided_before_the_fake_has_finished_waits_for_its_end(rig: Rig):
    """Of a reply that is still being written nothing is known of what it costs."""
    rig.harm.limited[1] = "cut"
    rig.accepted()
    rig.recorder.delivered(1, PartialDelivery(200, "cut"))
    assert rig.of(ReplyEnded) == []
    rig.ends(how="hung_up", body=300, tokens=10)
    rig.recorder.delivered(1, PartialDelivery(200, "cut"))
    assert (rig.ended.how, rig.ended.bytes_delivered, rig.ended.output_tokens) == ("cut", 200, 10)
    assert rig.of(HungUp) == [], "the network closed it, not the agent"


def test_a_reply_that_is_open_when_the_run_ends_is_written_then(rig: Rig):
    """As it was generated: nothing is known to have limited it."""
    rig.harm.limited[1] = "stalled"
    rig.accepted()
    rig.ends()
    rig.recorder.flush()
    assert rig.ended.how == "complete"


@pytest.mark.parametrize("edit", ["early_end", "error_event"])
def test_an_edited_stream_ended_early_and_only_its_own_frames_count(rig: Rig, edit: str):
    """The body ended properly, so that nothing but the edit tells that it is not whole."""
    rig.accepted(edited=(edit,))
    rig.recorder.saw(fact.WriteEnded(1, 120, 200, 6, MARKS[:2], "complete", "tool"))
    end = rig.ended
    assert (end.how, end.tokens_delivered, end.blocks_delivered) == ("ended early", 6, 1)
    assert [call.whole for call in end.tool_calls] == [False, False]


def test_of_a_stream_that_ended_before_its_first_word_no_text_arrived(rig: Rig):
    """Its frames hold no token, which is all that was written."""
    rig.accepted(edited=("early_end",))
    rig.recorder.saw(fact.WriteEnded(1, 120, 5, 0, (), "complete", "end"))
    assert (rig.ended.how, rig.ended.text_delivered) == ("ended early", "")


def test_an_edited_reply_in_one_piece_that_arrived_has_all_its_calls(rig: Rig):
    """It has one mark only; without its usage both calls are as whole as with it."""
    rig.accepted(edited=("no_usage",))
    rig.recorder.saw(fact.WriteEnded(1, 120, 450, 15, (fact.FrameMark(450, 15, True),), "complete", "tool"))
    assert rig.ended.blocks_delivered == 3
    assert [call.whole for call in rig.ended.tool_calls] == [True, True]


def test_a_tool_call_that_max_tokens_cut_is_not_whole_though_all_of_it_arrived(rig: Rig):
    """Its arguments are not as the model meant them."""
    rig.asks(1, TALK)
    rig.placing.replies[1] = SentReply(REPLY, (OFFERS[0], ("1.1.2", "bash", False)))
    rig.recorder.saw(fact.WriteStarted(1, 200, 10, True))
    rig.ends()
    assert [call.whole for call in rig.ended.tool_calls] == [True, False]


# ---- who hung up


def test_an_agent_that_hangs_up_gets_what_was_written_and_pays_what_was_generated(rig: Rig):
    """Of a paced reply both stop with the hang-up."""
    rig.accepted()
    rig.ends(how="hung_up", body=250, tokens=6)
    assert (rig.ended.how, rig.ended.tokens_delivered, rig.ended.blocks_delivered) == ("hung up", 6, 1)
    assert [event.call for event in rig.of(HungUp)] == [1]


@pytest.mark.parametrize(("how", "hung_up"), [("stalled", 1), ("slowed", 1), ("cut", 0)])
def test_a_connection_that_closes_under_a_stall_was_closed_by_the_agent(rig: Rig, how: Any, hung_up: int):
    """Under a cut it was closed by the network, and the agent did not hang up."""
    rig.harm.limited[1] = how
    rig.accepted()
    rig.ends()
    rig.recorder.saw(fact.ConnectionClosed(CONN))
    rig.recorder.saw(fact.ConnectionClosed(CONN))
    assert len(rig.of(HungUp)) == hung_up
    assert (("closed", 1) in rig.harm.told) is bool(hung_up)


@pytest.mark.parametrize("how", ["stalled", "slowed"])
def test_a_connection_that_we_closed_ourselves_was_not_hung_up(rig: Rig, how: Any):
    """After a reply that says `Connection: close` the fake ends it, whether or not the agent has all of it."""
    rig.harm.limited[1] = how
    rig.accepted()
    rig.ends()
    rig.recorder.saw(fact.ConnectionClosed(CONN, by_us=True))
    assert rig.of(HungUp) == [] and ("closed", 1) not in rig.harm.told


@pytest.mark.parametrize(
    ("lost", "how", "is_", "hung_up"),
    [
        (True, "hung_up", "cut", 0),
        (False, "hung_up", "hung up", 1),
        (True, "complete", "complete", 0),
    ],
)
def test_a_reply_that_a_closing_link_ended_was_cut_where_it_stood(
    rig: Rig, lost: bool, how: Any, is_: str, hung_up: int
):
    """The agent did not hang up on it; one that the fake had finished by then is whole."""
    rig.harm.lost |= {1} if lost else set()
    rig.accepted()
    rig.ends(how=how, body=250 if how == "hung_up" else 450, tokens=6)
    assert (rig.ended.how, rig.ended.bytes_delivered) == (is_, 250 if how == "hung_up" else 450)
    assert len(rig.of(HungUp)) == hung_up


def test_a_connection_that_closes_after_a_whole_reply_is_no_hang_up(rig: Rig):
    """Nor is one that never carried a call, nor one whose request was refused."""
    rig.accepted()
    rig.ends()
    rig.asks(2, TALK, conn=fact.Conn(8, CONN.peer))
    rig.recorder.saw(fact.RefusalSent(2, 400, "invalid", "", False, False))
    for conn in (CONN, fact.Conn(8, CONN.peer), fact.Conn(9, CONN.peer)):
        rig.recorder.saw(fact.ConnectionClosed(conn))
    assert rig.of(HungUp) == []


def test_an_agent_that_leaves_a_late_refusal_has_read_as_much_of_it_as_had_arrived(rig: Rig):
    """It is no hang-up on a paid reply, and it counts from the moment of the close, not from the fault's end."""
    rig.harm.limited[1] = "slowed"
    late = PartialDelivery(3, "slowed", headers=False)
    rig.harm.when_closed = lambda call: rig.recorder.delivered(call, late)
    rig.asks(1, TALK)
    rig.recorder.saw(fact.RefusalSent(1, 400, "invalid", "", False, False))
    rig.ends()
    rig.recorder.saw(fact.ConnectionClosed(CONN))
    assert (rig.ended.how, rig.ended.bytes_delivered, rig.ended.headers_delivered) == ("stalled", 3, False)
    assert rig.ended.slowed and rig.of(HungUp) == []


def test_an_agent_that_leaves_before_a_refusal_is_written_has_not_read_it(rig: Rig):
    """The answer of an overloaded provider may take a while."""
    rig.asks(1, TALK)
    rig.recorder.saw(fact.RefusalSent(1, 400, "invalid", "", False, True))
    rig.ends(how="hung_up", body=0, tokens=0)
    assert (rig.ended.how, rig.ended.bytes_delivered, rig.ended.headers_delivered) == ("hung up", 0, None)


@pytest.mark.parametrize("headers", [True, False])
def test_headers_that_came_before_the_fault_have_arrived(rig: Rig, headers: bool):
    """Also if no byte of the body did."""
    rig.harm.limited[1] = "stalled"
    rig.accepted()
    rig.ends()
    rig.recorder.delivered(1, PartialDelivery(0, "stalled", headers))
    assert (rig.ended.headers_delivered, rig.ended.slowed) == (headers, False)


def test_only_the_last_call_of_a_connection_can_be_hung_up_by_its_close(rig: Rig):
    """A stall of an earlier call on another connection is another's."""
    rig.harm.limited[2] = "stalled"
    rig.accepted(1)
    rig.ends(1)
    rig.accepted(2, conn=fact.Conn(8, CONN.peer))
    rig.ends(2)
    rig.recorder.saw(fact.ConnectionClosed(CONN))
    assert rig.of(HungUp) == []
    rig.recorder.saw(fact.ConnectionClosed(fact.Conn(8, CONN.peer)))
    assert [event.call for event in rig.of(HungUp)] == [2]
