"""Finds what an agent waits for when its turn is over its deadline, before the turn is ended.

It writes hang-2.json into the run's folder, and an event that says it in one sentence. It takes at most three seconds,
sends signals only to a Node that was started to report on one, and never fails: the file says what could not be seen.
"""

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil

from wedgehog.harness.network.base import Address
from wedgehog.harness.record.clock import Clock
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.events.turn import AbortSent, AgentKilled, HangSeen
from wedgehog.harness.record.history import History
from wedgehog.harness.record.views import Call
from wedgehog.harness.run.watching.agent_processes import AgentProcesses
from wedgehog.harness.sandbox.process_info import Peer, ProcessInfo, environment, peers_of, process_infos, tree_of
from wedgehog.harness.sandbox.stacks import NodeReport, Stacks, node_stacks, python_stacks, reports_on, stuck_thread

WITHIN_S = 3.0
STACKS_S = 1.5
MOST_STACKS = 4
"""The most processes that are asked for their stacks, the leader first."""
UNSEEN = "none of its processes could be seen"
BUSY_SHARE = 0.5
"""A process that was on the processor for this share of its life does not wait."""


@dataclass(slots=True)
class Diagnosis:
    """What was seen; fields that could not be filled stay empty."""

    processes: list[ProcessInfo] = field(default_factory=list)
    peers: list[Peer] = field(default_factory=list)
    stacks: list[Stacks] = field(default_factory=list)
    node_reports: dict[str, Any] = field(default_factory=dict)
    node_asks: dict[int, NodeReport] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    """The errors of the look."""


@dataclass(frozen=True)
class Diagnostics:
    """Looks at the agent of one run."""

    agent: AgentProcesses
    links: Mapping[str, Address]
    history: History
    folder: Path
    clock: Clock
    hosts: Mapping[Address, str] = field(default_factory=dict)
    """The links by their addresses in a network of the agent's own."""

    async def at(self, turn: int) -> None:
        """Look, and record what was seen."""
        sight = Diagnosis()
        try:
            async with asyncio.timeout(WITHIN_S):
                await self._look(sight)
        except TimeoutError:
            sight.missing.append(f"looking took longer than {WITHIN_S:g} s")
        except Exception as wrong:  # a look that fails must not fail the run
            sight.missing.append(f"{type(wrong).__name__}: {wrong}")
        if not self.history.sealed:
            last = self.history.events[-1].as_json() if self.history.events else None
            seen = {name: value for name, value in asdict(sight).items() if name != "node_asks"}
            says = sentence(self.history, sight, turn, self.clock.now())
            record_hang(self.history, self.folder, turn, self.clock.now(), says, {"last_event": last, **seen})

    async def _look(self, sight: Diagnosis) -> None:
        await _in_own_thread(lambda: self._from_outside(sight))
        await self._inside(sight)

    def _from_outside(self, sight: Diagnosis) -> None:
        found = [one for one in tree_of(self.agent.mark, self.agent.leaders) if one.status() != psutil.STATUS_ZOMBIE]
        sight.processes = process_infos(found, self.clock.wall().timestamp())
        sight.peers = peers_of(found, self.links, self.hosts)
        by_pid = {process.pid: process for process in found}
        asks = {one.pid: reports_on(one, environment(by_pid[one.pid])) for one in sight.processes}
        sight.node_asks = {pid: ask for pid, ask in asks.items() if ask is not None}

    async def _inside(self, sight: Diagnosis) -> None:
        python = [one.pid for one in sight.processes if one.is_python][:MOST_STACKS]
        node = list(sight.node_asks.items())[:MOST_STACKS]
        stacks = asyncio.gather(*(python_stacks(pid, STACKS_S) for pid in python))
        reports = asyncio.gather(*(node_stacks(pid, ask, STACKS_S, os.kill, self.clock.sleep) for pid, ask in node))
        sight.stacks = list(await stacks)
        for stack, report in await reports:
            sight.stacks.append(stack)
            if report:
                sight.node_reports[str(stack.pid)] = report


def record_hang(history: History, folder: Path, turn: int, now_s: float, says: str, seen: Mapping[str, Any]) -> None:
    """Write what was seen into the run's folder, and the sentence into its history."""
    file = f"hang-{turn}.json"
    facts = {"turn": turn, "at_s": round(now_s, 3), "says": says, **seen}
    with suppress(OSError):
        text = json.dumps(facts, indent=1, ensure_ascii=False, default=str)
        (folder / file).write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
    history.add(HangSeen(turn=turn, says=says, file=file))


async def _in_own_thread(work: Callable[[], None]) -> None:
    """Not in the shared pool: it may be full of work that waits for the agent."""
    pool = ThreadPoolExecutor(1, "wedgehog-look")
    try:
        await asyncio.get_running_loop().run_in_executor(pool, work)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


# ---- in one sentence


def sentence(history: History, sight: Diagnosis, turn: int, now_s: float) -> str:
    """What the agent waited for: an open call, a tool, a connection, a process, or nothing that is known."""
    so_far = History(events=history.events).seal()
    what = (
        _call(so_far, sight, turn, now_s)
        or _tool(so_far, sight, now_s)
        or _busy(sight)
        or _connection(so_far, sight)
        or _on_its_way(so_far, sight, turn)
        or _child(sight)
        or _nothing(so_far, sight, turn)
    )
    where = next((at for it in sight.stacks if (at := stuck_thread(it.threads)) is not None), None)
    return what if where is None else f"{what}; {where}"


def _call(history: History, sight: Diagnosis, turn: int, now_s: float) -> str:
    waiting = [call for call in history.calls if _is_open(call)]
    if sight.processes and not any(peer.link == "llm" for peer in sight.peers):
        return ""  # it no longer waits for those calls
    mine = [call for call in waiting if call.arrived.turn == turn and call.main] or waiting
    if not mine:
        return ""
    last, more = mine[-1], len(waiting) - 1
    others = f" (and {more} more)" if more else ""
    return f"it waited for the reply to call {last.number}{others} on llm, open since {_seconds(now_s - last.at_s)}"


def _is_open(call: Call) -> bool:
    """A stalled reply has ended in the history, and is still open for the agent.

    A request for data about a model is answered at once, and its end is not recorded.
    """
    over = (call.ended is not None and call.ended.how != "stalled") or call.arrived.background == "unreadable"
    return not over and call.refused is None and call.hung_up is None


def _tool(history: History, sight: Diagnosis, now_s: float) -> str:
    beacons = list(history.of(BeaconSeen))
    done = {beacon.token for beacon in beacons if beacon.phase == "done"}
    sent = {use.token for use in history.tool_uses if use.results}
    killed = max((kill.id for kill in history.of(AgentKilled)), default=-1)  # what ran before is not waited for
    running = [one for one in beacons if one.phase == "started" and one.token not in done | sent and one.id > killed]
    running = [one for one in running if not _was_stopped(history, sight, one)]
    if not running:
        return ""
    last = running[-1]
    names = {use.token: f" ({use.offered.name})" for use in history.tool_uses}
    how = "in the background since" if last.background else "running since"
    return f"it waited for tool call {last.token}{names.get(last.token, '')}, {how} {_seconds(now_s - last.at_s)}"


def _was_stopped(history: History, sight: Diagnosis, started: BeaconSeen) -> bool:
    """Whether a stop of its turn ended a command: no end is reported, and no process has it in its command line."""
    if not sight.processes or all(abort.id < started.id for abort in history.of(AbortSent)):
        return False
    return not any(started.token in word for one in sight.processes for word in one.argv)


def _busy(sight: Diagnosis) -> str:
    for one in sight.processes:
        if one.state == psutil.STATUS_RUNNING and one.cpu_s > BUSY_SHARE * one.age_s > 0:
            used, of = _seconds(one.cpu_s), _seconds(one.age_s)
            return f"it was at work: {_command(one)} has used {used} of processor in {of}"
    return ""


def _connection(history: History, sight: Diagnosis) -> str:
    """A link that a fault struck, else one that gave no byte, else any; without an open call not the model's."""
    struck = {fired.link for fired in history.of(FaultFired)}
    known = [peer for peer in sight.peers if peer.link not in ("", "llm", "channel")]
    known.sort(key=lambda peer: (peer.link not in struck, not (peer.sent and peer.received == 0)))
    others = [peer for peer in sight.peers if not peer.link and peer.state in ("ESTABLISHED", "SYN_SENT")]
    if known:
        return f"no call was open; it held a connection to {known[0].name}"
    return f"no call was open; it held a connection to {others[0].name}" if others else ""


def _on_its_way(history: History, sight: Diagnosis, turn: int) -> str:
    """A request that is held on its way is not yet a call."""
    asked = any(call.arrived.turn == turn for call in history.calls)
    held = any(peer.link == "llm" and peer.state == "ESTABLISHED" for peer in sight.peers)
    if asked or not held:
        return ""
    if any(call.arrived.turn < turn for call in history.calls):
        return (
            "no request of this turn has come through; it holds a connection to the model, "
            "which may be an idle one of an earlier turn"
        )
    return "it held a connection to the model, and no request of this turn has come through"


def _child(sight: Diagnosis) -> str:
    leader = sight.processes[0].pid if sight.processes else 0
    below = [one for one in sight.processes if one.parent == leader]
    return f"no call was open; its process {_command(below[0])} still ran" if below else ""


def _nothing(history: History, sight: Diagnosis, turn: int) -> str:
    calls = [call for call in history.calls if call.arrived.turn == turn]
    if not sight.processes:
        return UNSEEN
    asked = f"its last call, {calls[-1].number}, {_ended(calls[-1])}" if calls else "no request came in this turn"
    return f"no call, no tool and no connection to the model or a tool was open; {asked}"


def _ended(call: Call) -> str:
    if call.refused is not None:
        return f"was refused with {call.refused.status}"
    if call.hung_up is not None:
        return "was given up by itself"
    return "was answered whole" if call.whole else f"ended so: {call.ended.how if call.ended else 'in an unknown way'}"


def _command(one: ProcessInfo) -> str:
    words = [Path(one.argv[0]).name, *one.argv[1:]] if one.argv else [Path(one.executable).name]
    line = " ".join(" ".join(words).split())
    return f"`{line if len(line) <= 60 else line[:59] + '…'}`"


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if value >= 2 else f"{value:.1f} s"


@dataclass(frozen=True)
class SimDiagnostics:
    """Looks at the agent of one simulated run; `waits` returns a line for each of its tasks."""

    history: History
    folder: Path
    clock: Clock
    waits: Callable[[], list[str]]

    async def at(self, turn: int) -> None:
        """Record what each task waits for."""
        if not self.history.sealed:
            tasks = self.waits()
            said = sentence(self.history, Diagnosis(), turn, self.clock.now())
            says = "; ".join([*([] if tasks and said == UNSEEN else [said]), *tasks[:1]])
            record_hang(self.history, self.folder, turn, self.clock.now(), says, {"tasks": tasks})
