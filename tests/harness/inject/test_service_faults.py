"""Harm to our own tools: which call, which attempt, which byte, and what proves it."""

import signal
from types import SimpleNamespace
from typing import Any

import pytest

from wedgehog.harness.faults.actor.chat_status import SAID
from wedgehog.harness.faults.chat_fault import ChatRefusal
from wedgehog.harness.faults.result_fault import Result
from wedgehog.harness.inject.injector import Injector
from wedgehog.harness.inject.targets import Hit, Targets
from wedgehog.harness.network.base import Downstream, Upstream, WholeLink
from wedgehog.harness.record.events.fault import FaultFired, FaultHealed
from wedgehog.harness.record.history import History
from wedgehog.harness.scenario.model import Scenario

SPOT = (("127.0.0.1", 7), 300)
PLAIN = Result("21 °C")


class It:
    """An injector with its links, in turn 1."""

    def __init__(self, faults: list[dict[str, Any]], clock: Any, link: Any) -> None:
        told = {"name": "a", "why": "w", "tools": {"weather": {}}, "store": {}, "faults": faults}
        model = [[{"tool": "weather"}] * 3] * 3
        scenario = Scenario.model_validate({**told, "turns": [{"user": "x", "model": model}, {"user": "y"}]})
        self.history = History(clock)
        self.links = {name: link(name) for name in ("llm", "tool:mcp", "store:db", "chat")}
        self.server: Any = None
        targets = Targets(server=lambda: self.server)
        self.injector = Injector(scenario.plan(1), self.links, self.history, clock, targets=targets)
        self.tools = self.injector.tools

    @property
    def fired(self) -> list[str]:
        return [event.name for event in self.history.of(FaultFired)]

    def struck(self, link: str = "tool:mcp") -> list[Any]:
        return [(strike.fault.name, strike.spot) for strike in self.links[link].strikes]


@pytest.fixture
def it(manual_clock: Any, fake_link: Any) -> Any:
    async def make(*faults: dict[str, Any]) -> It:
        made = It(list(faults), manual_clock, fake_link)
        await made.injector.before_turn(1)
        return made

    return make


def on(do: Any, **at: Any) -> dict[str, Any]:
    """A fault of the tool host, on the first tool call unless said otherwise."""
    more = {key: at.pop(key) for key in ("times", "sticks_to", "heal") if key in at}
    return {"link": "tool:mcp", "at": {"tool": 1} | at, "do": do, **more}


async def test_a_result_is_harmed_on_the_call_that_the_trigger_names(it: Any):
    """Step and tool; the beacon as such sets nothing off."""
    made = await it(on("lose_result", step=2, tool=2))
    assert made.tools.asked("1.1.2", PLAIN) == (PLAIN, [])
    assert made.tools.asked("1.2.1", PLAIN) == (PLAIN, [])
    assert made.injector.beacon("1.2.2", "started") == [] and made.fired == []
    harmed, later = made.tools.asked("1.2.2", PLAIN)
    assert harmed.lost and later == [] and made.fired == ["lose_result"]


async def test_what_is_harmed_in_writing_has_struck_when_it_is_written(it: Any):
    """A response that no client could read would prove nothing."""
    made = await it(on("double_result"), on({"huge_result": 99}))
    harmed, later = made.tools.asked("1.1.1", PLAIN)
    assert (harmed.copies, harmed.bytes, made.fired) == (2, 99, [])
    made.tools.written(later)
    assert made.fired == ["double_result", "huge_result"]


@pytest.mark.parametrize(
    ("more", "refused"),
    [({}, [True, False, False]), ({"times": "always"}, [True, True, True]), ({"times": 2}, [True, True, False])],
)
async def test_a_call_is_refused_before_it_begins(it: Any, more: dict[str, Any], refused: list[bool]):
    """The refusal fires when it is written; a call that is let in has its result, which this fault leaves alone."""
    made = await it(on("unauthorized", **more))
    assert made.tools.asked("1.1.1", PLAIN) == (PLAIN, []) and made.tools.refused("1.1.2") == (None, [])
    found = [made.tools.refused("1.1.1") for _ in range(3)]
    assert [refusal is not None for refusal, _ in found] == refused and made.fired == []
    refusal, faults = found[0]
    made.tools.written(faults)
    assert refusal.status == 401 and made.fired == ["unauthorized"]


@pytest.mark.parametrize(
    ("more", "refused"),
    [({}, [True, False, False]), ({"times": "always"}, [True] * 3), ({"attempt": 2, "times": 2}, [False, True, True])],
)
async def test_every_request_of_a_turn_is_refused_at_its_connection(it: Any, more: dict[str, Any], refused: list[bool]):
    """Attempts and times count requests; at the end of the turn the client is let in."""
    at = {"phase": "connect"} | ({"attempt": more.pop("attempt")} if "attempt" in more else {})
    made = await it({"link": "tool:mcp", "at": at, "do": "unauthorized", **more})
    assert made.tools.refused("1.1.1") == (None, [])
    found = [made.tools.refused_request(authorized=True) for _ in range(3)]
    assert [refusal is not None for refusal, _ in found] == refused and made.fired == []
    assert not made.injector.keeps_requests_away
    made.tools.written(next(faults for refusal, faults in found if refusal))
    assert made.fired == ["unauthorized"] and made.injector.keeps_requests_away
    await made.injector.after_turn(1)
    assert made.tools.refused_request(authorized=True) == (None, [])


@pytest.mark.parametrize(
    ("more", "lost"),
    [
        ({}, [True, False, False]),
        ({"times": 2}, [True, True, False]),
        ({"times": "always"}, [True, True, True]),
        ({"attempt": 2}, [False, True, False]),
    ],
)
async def test_a_call_that_is_made_again_is_another_attempt(it: Any, more: dict[str, Any], lost: list[bool]):
    """Attempts and times count the askings of one call."""
    made = await it(on("lose_result", **more))
    assert [made.tools.asked("1.1.1", PLAIN)[0].lost for _ in range(3)] == lost


async def test_harm_that_sticks_to_the_link_meets_every_later_call_of_the_turn(it: Any):
    """And none before its trigger, and none of another turn."""
    made = await it(on("lose_result", step=2, sticks_to="link"))
    tokens = ("1.1.1", "1.2.1", "1.2.2", "1.3.1", "2.1.1")
    assert [made.tools.asked(token, PLAIN)[0].lost for token in tokens] == [False, True, True, True, False]


async def test_a_result_is_struck_at_its_byte_on_its_own_connection(it: Any, settled: Any):
    """Before it is written; armed when the host is told to go on, proved later."""
    made = await it(on({"cut": "fin"}, byte=30))
    await made.tools.at("1.1.1", SPOT)
    assert made.struck() == [("cut", Downstream(SPOT[0], 330))] and made.fired == []
    await made.links["tool:mcp"].strikes[0].hits()
    await settled()
    assert made.fired == ["cut"]
    await made.injector.after_turn(1)
    assert made.links["tool:mcp"].strikes[0].healed and len(list(made.history.of(FaultHealed))) == 1


async def test_a_stall_that_ends_is_the_host_holding_its_answer(it: Any, manual_clock: Any):
    """Nothing is lost, so the network is not asked."""
    made = await it(on({"stall": 2}))
    import asyncio

    holding = asyncio.create_task(made.tools.at("1.1.1", SPOT))
    await manual_clock.advance(1.9)
    assert not holding.done() and made.fired == ["stall"]
    await manual_clock.advance(0.2)
    assert holding.done() and made.struck() == []


async def test_a_port_that_closes_strikes_while_the_tool_works(it: Any, manual_clock: Any):
    """By the beacon, for the whole link; a moment later, so that what is being written arrives."""
    made = await it(on("refuse"))
    (task,) = made.injector.beacon("1.1.1", "started")
    await manual_clock.advance(0.05)
    assert task.done() and made.struck() == [("refuse", WholeLink())]
    await made.tools.at("1.1.1", SPOT)
    assert len(made.struck()) == 1, "and not once more when the result is there"


async def test_a_query_is_struck_by_its_number_in_the_turn(it: Any):
    """At the first byte of its reply, or behind it."""
    stall = {"link": "store:db", "at": {"query": 2, "byte": 5}, "do": {"stall": "forever"}, "times": 2}
    made = await it(stall)
    struck = []
    for _ in range(4):
        await made.tools.at_query(1, SPOT)
        struck.append(len(made.struck("store:db")))
    assert struck == [0, 1, 2, 2]
    assert made.struck("store:db") == [("stall", Downstream(SPOT[0], 305))] * 2


async def test_a_poll_and_what_is_sent_back_are_struck_each_at_its_own_response(it: Any):
    """Only polls that bring the message count; the second attempt where it is asked for."""
    stall = {"link": "chat", "do": {"stall": "forever"}}
    made = await it({**stall, "at": {"chat": "poll", "byte": 5}}, {**stall, "at": {"chat": "send", "attempt": 2}})
    for what in ("other", "poll", "poll", "send", "send", "send"):
        await made.tools.at_chat(what, SPOT)
    at = SPOT[1]
    assert made.struck("chat") == [("stall", Downstream(SPOT[0], at + 5)), ("stall", Downstream(SPOT[0], at))]


async def test_what_strikes_a_message_on_its_way_is_armed_while_the_poll_is_held(it: Any):
    """An agent cannot be faster than that; and not before, when the request would be the next poll."""
    made = await it({"link": "chat", "at": {"chat": "send", "phase": "request", "byte": 9}, "do": {"stall": "forever"}})
    await made.tools.at_chat("other", SPOT)
    assert made.struck("chat") == []
    await made.tools.at_chat("poll", SPOT)
    assert made.struck("chat") == [("stall", Upstream(9))]


async def test_a_strike_on_a_chat_connection_ends_with_it_because_it_keeps_others_waiting(it: Any, settled: Any):
    """The agent has given that poll up, and asks again."""
    made = await it({"link": "chat", "at": {"chat": "poll"}, "do": {"drip": 5}})
    await made.tools.at_chat("poll", SPOT)
    assert made.injector.keeps_requests_away and not made.links["chat"].strikes[0].healed
    made.tools.left_chat(("127.0.0.1", 1))
    await settled()
    assert not made.links["chat"].strikes[0].healed, "that was somebody else's"
    made.tools.left_chat(SPOT[0])
    await settled()
    assert made.links["chat"].strikes[0].healed


async def test_a_refusal_counts_the_requests_of_its_kind_and_strikes_no_byte(it: Any):
    """From its attempt on, so often as it says; afterwards the chat does what it is asked for."""
    made = await it({"link": "chat", "at": {"chat": "send", "attempt": 2}, "do": {"chat_status": 502}, "times": 2})
    asked = [made.tools.chat_refusal(what) for what in ("poll", "send", "typing", "send", "send", "send")]
    assert [refusal and refusal.code for refusal in asked] == [None, None, None, 502, 502, None]
    assert made.fired == ["chat_status"] * 2
    await made.tools.at_chat("send", SPOT)
    assert made.struck("chat") == [] and not made.injector.keeps_requests_away


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        ({"code": 429, "retry_after": 2.5}, ChatRefusal(429, "Too Many Requests: retry after 3", 3)),
        ({"code": 409}, ChatRefusal(409, SAID[409])),
        ({"code": 599}, ChatRefusal(599, "Error")),
    ],
)
async def test_a_refusal_is_in_the_words_of_the_chat(it: Any, words: dict[str, Any], refusal: ChatRefusal):
    """A refused poll may be why the model is not asked."""
    made = await it({"link": "chat", "at": {"chat": "poll"}, "do": {"chat_status": words}})
    assert not made.injector.keeps_requests_away
    assert made.tools.chat_refusal("poll") == refusal
    assert made.injector.keeps_requests_away
    await made.injector.after_turn(1)
    assert made.tools.chat_refusal("poll") is None


async def test_a_killed_server_comes_back_when_the_fault_is_healed(it: Any, manual_clock: Any):
    """At the end of the turn, or after its own time; a server that cannot come back breaks the run."""
    came: list[float] = []

    async def kill(number: signal.Signals) -> Hit:
        return Hit((9,), f"{number.name} was delivered")

    async def restart() -> None:
        came.append(manual_clock.now())

    async def fails() -> None:
        raise OSError("no memory")

    made = await it(on({"kill": {"whom": "server"}}, heal={"after_s": 3}), on({"kill": {"whom": "server"}}, tool=2))
    made.server = SimpleNamespace(kill_server=kill, restart_server=restart)
    made.injector.beacon("1.1.1", "started")
    made.injector.beacon("1.1.2", "started")
    await manual_clock.advance(1)
    assert made.fired == ["kill", "kill"]
    await manual_clock.advance(3.1)
    assert len(came) == 1
    await made.injector.after_turn(1)
    assert len(came) == 2 and not made.injector.broken.is_set()

    broken = await it(on({"kill": {"whom": "server"}}))
    broken.server = SimpleNamespace(kill_server=kill, restart_server=fails)
    broken.injector.beacon("1.1.1", "started")
    await manual_clock.advance(0.1)
    await broken.injector.after_turn(1)
    assert broken.injector.broken.is_set()
