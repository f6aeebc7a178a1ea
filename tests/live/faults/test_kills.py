"""Kills of real agents by the command as its user runs it: who is hit, what the turn comes to, and what follows."""

from collections.abc import Callable
from typing import Any

import pytest

from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.run import AgentStarted
from wedgehog.harness.record.events.turn import AgentKilled, Frozen, SessionSaved, Thawed

AND = {"user": "And?", "model": [[{"text": "Yes. {nonce}"}, {"delay_s": 0.3}]]}


ENDS_TOOL = ("killed", "tool", "sigterm", "torn", "linger")
"""Stories whose kill ends the tool: it takes so long that it is at work when the kill comes, also on a busy machine."""


def _works(tool_s: float) -> list[dict[str, Any]]:
    return [{"tool": "shell", "args": {"command": f"sleep {tool_s}"}}, {"text": "It went well. {nonce}"}]


@pytest.fixture
def play(sound: Any) -> Callable[..., dict[str, Any]]:
    """Plays three messages against the sound agent, once with each fault, all in one campaign."""

    def played(
        *,
        way: str = "command",
        network: str = "--network=embedded",
        invariants: Any = None,
        **faults: Any,
    ) -> Any:
        stories = {
            name: {
                "turns": [{"user": "Run it.", "model": _works(30 if name in ENDS_TOOL else 0.6)}, AND, AND],
                "faults": [{"link": "agent", "at": at, "do": do}],
                "invariants": invariants or {},
            }
            for name, (at, do) in faults.items()
        }
        # Without a bound, the runs mostly wait: more of them at once than the machine has processors.
        jobs = () if invariants else ("--jobs=4",)
        return sound(way, network, *jobs, **stories)

    return played


IN_MID_TOOL = {"tool": 1, "when": "started"}
STRUCK: dict[str, tuple[Any, Any]] = {
    "killed": (IN_MID_TOOL, "kill"),
    "leader": (IN_MID_TOOL, {"kill": {"whom": "leader"}}),
    "tool": (IN_MID_TOOL, {"kill": {"whom": "tool"}}),
    "sigterm": (IN_MID_TOOL, {"kill": "SIGTERM"}),
    "torn": (IN_MID_TOOL, {"kill": {"tear": True}}),
    "behind_result": ({"step": 2}, "kill"),
    "late": ({"after_s": 30}, "kill"),
    "nobody": ({"event": 99}, {"kill": {"whom": "tool"}}),
}
_PLAYED: dict[str, Any] = {}


@pytest.fixture
def struck(play: Any) -> dict[str, Any]:
    """What came of the kills of `STRUCK`, where the agent is a command; played once."""
    if not _PLAYED:
        _PLAYED.update(play(**STRUCK))
    return _PLAYED


@pytest.mark.parametrize("way", ["command", "http", "callable"])
def test_a_killed_turn_is_over_and_the_next_message_goes_to_the_same_session(
    request: pytest.FixtureRequest, play: Any, way: str
):
    """SIGKILL in mid tool: what came before is judged, nothing is owed, and the repaired history is answered."""
    runs = request.getfixturevalue("struck") if way == "command" else play(way=way, killed=STRUCK["killed"])
    played = runs["killed"]
    assert played.verdict == "pass", played.row
    assert played.kinds == ["killed", "answered", "answered", "answered"]
    (kill,) = played.history.of(AgentKilled)
    assert (kill.signal, kill.whom, kill.turn) == ("SIGKILL", "tree", 1) and len(kill.pids) >= 2
    (fired,) = played.history.of(FaultFired)
    assert "all were gone" in fired.proof and str(kill.pids[0]) in fired.proof
    second = next(call for call in played.history.calls if call.arrived.turn == 2)
    assert second.arrived.turns_seen == (1, 2), "the session went on"
    assert second.arrived.results[0].is_error
    pids = [started.pid for started in played.history.of(AgentStarted)]
    assert len(pids) == (4 if way == "command" else 2) and len(set(pids)) == len(pids)


@pytest.mark.parametrize("network", ["embedded", "toxiproxy"], indirect=True)
def test_a_kill_strikes_at_the_wire_event_the_beacon_or_the_file_that_its_trigger_names(play: Any, network: str):
    """A request, so much of its reply, the last byte; a tool has started or is done; a line is written."""
    runs = play(
        network=network,
        headers=({}, "kill"),
        behind_event=({"event": 3}, "kill"),
        behind_byte=({"byte": 40}, "kill"),
        terminal=({"phase": "terminal"}, "kill"),
        tool_done=({"tool": 1, "when": "done"}, "kill"),
        written=({"session": "written"}, "kill"),
        second_step=({"step": 2}, "kill"),
        timer=({"after_s": 0.6}, "kill"),
        linger=({"phase": "linger", "after_s": 0.1}, "kill"),
    )
    for name, it in runs.items():
        assert it.kinds[0] == "killed" or name == "tool_done", (name, it.kinds, it.says)
        assert it.verdict == "pass", (name, it.row)
        assert set(it.kinds[1:]) == {"answered"}, (name, it.kinds)
    calls = {name: it.history.turns[0].calls for name, it in runs.items()}
    ends = {name: next(call.ended for call in of) for name, of in calls.items() if of}
    assert ends["headers"].bytes_delivered == 0 and ends["behind_byte"].bytes_delivered == 40
    assert 0 < ends["behind_event"].bytes_delivered < ends["terminal"].bytes_delivered
    assert ends["linger"].how == "complete" == ends["written"].how
    assert {name: len(of) for name, of in calls.items() if name in ("linger", "second_step")} == {
        "linger": 1,
        "second_step": 2,
    }
    started = {name: [seen.phase for seen in it.beacons] for name, it in runs.items()}
    assert started["tool_done"][:2] == ["started", "done"] and started["headers"] == []


def test_a_kill_does_not_wait_for_a_model_that_takes_its_time(sound: Any):
    """A request has arrived, and nothing is answered yet: that is the moment, however long the model thinks."""
    thinks = [{"user": "Think.", "model": [[{"delay_s": 3600}, {"text": "{nonce}"}]]}, AND]
    story = {"turns": thinks, "faults": [{"link": "agent", "do": "kill"}]}
    it = sound("command", "--network=embedded", thinks=story)["thinks"]
    assert (it.verdict, it.kinds) == ("pass", ["killed", "answered", "answered"]), it.says
    assert len(list(it.history.of(FaultFired))) == 1


def test_a_kill_hits_whom_it_means(struck: dict[str, Any]):
    """The agent's own process, the shell that runs the command, or one that may handle the signal."""
    runs = {name: struck[name] for name in ("leader", "tool", "sigterm")}
    assert {name: it.verdict for name, it in runs.items()} == dict.fromkeys(runs, "pass")
    assert {name: it.kinds[0] for name, it in runs.items()} == {
        "leader": "killed",
        "tool": "answered",
        "sigterm": "killed",
    }
    assert len(next(runs["leader"].history.of(AgentKilled)).pids) == 1
    done = [seen.phase for seen in runs["leader"].beacons]
    assert done == ["started", "done"], "what the agent left behind lives on"
    assert [seen.phase for seen in runs["tool"].beacons] == ["started"]
    told = runs["tool"].history.turns[0].calls[1].arrived.results[0]
    assert told.is_error, "the agent lives, and hears what became of its tool"
    assert "SIGTERM was delivered" in next(runs["sigterm"].history.of(FaultFired)).proof


def test_a_crash_can_tear_the_last_line_and_what_is_left_is_kept(struck: dict[str, Any]):
    """Half of a line: the copy is of what the next message finds."""
    played = struck["torn"]
    (saved,) = played.history.of(SessionSaved)
    assert saved.torn and saved.results == ()
    lines = (played.folder / saved.path).read_bytes().split(b"\n")
    assert lines[-1] and b"tool_use" not in lines[-2]
    assert played.kinds == ["killed", "answered", "answered", "answered"]


def test_a_result_that_was_written_before_the_kill_is_known(struck: dict[str, Any]):
    """After the second request has arrived the tool's result stands in the file, and the event says so."""
    played = struck["behind_result"]
    (saved,) = played.history.of(SessionSaved)
    assert saved.results == ("1.1.1",) and not saved.torn


def test_a_kill_that_hits_no_process_is_no_pass(struck: dict[str, Any]):
    """The turn was over: inconclusive, never green."""
    played = {name: struck[name] for name in ("late", "nobody")}
    assert {name: it.verdict for name, it in played.items()} == dict.fromkeys(played, "inconclusive")
    assert "the fault never fired: kill on agent at step 1 of turn 1" in played["late"].says
    assert set(played["late"].kinds) == {"answered"}


def test_an_agent_that_stands_still_is_not_slow(play: Any):
    """Two seconds of SIGSTOP beyond a bound of one: nothing is lost, no bound runs, and it goes on again."""
    bounds = {"turn_deadline": {"turn_s": 1.5}, "tool_deadline": {"tool_s": 1.2}}
    runs = play(
        invariants=bounds,
        headers=({}, {"freeze": 4}),
        stream=({"event": 2}, {"freeze": 4}),
        in_mid_tool=({"tool": 1, "when": "started"}, {"freeze": {"for_s": 4, "whom": "leader"}}),
    )
    for name, it in runs.items():
        assert (it.verdict, set(it.kinds)) == ("pass", {"answered"}), (name, it.says)
        (frozen,), (thawed,) = it.history.of(Frozen), it.history.of(Thawed)
        assert 3.9 < thawed.at_s - frozen.at_s < 6
        (fired,) = it.history.of(FaultFired)
        assert "stood still" in fired.proof
        assert it.history.turns[0].duration_s > 4


def test_a_tool_that_stands_still_is_something_that_an_agent_must_see(play: Any):
    """The agent itself runs: its bounds do."""
    played = play(
        invariants={"tool_deadline": {"tool_s": 1}},
        frozen=({"tool": 1, "when": "started"}, {"freeze": {"for_s": 4, "whom": "tool"}}),
    )["frozen"]
    assert (played.verdict, played.row["violated"]) == ("fail", "tool_deadline"), played.says
    assert set(played.kinds) == {"answered"}
