"""Sample campaigns, written like real runs: events through History and RunStore, on a manual clock."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.call import (
    HungUp,
    ReplyEnded,
    ReplyStarted,
    RequestArrived,
    RequestRefused,
    ToolCallOffered,
)
from wedgehog.harness.record.events.fault import FaultArmed, FaultFired, FaultHealed
from wedgehog.harness.record.events.run import AgentStarted, LagSeen, RunStarted, SessionKept
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.events.turn import StimulusGiven, TurnEnded
from wedgehog.harness.record.history import History
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.record.store import CampaignStore
from wedgehog.harness.record.verdict import fail, inconclusive, nothing, passed

NONCE = "heron-violet-4821"


@dataclass
class HandClock:
    """A clock that tests advance."""

    s: float = 0.0

    def now(self) -> float:
        return self.s

    def wall(self) -> datetime:
        return datetime(2025, 5, 1, tzinfo=UTC) + timedelta(seconds=self.s)

    async def sleep(self, seconds: float) -> None:
        self.s += seconds


@dataclass
class Telling:
    """Writes one run, event by event."""

    history: History
    clock: HandClock
    model: str = "claude-sonnet-4-6"
    calls: int = 0
    attempts: dict[tuple[int, int], int] = field(default_factory=dict)

    def later(self, seconds: float) -> "Telling":
        self.clock.s += seconds
        return self

    def start(self, scenario: str, agent: str, *, ready_s: float = 0.0, **more: Any) -> None:
        started = self.clock.wall().isoformat()
        more = {"network": "toxiproxy", "time_scale": 1.0} | more
        self.history.add(RunStarted(scenario=scenario, agent=agent, started=started, **more))
        self.history.add(
            AgentStarted(
                argv=("python", "agent.py", "--fixes", "none", "--message", "List the files"),
                executable="/usr/bin/python3.11",
                entry="agent.py",
                entry_hash="9b1f0e6c2d7a4e55",
                version="1.4.2",
                pid=4711,
                ready_s=ready_s,
            )
        )

    def message(self, turn: int, text: str = "List the files", kind: str = "user", nonce: str = NONCE) -> None:
        given = {"turn": turn, "stimulus": kind, "marker": f"m{turn}", "nonce": f"{nonce}{turn}", "text": text}
        self.history.add(StimulusGiven(**given))

    def request(self, turn: int, step: int = 1, **more: Any) -> int:
        self.calls += 1
        attempt = self.attempts[turn, step] = self.attempts.get((turn, step), 0) + 1
        shape = {"wire": "anthropic", "path": "/v1/messages", "model": self.model, "stream": True, "key": "k1"}
        shape |= {"body_hash": f"b{turn}{step}", "body_bytes": 32_400, "messages": 2 * step}
        self.history.add(
            RequestArrived(call=self.calls, conn=self.calls, turn=turn, step=step, attempt=attempt, **(shape | more))
        )
        return self.calls

    def accept(self, call: int, input_tokens: int = 8_000, **more: Any) -> None:
        self.history.add(ReplyStarted(call=call, input_tokens=input_tokens, **more))

    def whole(self, call: int, text: str = "", output_tokens: int = 40, **more: Any) -> None:
        shape = {"how": "complete", "stop": "end", "output_tokens": output_tokens, "tokens_delivered": output_tokens}
        shape |= {"body_bytes": 900, "bytes_delivered": 900, "blocks_delivered": 1, "text_delivered": text}
        self.history.add(ReplyEnded(call=call, **(shape | more)))

    def stalled(self, call: int, wait_s: float, **more: Any) -> None:
        proof = "no byte passed while the link was limited; the toxic counted 0"
        place = self.history.events
        asked = next(x for x in place if isinstance(x, RequestArrived) and x.call == call)
        self.history.add(
            FaultFired(
                fault=0,
                name="stall",
                link="llm",
                turn=asked.turn,
                step=asked.step,
                attempt=asked.attempt,
                call=call,
                proof=proof,
                bytes=0,
            )
        )
        self.later(wait_s)
        self.history.add(HungUp(call=call))
        shape = {"how": "stalled", "stop": "end", "output_tokens": 40, "tokens_delivered": 0}
        shape |= {"body_bytes": 900, "bytes_delivered": 0, "blocks_delivered": 0}
        self.history.add(ReplyEnded(call=call, **(shape | more)))

    def end(self, turn: int, answer: str = "", error: str = "", exit_code: int = 0, ended: str = "by itself") -> None:
        came = {"answer": answer, "error": error, "exit_code": exit_code, "status": None, "raised": None}
        self.history.add(TurnEnded(turn=turn, ended=ended, stderr=error, **came))

    def answered(self, turn: int, kind: str = "user", text: str = "List the files", said: str = "") -> None:
        """A complete turn without a failure."""
        self.message(turn, text, kind)
        call = self.later(0.3).request(turn, turns_seen=tuple(range(1, turn + 1)))
        self.accept(call)
        answer = f"{said}Three files. {NONCE}{turn}"
        self.later(0.4).whole(call, answer)
        self.later(0.1).end(turn, answer)


Tell = Callable[[Telling], None]


class Campaign:
    """A campaign's folder that tests fill."""

    def __init__(self, out: Path, run_id: str = "a1b2c3") -> None:
        self.store = CampaignStore(out, datetime(2025, 5, 1, 12, 0, tzinfo=UTC), run_id)
        self.folder = self.store.folder
        self.describe()

    def describe(self, **facts: Any) -> "Campaign":
        self.store.describe(facts)
        return self

    def run(self, judgement: Judgement, tell: Tell = lambda telling: None, *, judged: bool = True) -> Path:
        """Write one run; `judged=False` leaves it unfinished."""
        clock = HandClock()
        store = self.store.run(judgement.scenario, judgement.agent, judgement.repeat)
        telling = Telling(History(clock, store.write), clock)
        tell(telling)
        if judged and telling.history.events and telling.history.first(LagSeen) is None:
            telling.history.add(LagSeen(worst_s=0.0))
        store.keep_text("scenario.yaml", f"name: {judgement.scenario}\n")
        replay = f"wedgehog replay runs/latest/{judgement.scenario}/{judgement.agent}"
        store.close(replace(judgement, replay=replay) if judged else None)
        return store.folder


def storm(calls: int, agent: str, **started: Any) -> Tell:
    """A wake-up whose stream stalls at each attempt without a token."""

    def tell(telling: Telling) -> None:
        telling.start("stall-after-headers", agent, **started)
        telling.message(1, "Anything new?", "wake_up")
        telling.history.add(FaultArmed(fault=0, name="stall", link="llm"))
        telling.later(0.4)
        for _ in range(calls):
            call = telling.request(1)
            telling.accept(call)
            telling.later(0.004).stalled(call, 0.05)
            telling.later(0.025)
        telling.end(1, error=f"Error: no output from the model after {calls} attempts", exit_code=1)
        telling.history.add(FaultHealed(fault=0, name="stall"))
        telling.answered(2, "recovery", "Are you there?")

    return tell


def dangling(telling: Telling) -> None:
    """A time-out during a tool call leaves it without a result; every later message is refused."""
    telling.start("timeout-in-mid-tool", "buggy", time_scale=10.0)
    telling.message(1, "Run both checks")
    call = telling.later(0.3).request(1)
    telling.accept(call)
    offered = (ToolCallOffered("1.1.1", "shell", True), ToolCallOffered("1.1.2", "shell", True))
    telling.later(0.2).whole(call, stop="tool", tool_calls=offered, blocks_delivered=2)
    telling.history.add(BeaconSeen(token="1.1.1", phase="started"))
    telling.history.add(BeaconSeen(token="1.1.1", phase="done"))
    telling.history.add(BeaconSeen(token="1.1.2", phase="started"))
    telling.later(9.0).end(1, error="GlobalRequestTimeoutError: 90 s are over", exit_code=1)
    telling.message(2, "Are you there?", "recovery")
    call = telling.later(0.3).request(2, turns_seen=(1, 2), messages=3)
    said = "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after"
    telling.history.add(
        RequestRefused(call=call, status=400, error="invalid_request_error", message=said, pairing=True, scripted=False)
    )
    telling.later(0.1).end(2, error="Error: 400 invalid_request_error", exit_code=1)
    telling.history.add(SessionKept(path="session/log.jsonl", sha256="ab" * 32, size=2048))


STORM = "161 paid calls would have gone on: 160 paid calls in a row delivered nothing, 11 allowed"
DANGLING = "the next request held tool call 1.1.2 without a result, and the provider refused it"


def judgement(scenario: str, agent: str, verdict: str = "pass", expected: str = "", **more: Any) -> Judgement:
    """A judgement; `as_expected` follows from `expected` unless it is given."""
    violated = tuple(more.get("violated", ()))
    came = "pass" if verdict == "pass" else f"{verdict}: {';'.join(violated)}"
    told = more.pop("as_expected", (came == expected) if expected else None)
    return Judgement(
        scenario=scenario,
        agent=agent,
        network="toxiproxy",
        verdict=verdict,
        expected=expected,
        as_expected=told,
        **more,
    )


def storm_judgement(agent: str = "buggy") -> Judgement:
    events = [ReplyStarted(call=n, input_tokens=1, id=5 + 5 * n) for n in range(160)]
    violated = ("paid_call_bound", "retry_discipline")
    return judgement(
        "stall-after-headers",
        agent,
        "fail",
        "fail: paid_call_bound;retry_discipline",
        violated=violated,
        says="step 1 of turn 1 was paid 160 times, 13 allowed",
        report_number="160 attempts to the backstop, $20 to $30",
        verdicts=(
            fail("step 1 of turn 1 was paid 160 times, 13 allowed", events).named("paid_call_bound"),
            fail("160 attempts at step 1 of turn 1, 30 allowed", events).named("retry_discipline"),
            passed().named("turn_deadline"),
            passed("the next message was answered").named("session_recovers"),
            nothing().named("tool_call_pairing"),
        ),
        remarks=("The idle timer (50 ms) fired 160 times.",),
    )


def whole_campaign(out: Path) -> Path:
    """A realistic campaign: expected and unexpected failures, passes, skipped, inconclusive and unfinished runs."""
    campaign = Campaign(out)
    storms, calls = "stall-after-headers", "timeout-in-mid-tool"
    families = {
        storms: "retry-storm",
        "pings-only": "retry-storm",
        calls: "dangling-call",
        "user-abort": "dangling-call",
    }
    campaign.describe(
        command=["wedgehog", "run", "retry-storm", "dangling-call", "--network", "auto"],
        seed=20250501,
        versions={"wedgehog": "0.1.0", "python": "3.11.9", "toxiproxy": "2.12.0"},
        machine="Linux 6.1, 2 cores, 4 GB",
        prices="genai-prices 0.0.40, table of 2025-04-28",
        families=families,
    )
    campaign.run(storm_judgement(), storm(160, "buggy"))
    campaign.run(judgement(storms, "fixed", "pass", "pass"), storm(5, "fixed"))
    campaign.run(
        judgement(storms, "only-wrapper", "fail", violated=("paid_call_bound",), matrix_only=True, says="13 allowed"),
        storm(160, "only-wrapper"),
    )
    campaign.run(judgement(storms, "without-total-budget", "pass", matrix_only=True), storm(5, "without"))
    campaign.run(
        judgement(calls, "buggy", "fail", "fail: tool_call_pairing;session_recovers",
                  violated=("tool_call_pairing", "session_recovers"), says=DANGLING,
                  verdicts=(fail(DANGLING, [Event(id=10)]).named("tool_call_pairing"),)),
        dangling,
    )  # fmt: skip
    campaign.run(judgement(calls, "fixed", "fail", "pass", violated=("session_recovers",), says=DANGLING), dangling)
    campaign.run(
        judgement("pings-only", "fixed", "inconclusive", "pass", says="the fault never fired",
                  verdicts=(inconclusive("the fault never fired").named("faults_fired"),)),
        plain_run,
    )  # fmt: skip
    campaign.run(judgement("pings-only", "buggy", "fail", skipped="it does not stream, as its control run showed"))
    campaign.run(judgement("user-abort", "buggy", "pass", "pass"), plain_run)
    campaign.run(judgement("user-abort", "fixed", "pass", "pass"), plain_run, judged=False)
    return campaign.folder


def plain_run(telling: Telling) -> None:
    """One answered message, and the recovery."""
    telling.start("plain", "fixed")
    telling.answered(1)
    telling.answered(2, "recovery")


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    """An empty campaign's folder."""
    return Campaign(tmp_path / "runs")


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A realistic campaign's folder."""
    return whole_campaign(tmp_path / "runs")
