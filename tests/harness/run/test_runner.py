"""The runner: one scenario against one agent, on real sockets, with a small agent of our own."""

import itertools
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from wedgehog.fake_llm.reply import Reply, Text, ToolCall
from wedgehog.fake_llm.script.main_call import MainShape
from wedgehog.harness.agents.context import AgentContext
from wedgehog.harness.agents.spec import AgentSpec, load_spec
from wedgehog.harness.campaign.selection import stock_folder
from wedgehog.harness.invariants import check
from wedgehog.harness.network.relay import EmbeddedNetwork
from wedgehog.harness.record.clock import WallClock
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.run import AgentStarted, LagSeen, RunStarted, SessionKept, SessionPlanted, Trouble
from wedgehog.harness.record.events.service import BeaconSeen, PageAsked
from wedgehog.harness.record.events.turn import TurnEnded
from wedgehog.harness.record.history import read
from wedgehog.harness.record.store import RunStore
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.run import runner
from wedgehog.harness.run.control import ControlFacts, control_scenario
from wedgehog.harness.run.job import TURN_S, Job
from wedgehog.harness.run.judging.judge import judge
from wedgehog.harness.run.messages import RunTokens, faster
from wedgehog.harness.run.runner import run
from wedgehog.harness.run.skip_reasons import why_skipped
from wedgehog.harness.run.watching.cpu_wait import CpuWatch
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.scenario.scenario_file import load_scenario

AGENT = '''\
"""Asks the model, runs the shell commands that it calls for, keeps its session in a file."""
import json, os, subprocess, sys, urllib.error, urllib.request
url, session, message = sys.argv[1:4]
path = os.path.join(session, "session.json")
talk = json.load(open(path)) if os.path.exists(path) else []
talk.append({"role": "user", "content": message})
TOOL = {"name": "bash", "description": "", "input_schema": {
    "type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}
HEADERS = {"content-type": "application/json", "x-api-key": "k", "anthropic-version": "2023-06-01"}
while True:
    body = json.dumps({"model": "m", "max_tokens": 999, "messages": talk, "tools": [TOOL]}).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url + "/v1/messages", body, HEADERS), timeout=20) as reply:
            said = json.load(reply)["content"]
    except (OSError, ValueError) as wrong:
        talk.append({"role": "assistant", "content": f"error: {wrong}"})
        json.dump(talk, open(path, "w"))
        sys.exit(f"Error: {wrong}")
    talk.append({"role": "assistant", "content": said})
    calls = [part for part in said if part["type"] == "tool_use"]
    if not calls:
        break
    talk.append({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": call["id"],
         "content": subprocess.run(call["input"]["command"], shell=True, capture_output=True, text=True).stdout}
        for call in calls]})
json.dump(talk, open(path, "w"))
print("".join(part["text"] for part in said if part["type"] == "text"))
'''
BREAKER = """\
import os, sys
path = os.path.join(sys.argv[2], "calls")
calls = open(path).read() if os.path.exists(path) else ""
open(path, "w").write(calls + "x")
if len(calls) == 1:
    sys.exit("Error: the breaker is open")
"""
"""The second message meets an open breaker."""
SAID = {"user": "Go on.", "model": [{"text": "Done {nonce}"}]}
TOOLS = {
    "user": "Run it.",
    "model": [[{"text": "ok"}, {"tool": "shell", "args": {"command": "echo hi > made"}}], {"text": "Done {nonce}"}],
}
CONTROL = ControlFacts(True, shape=MainShape(frozenset({"bash"})), tools=frozenset({"bash", "shell"}), resumes=True)


def scenario(*turns: Any, **words: Any) -> Scenario:
    return Scenario.model_validate({"name": "a", "why": "w", "turns": list(turns or (SAID,)), **words})


def spec(**words: Any) -> AgentSpec:
    return AgentSpec.model_validate({"name": "a", "wire": "anthropic", "command": ["x", "{message}"], **words})


@pytest.fixture
def playing(tmp_path: Path) -> Any:
    """Plays a scenario (None: the control) with the small agent on the embedded network."""
    command = ["{python}", "-S", "-E", "{here}/agent.py", "{llm_url}", "{session_dir}", "{message}"]
    words = {"name": "small", "wire": "anthropic", "command": command, "session_files": ["{session_dir}/*.json"]}
    marks = itertools.count()

    async def play(
        story: Scenario | None,
        network: Any = None,
        code: str = AGENT,
        shown: ControlFacts = CONTROL,
        cpu: Any = None,
        **more: Any,
    ) -> Any:
        (tmp_path / "agent.py").write_text(code)
        (tmp_path / "agent.yaml").write_text(yaml.safe_dump({**words, "recover_s": 0, **more}))
        store = RunStore(tmp_path / "run", tmp_path / "bodies")
        agent = load_spec(tmp_path / "agent.yaml")
        control, mark = shown if story else None, f"{tmp_path.name}-{os.getpid()}/{next(marks)}"
        job = Job(story or control_scenario(), agent, control, 0, mark, "embedded", tmp_path, words=mark)
        if network is not None:
            history, facts = await run(job, network, store, WallClock(), cpu)
        else:
            async with EmbeddedNetwork() as relay:
                history, facts = await run(job, relay, store, WallClock(), cpu)
        store.close()
        return history, facts

    return play


# ---- numbers and words of a run


@pytest.mark.parametrize(
    ("invariants", "limits", "time_scale", "turn_s"),
    [
        ({}, {}, 1, TURN_S),
        ({"turn_deadline": {"turn_s": 150}}, {}, 1, 150),
        ({"turn_deadline": {"turn_s": 150}}, {}, 30, 5),
        ({"turn_deadline": {"turn_s": 150}}, {"turn_s": 4}, 30, 4),
        ({}, {"turn_s": 300}, 1, 300),
        ({"turn_deadline": "off: too slow"}, {}, 1, TURN_S),
        ({"turn_deadline": {}}, {}, 1, TURN_S),
    ],
)
def test_a_turn_may_take_what_scenario_and_spec_allow(
    invariants: dict[str, Any], limits: dict[str, Any], time_scale: float, turn_s: float
):
    """The smaller of both; the stock 120 s only where neither says."""
    story = scenario(invariants=invariants, time_scale=time_scale)
    agent = spec(limits=limits, command=["x", "{message}", "{time_scale}"])
    assert Job(story, agent, CONTROL, 0, "m", "embedded").turn_s == turn_s


def test_an_agent_that_cannot_be_told_runs_at_speed_one():
    """Whatever the scenario wishes."""
    story = scenario(time_scale=50)
    assert Job(story, spec(), CONTROL, 0, "m", "embedded").time_scale == 1
    told = spec(env={"SCALE": "{time_scale}"})
    assert Job(story, told, CONTROL, 0, "m", "embedded").time_scale == 50


ALONE = replace(CONTROL, resumes=False)


@pytest.mark.parametrize(
    ("more", "control", "resumes"),
    [
        ({}, ALONE, False),
        ({}, replace(CONTROL, resumes=True), True),
        ({"resume": ["x", "{message}"]}, ALONE, False),
        ({"resume": ["x", "--continue", "{message}"]}, ALONE, True),
        ({"resume": ["x", "--continue", "{message}"]}, None, True),
    ],
)
def test_an_agent_keeps_a_conversation_if_its_control_run_did_or_its_spec_has_a_resume_of_its_own(
    more: dict[str, Any], control: ControlFacts | None, resumes: bool
):
    """The same command again says nothing."""
    agent = AgentSpec.model_validate({"name": "a", "wire": "anthropic", "command": ["x", "{message}"], **more})
    job = Job(control_scenario(), agent, control, 0, "m", "embedded")
    assert job.started(WallClock()).resumes is resumes


def test_a_faster_reply_paces_and_delays_less():
    """Its words stay."""
    reply = Reply((Text("a", pace_ms=300), ToolCall("t")), delay_s=60)
    assert faster(reply, 30) == Reply((Text("a", pace_ms=10), ToolCall("t")), delay_s=2)


def test_a_runs_words_come_from_its_seed_alone():
    """The same again for a replay, others for another seed; a nonce cannot be derived from a marker."""
    one, same, other = RunTokens(3), RunTokens(3), RunTokens(4)
    words = [(w.salt, w.marker(1), w.marker(2), w.nonce(1), w.nonce(2)) for w in (one, same, other)]
    assert words[0] == words[1] and not set(words[0]) & set(words[2])
    assert len(set(words[0])) == 5
    assert all(len(one.marker(turn)) <= 12 and one.marker(turn).isalnum() for turn in (1, 2, 99))
    assert len({one.nonce(turn) for turn in range(1, 100)}) == 99


# ---- runs


async def test_a_run_has_a_session_and_words_that_no_earlier_run_had(playing: Any, tmp_path: Path):
    """A database of the agent's own may keep what an earlier run of the same scenario and seed wrote."""
    code = AGENT + "\nopen(os.path.join(os.path.dirname(__file__), 'sessions'), 'a').write(sys.argv[4] + '\\n')"
    command = ["{python}", "-S", "-E", "{here}/agent.py", "{llm_url}", "{session_dir}", "{message}", "{session}"]
    runs = [(await playing(scenario(SAID), code=code, command=command))[0] for _ in range(2)]
    words = [{*turn.stimulus.text.split()} - {"Go", "on."} for history in runs for turn in history.turns[:1]]
    assert words[0].isdisjoint(words[1])
    one, _, other, _ = (tmp_path / "sessions").read_text().split()
    assert one != other


async def test_the_control_shows_what_the_agent_can_do(playing: Any):
    """Answers, runs commands, keeps its session, does not stream."""
    history, facts = await playing(None)
    assert facts.passed, facts.says
    assert facts.tools == {"bash"} and facts.shell and facts.resumes and not facts.streams
    assert facts.shape == MainShape(frozenset({"bash"}), facts.shape.system, marked=True)
    assert 0 < facts.start_up_s < 20 and facts.working_tools == ("shell",)
    assert len(history.turns) == 2


async def test_a_run_is_frame_agent_turns_recovery_and_end(playing: Any, tmp_path: Path):
    """And what is on disk is what is in memory."""
    history, facts = await playing(scenario(SAID, TOOLS))
    assert facts is None and history.sealed
    kinds = [event.kind for event in history.events]
    assert kinds[0] == RunStarted.kind and kinds[-1] == LagSeen.kind
    assert [outcome_of(turn, history).kind for turn in history.turns] == ["answered"] * 3
    assert [turn.recovery for turn in history.turns] == [False, False, True]
    started = history.first(AgentStarted)
    assert started.entry.endswith("agent.py") and started.entry_hash and started.pid
    assert started.began_s < history.turns[0].calls[0].at_s < started.at_s
    assert read(tmp_path / "run" / "history.jsonl").events == history.events


class BusyHarness:
    """A run queue in which only the harness waits, longer at each look."""

    counts, pressure = True, None

    def __init__(self) -> None:
        self.waited_s = 0.0

    def look(self) -> dict[str, list[float]]:
        return {}

    def own_wait_s(self) -> float:
        self.waited_s += 0.03
        return self.waited_s

    def pressure_s(self) -> None:
        return None


async def test_what_waits_for_the_agents_silence_counts_the_waits_of_the_harness(
    playing: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The harness plays the model and the chat: the agent is silent while it waits for their answers."""
    given = list[dict[str, Any]]()
    monkeypatch.setattr(runner, "AgentContext", lambda **words: given.append(words) or AgentContext(**words))
    queue: Any = BusyHarness()
    async with CpuWatch(tmp_path.name, queue) as watch:
        await playing(scenario(), cpu=watch)
    assert given[0]["waited_s"](0.0) > 0


async def test_a_tool_round_leaves_its_beacon_and_its_result_is_known(playing: Any):
    """Started and done in mid turn, and the next request carries it under its token."""
    history, _ = await playing(scenario(TOOLS))
    assert [(it.token, it.phase) for it in history.of(BeaconSeen)] == [("1.1.1", "started"), ("1.1.1", "done")]
    second = history.turns[0].calls[1].arrived
    assert second.step == 2 and [result.token for result in second.results] == ["1.1.1"]


DEAD_SHELL_AFTER_AN_ERROR = """\
import os, subprocess, sys
path = os.path.join(sys.argv[2], "session.json")
if os.path.exists(path) and "error" in open(path).read():
    subprocess.run = lambda *given, **more: subprocess.CompletedProcess(given, 1, "the shell is closed")
"""


async def test_the_recovery_message_needs_the_tools_that_worked_in_the_control_run(playing: Any):
    """An agent whose shell stays dead is red, though it answers."""
    shown, refused = replace(CONTROL, working_tools=("shell",)), [{"do": {"status": 529}, "times": "always"}]
    for code, runs, status in ((AGENT, 2, "pass"), (DEAD_SHELL_AFTER_AN_ERROR + AGENT, 0, "fail")):
        history, _ = await playing(scenario(faults=refused), code=code, shown=shown)
        assert [outcome_of(turn, history).kind for turn in history.turns] == ["surfaced", "answered"]
        assert len(list(history.of(BeaconSeen))) == runs
        assert check("tools_alive", history).status == status


async def test_session_files_are_kept(playing: Any, tmp_path: Path):
    """As they were at the end, with their hash."""
    history, _ = await playing(scenario())
    (kept,) = history.of(SessionKept)
    copied = tmp_path / "run" / "session" / kept.path
    assert copied.stat().st_size == kept.size and len(json.loads(copied.read_text())) == 4


async def test_an_agent_that_recovers_at_once_is_asked_once(playing: Any):
    """The fault is healed with its turn."""
    history, _ = await playing(scenario(faults=[{"do": {"status": 529}, "times": "always"}]))
    assert [outcome_of(turn, history).kind for turn in history.turns] == ["surfaced", "answered"]
    assert len(list(history.of(FaultFired))) == 1


async def test_after_an_error_that_it_surfaced_an_agent_gets_a_second_chance(playing: Any):
    """A breaker that is still open at the recovery message may have cooled down at the next; more is not asked."""
    history, _ = await playing(scenario(faults=[{"do": {"status": 529}}]), code=BREAKER + AGENT)
    assert [outcome_of(turn, history).kind for turn in history.turns] == ["surfaced", "surfaced", "answered"]


async def test_a_cut_reply_is_recorded_as_cut_and_its_fault_as_fired(playing: Any):
    """Ten bytes of the body and then FIN; the agent says so, and the next message is answered."""
    history, _ = await playing(scenario(faults=[{"at": {"byte": 10}, "do": {"cut": "fin"}}]))
    (fired,) = history.of(FaultFired)
    assert (fired.name, fired.call, fired.bytes) == ("cut", 1, 10)
    assert (history.calls[0].ended.how, history.calls[0].ended.bytes_delivered) == ("cut", 10)
    assert [outcome_of(turn, history).kind for turn in history.turns] == ["surfaced", "answered"]


async def test_a_slow_reply_that_is_cut_in_its_middle_is_recorded_as_cut(playing: Any):
    """A paced stream: the network ends it while the provider is still writing."""
    paced = {"user": "x", "model": [{"text": "word " * 40 + "{nonce}", "pace_ms": 5}]}
    history, _ = await playing(scenario(paced, faults=[{"at": {"byte": 10}, "do": {"cut": "fin"}}]))
    assert (history.calls[0].ended.how, history.calls[0].ended.bytes_delivered) == ("cut", 10)
    assert history.calls[0].hung_up is None


async def test_pages_are_served_through_a_link_of_their_own(playing: Any):
    """The script knows their address, and each asking is told."""
    fetch = "python3 -c \"import urllib.request as u; print(u.urlopen('{web_url}/a').read())\""
    model = [{"tool": "shell", "args": {"command": fetch}}, {"text": "Done {nonce}"}]
    history, _ = await playing(scenario({"user": "x", "model": model}, web={"/a": {"text": "rain"}}))
    assert [(it.path, it.status) for it in history.of(PageAsked)] == [("/a", 200)]


async def test_a_command_that_does_not_exist_is_our_trouble_in_words(playing: Any):
    """An error of the run, never an exception."""
    history, _ = await playing(scenario(), command=["no-such-program-here", "{message}"])
    (trouble,) = history.of(Trouble)
    assert "no-such-program-here" in trouble.what


class DyingNetwork(EmbeddedNetwork):
    """A network that is found dead at the first look."""

    async def alive(self) -> bool:
        return False


async def test_a_network_that_dies_in_mid_run_ends_it_as_an_error(playing: Any, tmp_path: Path):
    """The agent is stopped, the rest is not played."""
    slow = {"user": "x", "model": [[{"text": "Done {nonce}"}, {"delay_s": 30}]]}
    async with DyingNetwork() as network:
        history, _ = await playing(scenario(slow), network)
    assert [trouble.what for trouble in history.of(Trouble)] == ["the network failed: it does not answer any more"]
    assert len(history.turns) == 1 and not list(history.of(TurnEnded))


# ---- who ended a reply


STREAMED = """\
events = [json.loads(line[6:]) for line in reply if line.startswith(b"data: ")]
            if events[-1]["type"] != "message_stop":
                raise OSError("the stream has no end")
            text = "".join(event["delta"].get("text", "") for event in events if "delta" in event)
            said = [{"type": "text", "text": text}]"""
SLOW: Any = {"user": "x", "model": [[{"text": "Done {nonce}"}, {"delay_s": 30}]]}


async def test_a_link_that_goes_down_while_a_reply_is_waited_for_cut_it(playing: Any):
    """The agent did not hang up; and the link is up again for the next message."""
    history, _ = await playing(scenario(SLOW, faults=[{"at": {"after_s": 2.5}, "do": {"down": "forever"}}]))
    (first, *_) = history.calls
    assert first.ended is not None and (first.ended.how, first.hung_up) == ("cut", None)
    assert [outcome_of(turn, history).kind for turn in history.turns] == ["surfaced", "answered"]


@pytest.mark.parametrize("do", ["refuse", {"down": "forever"}])
async def test_a_link_that_closes_in_mid_stream_is_open_for_the_next_message(playing: Any, do: Any):
    """Its own gate dies with the connection; up to the event that it names all has arrived."""
    code = AGENT.replace('"max_tokens": 999,', '"max_tokens": 999, "stream": True,').replace(
        'said = json.load(reply)["content"]', STREAMED
    )
    history, _ = await playing(scenario(faults=[{"at": {"event": 3}, "do": do}]), code=code)
    (fired,) = history.of(FaultFired)
    ended = history.calls[0].ended
    assert (fired.call, ended.how, history.calls[0].hung_up) == (1, "cut", None)
    assert fired.bytes == ended.bytes_delivered > 0
    assert [outcome_of(turn, history).kind for turn in history.turns] == ["surfaced", "answered"]


# ---- the agent's own limit of output tokens


def allowing(tokens: int) -> str:
    """The small agent with a limit of its own."""
    return AGENT.replace('"max_tokens": 999', f'"max_tokens": {tokens}')


async def test_a_control_run_names_a_limit_that_is_too_low_for_its_answer(playing: Any):
    """The nonce stands last: without it an answer can't be recognised."""
    _, facts = await playing(None, code=allowing(5))
    assert not facts.passed
    assert facts.says == (
        "call 1 allows 5 output tokens (max_tokens), and the scripted reply needs 7: let the agent allow more"
    )


async def test_an_answer_that_the_agents_own_limit_cuts_is_not_blamed_on_it(playing: Any):
    """The run is an error that names the limit and what the reply needs; a reply that fits is judged as ever."""
    story = scenario({"user": "Go on.", "model": [{"text": "A long story, " * 4 + "{nonce}"}]})
    history, _ = await playing(story, code=allowing(12))
    (call, recovery) = history.calls
    assert (call.ended.stop, call.ended.output_tokens, call.ended.tokens_needed) == ("max_tokens", 12, 17)
    assert call.ended.text_delivered == ("A long story, " * 4)[:48]
    assert (recovery.arrived.max_tokens, recovery.ended.stop, recovery.ended.tokens_needed) == (12, "end", 0)
    judgement = judge(history, story, spec(), CONTROL)
    said = "call 1 allows 12 output tokens (max_tokens), and the scripted reply needs 17"
    assert (judgement.verdict, judgement.says) == ("error", f"turn 1: {said}, so its answer cannot be judged")
    story = scenario()
    history, _ = await playing(story, code=allowing(12))
    assert judge(history, story, spec(), CONTROL).verdict == "pass"


async def test_a_reply_that_the_fault_max_tokens_cuts_is_judged(playing: Any):
    """The agent is given a beginning of the answer, and shows it as the whole."""
    story = scenario(
        {"user": "Go on.", "model": [{"text": "A long story, " * 4 + "{nonce}"}]}, faults=[{"do": {"max_tokens": 30}}]
    )
    history, _ = await playing(story)
    judgement = judge(history, story, spec(), CONTROL)
    assert (judgement.verdict, judgement.violated) == ("fail", ("truncation_noticed",))


# ---- what a wire cannot carry


async def test_an_agent_that_does_not_stream_anthropic_is_not_played_with_broken_arguments(
    playing: Any, tmp_path: Path
):
    """Its control run shows the wire and that it does not stream; played all the same, it would be blamed."""
    garbage = load_scenario(stock_folder() / "catalogue" / "garbage-arguments.yaml").scenario
    _, facts = await playing(None)
    assert (facts.passed, facts.streams) == (True, False)
    why = why_skipped(garbage, load_spec(tmp_path / "agent.yaml"), facts)
    assert why == "the tool call's arguments are no JSON object, and anthropic without streaming carries only objects"
    command = 'call["input"]["command"]'
    careful = AGENT.replace(command, f'{command} if isinstance(call["input"], dict) else "false"')
    history, _ = await playing(garbage, code=careful)
    judgement = judge(history, garbage, spec(), CONTROL)
    assert judgement.violated == ("session_recovers",) and "the session is bricked" in judgement.says


# ---- planted sessions


async def test_a_planted_session_is_taken_up_and_a_later_line_is_found_by_its_turn(playing: Any, tmp_path: Path):
    """The first message goes to a session that exists, so it is resumed; the history says what was planted."""
    resumed = ["{python}", "-S", "-E", "{here}/agent.py", "{llm_url}", "{session_dir}", "resumed {message}"]
    (tmp_path / "start.json").write_text('[{"role": "user", "content": "long ago"}')
    (tmp_path / "rest.json").write_text("]")
    turns = [{**SAID, "append": "rest.json"}, SAID]
    history, _ = await playing(
        scenario(*turns, session="start.json"), resume=resumed, session_file="{session_dir}/session.json"
    )
    planted = [(event.turn, event.path, event.lines) for event in history.of(SessionPlanted)]
    assert planted == [(0, "session/session.json", 1), (1, "session/session.json", 1)]
    assert [outcome_of(turn, history).kind for turn in history.turns] == ["answered"] * 3
    first = json.loads((tmp_path / "bodies" / history.calls[0].arrived.body_hash).read_text())["messages"]
    assert first[0]["content"] == "long ago"
    assert first[1]["content"].startswith("resumed ")
