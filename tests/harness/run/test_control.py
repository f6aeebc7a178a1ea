"""The control run: what an agent shows without any fault, and which scenarios that rules out."""

from dataclasses import replace
from typing import Any

import pytest

from wedgehog.fake_llm.script.main_call import MainShape
from wedgehog.harness.agents.callables.callable_host import STACK_BELOW
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.record.events.call import CallUnscripted
from wedgehog.harness.record.events.run import AskerSeen, HostRefused, Trouble
from wedgehog.harness.record.events.service import ChatAsked
from wedgehog.harness.record.events.turn import HangSeen
from wedgehog.harness.record.history import History
from wedgehog.harness.run.control import ControlFacts, control_scenario, read_control
from wedgehog.harness.run.control_failure import path_hint
from wedgehog.harness.run.playable_part import as_far_as
from wedgehog.harness.run.skip_reasons import why_skipped
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.testing import HistoryBuilder

SHAPE = MainShape(frozenset({"bash", "read"}))
MINUTES = {"tags": ["minutes"], "invariants": {"turn_deadline": {"turn_s": 600}}}
SHOWN = ControlFacts(True, tools=frozenset({"bash"}), shell=True, streams=True, resumes=True)
COMMAND = {"command": ["x", "{message}"]}
WRONG_SHAPE = {"faults": [{"do": "wrong_shape"}]}
WRONG_PLAN = {"faults": [{"at": {"on": "background"}, "do": "wrong_shape"}]}
ONE_USER = {"one_user": True, "turns": [{"user": "x", "session": "A"}, {"user": "y", "session": "B"}]}
CHAT = {"chat": {"start": ["x"]}}
STOPPED_BEHIND = {
    "turns": [{"user": "x", "model": [{"text": "y"}]}, {"user": "z", "during": {"phase": "middle"}}],
    "faults": [{"do": "abort"}],
}
AT_ONCE = {"turns": [{"user": "x"}, {"user": "y", "at_once": True}], "faults": [{"do": "abort"}]}
WRITES = {"turns": [{"user": "Hi.", "model": [{"tool": "send_message", "args": {"text": "Hello"}}]}]}
PAGE = {"turns": [{"user": "Read it.", "model": [{"tool": "fetch", "args": {"url": "{web_url}/a"}}]}]}
QUESTION = {"turns": [{"user": "Paint it.", "model": [{"tool": "ask_user", "args": {"question": "Which colour?"}}]}]}


def agent(**words: Any) -> AgentSpec:
    command = {} if {"http", "chat", "page"} & words.keys() else COMMAND
    return AgentSpec.model_validate({"name": "a", "wire": "anthropic", **command, **words})


def scenario(**words: Any) -> Scenario:
    return Scenario.model_validate({"name": "a", "why": "w", "turns": [{"user": "x"}], **words})


def two_turns(sees: Any = None, **how: Any) -> HistoryBuilder:
    """A text message, then a tool round."""
    tell = HistoryBuilder(**how)
    tell.message()
    tell.answer_step(1)
    tell.end()
    tell.message()
    (token,) = tell.reply(tell.ask(1, sees=sees), tools=[True])
    call = tell.ask(2, results=[tell.runs(token)], sees=sees)
    tell.reply(call, f"Done {tell.nonce}")
    return tell.end()


def read(history: History, answered_by: int | None = 1, shell: bool = True) -> ControlFacts:
    return read_control(history, {1: SHAPE}, shell, answered_by)


def test_the_control_is_a_text_message_and_a_tool_round():
    """And it harms nothing."""
    control = control_scenario()
    assert (len(control.turns), control.faults, control.tools_called) == (2, [], {"shell"})


def test_what_it_shows_is_read_from_the_call_that_was_answered():
    """The shape and the tools of the main call, whether it streams and resumes, and the start-up time."""
    facts = read(two_turns().seal())
    assert facts.passed and facts.says == ""
    assert (facts.shape, facts.tools, facts.shell) == (SHAPE, {"bash", "read"}, True)
    assert facts.streams and facts.resumes
    assert facts.start_up_s == pytest.approx(0.01)


@pytest.mark.parametrize(("says", "hidden"), [("", False), ("I have heard of it.", True)])
def test_an_agent_whose_later_answer_is_not_the_models_is_known(says: str, hidden: bool):
    """It has the model put the message in other words first, and asks with these: nothing there can be judged."""
    tell = HistoryBuilder()
    for turn in (1, 2):
        tell.message()
        tell.answer_step(1)
        tell.end(says) if says and turn == 2 else tell.end()
    assert read(tell.seal()).later_hidden is hidden


@pytest.mark.parametrize(("asked", "worker"), [((), False), ((7,), False), ((7, 8, 9), False), ((7, 8, 7), True)])
def test_a_process_below_that_asks_again_and_again_is_a_worker(asked: tuple[int, ...], worker: bool):
    """A program that asks once and ends, such as curl in a shell script, is none."""
    tell = two_turns()
    for pid in asked:
        tell.add(AskerSeen(pids=(pid,)))
    assert read(tell.seal()).worker is worker


def test_the_usual_start_is_that_of_the_slowest_message():
    """An agent may read a long history before its first request: that is no delay by a fault."""
    tell = HistoryBuilder()
    for waits_s in (0.2, 2.5):
        tell.message()
        tell.wait(waits_s)
        tell.answer_step(1)
        tell.end()
    assert read(tell.seal()).start_up_s == pytest.approx(2.51)


def test_what_it_does_not_show_is_no_failure():
    """No stream, no shell, no earlier turn in the second one's request."""
    facts = read(two_turns(sees=[2], stream=False).seal(), shell=False)
    assert facts.passed
    assert (facts.streams, facts.resumes, facts.shell) == (False, False, False)


def spoken(*systems: str) -> dict[int, MainShape]:
    """Shapes of calls without tools, by the number of the call."""
    return {number: MainShape(system=system) for number, system in enumerate(systems, start=1)}


@pytest.mark.parametrize(
    ("systems", "kept"),
    [
        (("a", "a", "a"), "a"),
        (("a", "b", "c"), ""),
        (("a", "b", "a"), "a"),
        (("a",), "a"),
    ],
)
def test_a_system_text_that_no_later_call_repeats_is_no_mark_of_the_main_call(systems: tuple[str, ...], kept: str):
    """Some agents tell the model the time, in words; a call of which no shape is known says nothing."""
    facts = read_control(two_turns().seal(), spoken(*systems), False, 1)
    assert facts.shape is not None and facts.shape.system == kept


@pytest.mark.parametrize(
    ("other", "plans"),
    [(MainShape(structured=True), True), (MainShape(frozenset({"title"})), False), (SHAPE, False)],
)
def test_a_background_call_by_a_schema_is_a_plan(other: MainShape, plans: bool):
    """Its reply can have another shape than it asks for."""
    assert read_control(two_turns().seal(), {1: SHAPE, 2: other}, False, 1).plans is plans


@pytest.mark.parametrize(
    ("shapes", "background"),
    [
        ({1: SHAPE, 2: SHAPE, 3: SHAPE}, False),
        ({1: SHAPE, 2: MainShape(frozenset({"read", "bash", "more"}), "another prompt")}, False),
        ({1: SHAPE, 2: MainShape(frozenset({"title"}))}, True),
        ({1: SHAPE, 2: MainShape()}, True),
        ({1: SHAPE, 2: MainShape(structured=True)}, True),
        (spoken("a", "b", "c"), False),
        (spoken("a", "a", "titles"), True),
    ],
)
def test_calls_that_do_not_look_like_the_main_one_are_background(shapes: dict[int, MainShape], background: bool):
    """One is enough; a system text that is another one in every call is none."""
    assert read_control(two_turns().seal(), shapes, False, 1).background is background


LOOKED_UP = MainShape(frozenset({"shell", "weather", "mail", "maps"}), "s")


@pytest.mark.parametrize(
    ("brought", "third", "main"),
    [
        (
            MainShape(frozenset({"shell", "notes", "music", "news"}), "s"),
            MainShape(frozenset({"shell", "x"}), "s"),
            True,
        ),
        (MainShape(frozenset({"notes", "music"}), "s"), MainShape(frozenset({"x"}), "s"), True),
        (MainShape(frozenset({"notes", "music"}), "s"), MainShape(frozenset({"x"}), "titles"), False),
        (MainShape(frozenset({"notes", "music"}), "other"), MainShape(frozenset({"x"}), "s"), False),
        (LOOKED_UP, MainShape(frozenset({"shell"}), "s"), False),
    ],
    ids=["one tool is always there", "none is", "a title", "another agent", "the same tools each time"],
)
def test_main_calls_whose_tools_depend_on_the_message_are_known(brought: MainShape, third: MainShape, main: bool):
    """By what they have in common: the call with the result of the tool is a main call, whatever it offers."""
    facts = read_control(two_turns().seal(), {1: LOOKED_UP, 2: brought, 3: brought}, True, 1)
    assert facts.shape is not None and facts.shape.alike(third) is main
    assert facts.tools == LOOKED_UP.tools


NO_TOOLS = MainShape(system="s")


@pytest.mark.parametrize(
    ("second", "background"),
    [(MainShape(frozenset({"bash"}), "s"), False), (MainShape(frozenset({"bash"}), "other"), True)],
    ids=["the same agent", "another one"],
)
def test_a_call_that_offers_tools_for_its_message_only_is_a_main_call(second: MainShape, background: bool):
    """The agent offers none for the first message. The call's words are the answer, and it has the same system text."""
    tell = HistoryBuilder()
    for _ in range(2):
        tell.message()
        tell.answer_step(1)
        tell.end()
    facts = read_control(tell.seal(), {1: NO_TOOLS, 2: second}, False, 1)
    assert facts.background is background
    assert (facts.tools, facts.at_times) == (frozenset(), {"bash"})
    why = "the agent advertises no tool shell for its first message, and bash only later"
    calls_it = scenario(turns=[{"user": "x", "model": [{"tool": "shell"}]}])
    assert why_skipped(calls_it, agent(), facts) == why


@pytest.mark.parametrize("after", [0, 1, 2])
def test_it_is_counted_how_many_main_calls_come_before_the_first_background_call(after: int):
    """A title comes with the first answer, a summary of a long conversation later."""
    other = MainShape(frozenset({"nothing of it"}))
    shapes = dict(enumerate([SHAPE] * after + [other] + [SHAPE] * (2 - after), start=1))
    answered_by = next(number for number, shape in shapes.items() if shape is SHAPE)
    facts = read_control(two_turns().seal(), shapes, False, answered_by)
    assert (facts.background, facts.background_after) == (True, after)


@pytest.mark.parametrize(("at", "later"), [(1, False), (3, True)])
def test_a_title_comes_in_the_first_turn_and_a_check_in_each(at: int, later: bool):
    """Turn 1 makes the calls 1 and 2 here, and turn 2 makes 3 and 4."""
    tell = HistoryBuilder()
    for _ in range(2):
        tell.message()
        tell.reply(tell.ask(1, background="title"), "A title")
        tell.answer_step(1)
        tell.end()
    other = MainShape(frozenset({"nothing of it"}))
    shapes = {number: other if number == at else SHAPE for number in (1, 2, 3, 4)}
    facts = read_control(tell.seal(), shapes, False, 2)
    assert (facts.background_first, facts.background_later) == (not later, later)


@pytest.mark.parametrize(
    ("shows", "why"),
    [
        ((), "the tool was not run, and no request"),
        (("started",), "the tool was run, and no request"),
        (("started", "result"), ""),
    ],
)
def test_a_tool_whose_result_never_came_rules_tools_out(shows: tuple[str, ...], why: str):
    """What the control's tool turn does not show cannot be judged."""
    tell = HistoryBuilder()
    tell.message()
    tell.answer_step(1)
    tell.end()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    result = tell.runs(token) if shows else None
    tell.reply(tell.ask(2, results=[result] if result and "result" in shows else []), f"Done {tell.nonce}")
    facts = read(tell.end().seal())
    assert why in facts.no_tool_turn and bool(facts.no_tool_turn) is bool(why)
    calls = scenario(turns=[{"user": "x", "model": [{"tool": "shell", "args": {"command": "ls"}}, {"text": "y"}]}])
    assert why_skipped(calls, agent(), facts) == facts.no_tool_turn
    assert why_skipped(scenario(), agent(), facts) == ""


@pytest.mark.parametrize("in_text", [True, False])
def test_an_empty_result_needs_the_id_of_its_call(in_text: bool):
    """An agent that tells results in words cannot be followed where a command prints nothing."""
    tell = HistoryBuilder()
    tell.message()
    tell.answer_step(1)
    tell.end()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    result = replace(tell.runs(token), in_text=in_text)
    tell.reply(tell.ask(2, results=[result]), f"Done {tell.nonce}")
    facts = read(tell.end().seal())
    silent, loud = (
        scenario(turns=[{"user": "x", "model": [{"tool": "shell", "args": {"command": it}}, {"text": "y"}]}])
        for it in ("true", "ls")
    )
    assert bool(why_skipped(silent, agent(), facts)) is in_text
    assert why_skipped(loud, agent(), facts) == ""


def test_a_result_that_the_provider_misses_is_the_agents_failure():
    """It loses results without any fault: its runs are played, and each shows the refusal."""
    tell = HistoryBuilder()
    tell.message()
    tell.answer_step(1)
    tell.end()
    tell.message()
    tell.reply(tell.ask(1), tools=[True])
    tell.refuse(tell.ask(1), 400, pairing=True, scripted=False)
    assert read(tell.end("Error: 400").seal()).no_tool_turn == ""


def test_refusals_that_happen_without_a_fault_are_remembered():
    """They excuse the same refusal under a fault; scripted ones are ours."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(), 400, scripted=False)
    tell.refuse(tell.ask(), 429)
    tell.answer_step(1)
    assert read(tell.end().seal(), 1).refusals == {"status 400"}


def test_trouble_of_ours_is_said_before_all_else():
    """It is not the agent's fault."""
    history = History(events=[*two_turns().seal().events])
    history.add(Trouble(what="no such program: x"))
    facts = read(history.seal(), None)
    assert (facts.passed, facts.says) == (False, "no such program: x")


def test_an_agent_that_never_calls_the_model_is_asked_about_its_address():
    """Once it ended well, or never within its time; what it said last is repeated."""
    tell = HistoryBuilder()
    tell.message()
    ended_well = read(tell.end("Hello", exit_code=0).seal(), None).says
    assert ended_well.startswith(
        "no request for the model arrived, and the agent ended with exit code 0: does the agent use {llm_url}?"
    )
    tell = HistoryBuilder()
    tell.message()
    tell.wait(61).start_missed()
    late = read(tell.end("", error="waiting for localhost:1234", exit_code=-2, ended="deadline").seal(), None).says
    asked = "no request for the model arrived within 60 s: does the agent use {llm_url}? Its last words: "
    assert late == asked + "waiting for localhost:1234"


TRACE = "Traceback (most recent call last):\n" + "  File 'x.py', line 1, in <module>\n" * 20


OUR_WORDS = "the process ended with exit code 1"
"""What its user sees of a process that stays and has ended."""


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (
            {"exit_code": 3, "error": "no config"},
            "it said 'no config': no request for the model arrived, and the agent ended with exit code 3",
        ),
        (
            {"exit_code": 2, "error": ""},
            "no request for the model arrived, and the agent ended with exit code 2. It said nothing.",
        ),
        (
            {"exit_code": -11, "error": ""},
            "no request for the model arrived, and the agent was ended by SIGSEGV. It said nothing.",
        ),
        (
            {"exit_code": -99, "error": ""},
            "no request for the model arrived, and the agent was ended by signal 99. It said nothing.",
        ),
        (
            {"exit_code": None, "status": 500, "error": "oops"},
            "it said 'oops': no request for the model arrived, and the service replied with HTTP 500",
        ),
        (
            {"exit_code": None, "raised": "ImportError: hat", "error": "ImportError: hat"},
            "it said 'ImportError: hat': no request for the model arrived, and talking to the agent failed",
        ),
        (
            {"exit_code": 1, "error": "ModuleNotFoundError: hat"},  # (its name holds ENOTFOUND, without regard to case)
            "it said 'ModuleNotFoundError: hat': no request for the model arrived, and the agent ended with "
            "exit code 1",
        ),
        (
            {"exit_code": 1, "raised": OUR_WORDS, "error": OUR_WORDS, "stderr": "TypeError: hat"},
            "it said 'TypeError: hat': no request for the model arrived, and the agent ended with exit code 1",
        ),
    ],
)
def test_an_agent_that_ends_at_once_is_quoted(end: dict[str, Any], said: str):
    """Its last words are the cause, so they come first: it is not its address that is wrong."""
    tell = HistoryBuilder()
    tell.message()
    says = read(tell.end("", **end).seal(), None).says
    assert says == said
    assert "{llm_url}" not in says


@pytest.mark.parametrize(
    "words",
    [
        "APIConnectionError: Connection error.",
        "The api_key client option must be set",
        "Error: getaddrinfo ENOTFOUND api.example.com",
    ],
)
def test_an_agent_that_ends_for_want_of_a_connection_or_a_key_is_asked_for_its_address(words: str):
    """It may call another address than the spec's, or want a variable that `env` does not set."""
    tell = HistoryBuilder()
    tell.message()
    says = read(tell.end("", exit_code=1, error=words).seal(), None).says
    assert says.startswith(f"it said {words!r}: no request") and says.endswith(": does the agent use {llm_url}?")


def test_an_agent_that_asked_for_a_host_that_it_does_not_get_is_told_which():
    """The spec's author may have forgotten it, or the agent does not accept our certificate."""
    tell = HistoryBuilder()
    tell.message()
    tell.add(HostRefused(host="api.example.com", why="not among the spec's hosts"))
    said = read(tell.end("", error="fetch failed", exit_code=1).seal(), None).says
    assert said.startswith(
        "it asked for api.example.com (not among the spec's hosts): no request for the model arrived, "
    )
    assert said.endswith("exit code 1. Its last words: fetch failed")


def test_of_a_trace_the_exception_is_quoted():
    """It stands behind it; of very long words the end is told."""
    tell = HistoryBuilder()
    tell.message()
    says = read(tell.end("", error=TRACE + "ModuleNotFoundError: no module 'hat'", exit_code=1).seal(), None).says
    assert says.startswith("it said \"ModuleNotFoundError: no module 'hat'\": no request")
    tell = HistoryBuilder()
    tell.message()
    says = read(tell.end("", error="chatter " * 100 + "the end", exit_code=1).seal(), None).says
    assert says.startswith("it said '… chatter") and "chatter the end'" in says and len(says) < 450


def test_a_hang_before_any_request_says_first_what_it_waits_for():
    """In virtual time that is known to the line; the words of our own stop are not repeated."""
    tell = HistoryBuilder()
    tell.message()
    tell.wait(61).start_missed()
    tell.add(HangSeen(turn=1, says="the agent's call: Event.wait", file="hang-1.json"))
    said = read(
        tell.end("", stderr=f"{STACK_BELOW}\n{TRACE}", exit_code=None, raised="KeyboardInterrupt").seal(), None
    ).says
    assert said == (
        "the agent's call: Event.wait: no request for the model arrived within 60 s: does the agent use {llm_url}?"
    )


def test_a_hang_after_an_answered_request_says_what_it_waits_for():
    """The place of its answer is not asked about: it gave none."""
    tell = HistoryBuilder()
    tell.message()
    tell.answer_step(1)
    tell.wait(120).deadline()
    tell.add(HangSeen(turn=1, says="the agent's call: Event.wait", file="hang-1.json"))
    facts = read(tell.end("", ended="deadline").seal(), None)
    assert facts.says.startswith("the agent's call: Event.wait: its turn did not end: no answer")


def test_a_message_that_the_chat_refused_is_the_reason():
    """A bot whose text does not fit its `parse_mode` waits for the next message, and its user has read nothing."""
    tell = HistoryBuilder()
    tell.message()
    tell.answer_step(1)
    tell.add(ChatAsked(what="refused", text="Bad Request: can't parse entities"))
    tell.wait(120).deadline()
    tell.add(HangSeen(turn=1, says="it held a connection to chat", file="hang-1.json"))
    facts = read(tell.end("", ended="deadline").seal(), None)
    assert facts.says == "the chat refused its message: Bad Request: can't parse entities"


def test_the_trace_of_our_own_stop_is_not_quoted():
    """An agent that never asked is interrupted: what it said before that is what helps."""
    tell = HistoryBuilder()
    tell.message()
    tell.wait(61).start_missed()
    error = f"waiting for the moon\n{TRACE}KeyboardInterrupt"
    says = read(tell.end("", error=error, exit_code=-2, ended="deadline").seal(), None).says
    assert says.endswith("Its last words: waiting for the moon")


def test_what_a_function_raises_when_we_stop_it_is_not_its_last_word():
    """It stands at its `error` too; what it printed before that is its own."""
    for printed, said in [("", "does the agent use {llm_url}?"), ("waiting", "Its last words: waiting")]:
        tell = HistoryBuilder()
        tell.message()
        tell.wait(61).start_missed()
        ours: Any = {"error": "KeyboardInterrupt", "raised": "KeyboardInterrupt", "ended": "deadline"}
        says = read(tell.end(printed, stderr=f"{TRACE}KeyboardInterrupt", **ours).seal(), None).says
        assert says.endswith(said)


def test_a_request_that_the_provider_refuses_is_said_with_its_words():
    """A bad tool schema, a missing field."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(), 400, scripted=False)
    facts = read(tell.fails().seal(), None)
    assert facts.says.startswith("the provider refused its request without any fault: 400 status 400")


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("/chat/completions", "it lacks /v1: write {llm_url}/v1 in the spec"),
        ("/v1/v1/messages", "it has /v1 twice: write {llm_url} without /v1 in the spec"),
        ("/v1/chat/completion", ""),
        ("/v1beta/openai/messages", ""),
    ],
)
def test_a_path_without_its_version_or_with_two_is_named(path: str, hint: str):
    """Some SDKs add /v1 to the base URL, and others do not."""
    assert hint in path_hint(path) and bool(hint) is bool(path_hint(path))


def test_an_answer_without_the_models_words_is_asked_about_its_place():
    """Perhaps `answer:` names the wrong one."""
    tell = HistoryBuilder()
    tell.message()
    tell.answer_step(1)
    facts = read(tell.end("Something else").seal(), None)
    assert "its answer did not hold the model's words" in facts.says and "`answer:`" in facts.says
    asks = read_control(tell.seal(), {1: MainShape(structured=True)}, False, None)
    assert "name the property that it shows, `finish: {arg: …}`" in asks.says and "finish" not in facts.says


def test_a_request_that_does_not_fit_is_said():
    """The script has no reply for it."""
    tell = HistoryBuilder()
    tell.message()
    tell.ask()
    history = History(events=tell.fails().seal().events)
    history.add(CallUnscripted(call=1, why="turn 1 step 2"))
    assert read(history.seal(), None).says == "a request did not fit: turn 1 step 2"


def test_a_control_that_never_began_says_so_too():
    """A history without any turn."""
    assert read(History().seal(), None).passed is False
    assert read(History().seal(), None).says


READS, EDITS = {"tool": "read_file"}, {"tool": "edit_file", "args": {"path": "a.txt", "old": "a", "new": "b"}}
TEXT, PICTURE = ({**READS, "args": {"path": path}} for path in ("a.txt", "a.png"))
PATCHES = replace(SHOWN, file_tools=frozenset({"write_file", "edit_file", "view_picture"}))
"""As Codex: it reads by commands."""


@pytest.mark.parametrize(
    ("calls", "facts", "why"),
    [
        ([TEXT], replace(SHOWN, file_tools=frozenset({"read_file"})), ""),
        ([TEXT], PATCHES, "the agent advertises no tool read_file"),
        ([TEXT, EDITS], PATCHES, ""),
        ([TEXT, EDITS], replace(PATCHES, shell=False), "the agent advertises no tool read_file"),
        ([TEXT, EDITS], SHOWN, "the agent advertises no tool edit_file"),
        ([PICTURE], PATCHES, ""),
        ([PICTURE], SHOWN, "the agent advertises no tool read_file"),
        ([PICTURE, TEXT], PATCHES, "the agent advertises no tool read_file"),
    ],
)
def test_an_agent_that_reads_files_by_commands_can_edit_them(calls: list[Any], facts: ControlFacts, why: str):
    """A story of reading alone would be one about its shell, but a tool for pictures is enough for pictures."""
    turns = [{"user": "x", "model": [*calls, {"text": "y"}]}]
    played = scenario(turns=turns)
    assert why_skipped(played, agent(), facts) == why


BESIDE = {"faults": [{"at": {"on": "background"}, "do": "cut"}], "turns": [{"user": "a", "model": [{"text": "b"}]}]}


@pytest.mark.parametrize(
    ("words", "facts", "spec", "why"),
    [
        ({}, ControlFacts(True), {}, ""),
        ({"turns": [{"user": "x", "model": [{"tool": "shell"}]}]}, SHOWN, {}, ""),
        (
            {"turns": [{"user": "x", "model": [[{"tool": "web"}, {"tool": "shell"}]]}]},
            ControlFacts(True),
            {},
            "the agent advertises no tool shell, web",
        ),
        (
            {"turns": [{"user": "x", "model": [{"tool": "shell"}]}]},
            ControlFacts(True, tools=frozenset({"shell"})),  # so it is called, and takes no command
            {},
            "the agent advertises no tool shell",
        ),
        ({"faults": [{"at": {"event": 1}, "do": "cut"}]}, SHOWN, {}, ""),
        ({"faults": [{"at": {"event": 1}, "do": "cut"}]}, ControlFacts(True), {}, "the agent does not stream"),
        ({"turns": [{"wake_up": {}}]}, SHOWN, {}, "the spec does not say how its own timer fires"),
        ({"turns": [{"wake_up": {}}]}, SHOWN, {"wake_up": ["x", "--tick"]}, ""),
        ({"faults": [{"link": "channel", "do": "give_up"}]}, SHOWN, {}, "no front end that could give up"),
        (
            {"faults": [{"link": "channel", "do": "give_up"}]},
            SHOWN,
            {"http": {"base": "http://127.0.0.1:1", "url": "/"}},
            "",
        ),
        ({"faults": [{"link": "channel", "do": "give_up"}]}, SHOWN, {"page": {"start": ["x", "{port}"]}}, ""),
        ({"faults": [{"link": "channel", "do": "down"}]}, SHOWN, {}, "its user does not sit in front of a page (page)"),
        ({"browser_clock_s": 300}, SHOWN, {}, "its user does not sit in front of a page (page)"),
        ({"turns": [{"user": "x", "loads_again": True}]}, SHOWN, {}, "its user does not sit in front of a page (page)"),
        (ONE_USER, SHOWN, {}, "its user does not sit in front of a page (page)"),
        (ONE_USER, SHOWN, {"page": {"start": ["x", "{port}"]}}, "how its user begins another conversation"),
        (ONE_USER, SHOWN, {"page": {"start": ["x", "{port}"], "new_chat": "#new"}}, ""),
        (
            {"turns": [{"user": "x", "model": [{"text": "y"}]}, {"user": "z", "during": {"phase": "middle"}}]},
            SHOWN,
            {"page": {"start": ["x", "{port}"]}},
            "the user of a page waits for the answer",
        ),
        ({"faults": [{"do": "abort"}]}, SHOWN, {}, ""),
        (
            {"faults": [{"do": "abort"}]},
            SHOWN,
            CHAT,
            "the spec names no message that stops a turn (chat: abort)",
        ),
        (STOPPED_BEHIND, SHOWN, {"chat": {**CHAT["chat"], "abort": "/stop"}}, "a stop in a chat may be meant for"),
        (STOPPED_BEHIND, SHOWN, {}, ""),
        (AT_ONCE, SHOWN, {}, "a message has a process of its own"),
        (AT_ONCE, SHOWN, {"chat": {**CHAT["chat"], "abort": "/stop"}}, ""),
        ({"faults": [{"at": {"on": "background"}, "do": "cut"}]}, SHOWN, {}, "the agent makes no background calls"),
        ({"faults": [{"at": {"on": "background"}, "do": "cut"}]}, ControlFacts(True, background=True), {}, ""),
        (BESIDE, replace(SHOWN, background=True, background_after=1), {}, ""),  # a title, after the first answer
        (BESIDE, replace(SHOWN, background=True, background_after=3), {}, "background calls later in a conversation"),
        (
            BESIDE,  # a title, when a session is continued
            replace(SHOWN, background=True, background_after=1, background_first=False),
            {},
            "background calls later in a conversation",
        ),
        (
            {**BESIDE, "turns": [{"user": "a", "model": [{"tool": "shell"}, {"tool": "shell"}, {"text": "b"}]}]},
            replace(SHOWN, background=True, background_after=3),
            {},
            "",
        ),
        ({"faults": [{"at": {"on": "main"}, "do": "cut"}]}, SHOWN, {}, ""),
        ({"session": "planted/a.jsonl"}, SHOWN, {}, "the spec does not say where a session lies (session_file)"),
        ({"turns": [{"user": "a", "append": "planted/a.jsonl"}]}, SHOWN, {}, "(session_file)"),
        ({"session": "planted/a.jsonl"}, SHOWN, {"session_file": "{session_dir}/a.jsonl"}, ""),
        (MINUTES, SHOWN, {"limits": {"turn_s": 60}}, "a turn ends sooner than this reply does (limits: turn_s)"),
        (MINUTES, SHOWN, {"limits": {"turn_s": 700}}, ""),
        (MINUTES, SHOWN, {}, ""),
        ({"turns": [{"user": "a"}, {"user": "b"}]}, SHOWN, {}, ""),
        ({"turns": [{"user": "a"}, {"user": "b"}]}, ControlFacts(True), {}, "the agent does not continue a session"),
        (WRONG_SHAPE, SHOWN, {}, "no main call of the agent asked for JSON by a schema"),
        (WRONG_SHAPE, replace(SHOWN, shape=MainShape(structured=True)), {}, ""),
        (WRONG_SHAPE, SHOWN, {"finish": {"text": '{"say": "{answer}"}'}}, ""),
        (
            WRONG_SHAPE,
            SHOWN,
            {"finish": {"text": "Answer: {answer}"}},
            "no main call of the agent asked for JSON by a schema",
        ),
        (WRONG_PLAN, replace(SHOWN, shape=MainShape(structured=True), background=True), {}, "no background call that"),
        (WRONG_PLAN, replace(SHOWN, background=True, plans=True), {}, ""),
        (PAGE, SHOWN, {}, "the agent advertises no tool fetch"),
        (PAGE, replace(SHOWN, tools=frozenset({"web_fetch"})), {}, "the agent advertises no tool fetch"),
        (PAGE, replace(SHOWN, fetches=True), {}, ""),
        (WRITES, SHOWN, CHAT, "the agent advertises no tool send_message"),
        (WRITES, replace(SHOWN, writes=True), {}, "the agent does not get its messages from a chat service (chat)"),
        (WRITES, replace(SHOWN, writes=True), CHAT, ""),
        (QUESTION, SHOWN, {}, "the agent advertises no tool ask_user"),
        (QUESTION, replace(SHOWN, questions=True), {}, ""),
        (QUESTION, replace(SHOWN, questions=True), {"stdin": "open"}, "a user may be there to answer the question"),
    ],
)
def test_a_scenario_is_skipped_where_the_agent_lacks_what_it_is_about(
    words: dict[str, Any], facts: ControlFacts, spec: dict[str, Any], why: str
):
    """With the reason; where nothing is missing there is none."""
    said = why_skipped(scenario(**words), agent(**spec), facts)
    assert why in said and bool(why) == bool(said)


WHOLE = ControlFacts(True, shell=True, resumes=True)
GARBAGE = {"faults": [{"do": "garbage_arguments"}]}
SCRIPTED = {"turns": [{"user": "x", "model": [{"tool": "shell", "raw_args": "{"}]}]}


@pytest.mark.parametrize(
    ("words", "wire", "facts", "carrier"),
    [
        (GARBAGE, "anthropic", WHOLE, "anthropic without streaming"),
        (SCRIPTED, "anthropic", WHOLE, "anthropic without streaming"),
        (GARBAGE, "gemini", SHOWN, ""),
        (GARBAGE, "ollama", SHOWN, "ollama"),
        ({"faults": [{"do": {"garbage_arguments": "list"}}]}, "ollama", SHOWN, "ollama"),
        (GARBAGE, "anthropic", SHOWN, ""),
        (GARBAGE, "openai-chat", WHOLE, ""),
        (GARBAGE, "openai-responses", WHOLE, ""),
        ({"faults": [{"do": {"garbage_arguments": "wrong_types"}}]}, "ollama", SHOWN, ""),
        ({"faults": [{"do": {"garbage_arguments": "none"}}]}, "ollama", SHOWN, ""),
        ({"faults": [{"do": {"garbage_arguments": "none"}}]}, "anthropic", WHOLE, ""),
        ({"turns": [{"user": "x", "model": [{"tool": "shell", "raw_args": '{"a": 1}'}]}]}, "ollama", SHOWN, ""),
        ({"faults": [{"do": "max_tokens"}]}, "ollama", SHOWN, ""),
    ],
)
def test_broken_arguments_are_skipped_where_the_wire_carries_only_objects(
    words: dict[str, Any], wire: str, facts: ControlFacts, carrier: str
):
    """Its name stands in the reason, with what the control run showed of it."""
    why = f"the tool call's arguments are no JSON object, and {carrier} carries only objects" if carrier else ""
    assert why_skipped(scenario(**words), agent(wire=wire), facts) == why


NO_CHUNKS, NO_IDS = "{} has no chunks of chat completions", "streams of {} give items no id"
ONE_FORM = "{} has only one form of streams"


@pytest.mark.parametrize(
    ("do", "played_on", "why"),
    [
        ({"other_form": "lines"}, {"anthropic", "openai-chat", "openai-responses"}, ONE_FORM),
        ("open_end", {"anthropic", "openai-chat", "openai-responses"}, ONE_FORM),
        ({"other_form": "turns"}, {"openai-chat"}, NO_CHUNKS),
        ({"misnumbered": "index"}, {"openai-chat"}, NO_CHUNKS),
        ({"misnumbered": "ids"}, {"openai-responses"}, NO_IDS),
        ({"misnumbered": "again"}, {"anthropic", "openai-chat"}, "no provider of {} is known to give two calls one id"),
        ({"error_event": {"by": "gateway"}}, {"openai-chat"}, NO_CHUNKS),
        ({"empty_reply": "broken_call"}, {"gemini"}, "no provider of {} says that it could not read a tool call"),
        ({"demands": "system"}, {"ollama", "openai-chat"}, "the system text of {} is no message"),
        ({"error_event": 529}, {"anthropic", "gemini", "ollama", "openai-chat", "openai-responses"}, ""),
    ],
)
def test_what_only_some_wires_have_is_played_on_those(do: Any, played_on: set[str], why: str):
    """Each other wire is named in the reason."""
    for wire in ("anthropic", "gemini", "ollama", "openai-chat", "openai-responses"):
        told = scenario(faults=[{"do": do, "at": {"turn": 1, "step": 1}}])
        assert why_skipped(told, agent(wire=wire), SHOWN) == ("" if wire in played_on else why.format(wire))


TWO = [{"user": "x", "model": [{"text": "a {nonce}"}]}, {"user": "y", "model": [{"text": "b {nonce}"}]}]


@pytest.mark.parametrize(
    ("words", "resumes", "turns"),
    [
        ({}, False, 1),
        ({}, True, 2),
        ({"faults": [{"do": {"status": 500}}]}, False, 1),
        ({"faults": [{"at": {"turn": 2}, "do": {"status": 500}}]}, False, 2),
        ({"invariants": {"turn_answered": {}}}, False, 1),
        ({"invariants": {"paid_call_bound": {"per_step": 2}}}, False, 2),
    ],
)
def test_without_a_session_the_first_turn_is_played_alone(words: dict[str, Any], resumes: bool, turns: int):
    """Where all faults are there, and no bound is about the others; a fault in a later turn skips it as before."""
    story, facts = scenario(turns=TWO, **words), ControlFacts(True, resumes=resumes)
    played = as_far_as(story, agent(), facts)
    assert len(played.turns) == turns
    skipped = why_skipped(played, agent(), facts)
    assert skipped == ("the agent does not continue a session" if turns == 2 and not resumes else "")


@pytest.mark.parametrize(
    ("words", "spec", "turns"),
    [
        ({"tags": ["session"]}, {"command": ["a", "{session}", "{message}"]}, 2),
        ({"tags": ["session"]}, {"command": ["a"], "resume": ["a", "--continue"]}, 2),
        ({}, {"command": ["a", "{session}", "{message}"]}, 1),
        ({"tags": ["session"], "faults": [{"do": {"status": 500}}]}, {"command": ["a", "{session}"]}, 1),
    ],
)
def test_a_promised_session_is_played_whole_where_the_scenario_is_about_it(
    words: dict[str, Any], spec: dict[str, Any], turns: int
):
    """Though the control run did not continue it: that is what the scenario finds. With a fault it is as before."""
    story, facts = scenario(turns=TWO, **words), ControlFacts(True)
    played = as_far_as(story, agent(**spec), facts)
    assert len(played.turns) == turns
    assert why_skipped(played, agent(**spec), facts) == ""


@pytest.mark.parametrize(
    ("wire", "finish", "at", "event"),
    [
        ("gemini", {"tool": "done", "arg": "text"}, {"event": 8}, 1),
        ("ollama", {"tool": "done", "arg": "text"}, {"event": 8}, 1),
        ("gemini", {"tool": "done", "arg": "text"}, {"event": 0}, 0),
        ("gemini", {"tool": "done", "arg": "text"}, {"turn": 2, "event": 4}, 4),  # a call of the script
        ("gemini", {"tool": "done", "arg": "text"}, {"turn": 2, "step": 2, "event": 4}, 1),
        ("gemini", {"tool": "done"}, {"event": 8}, 8),  # the words are text
        ("gemini", None, {"event": 8}, 8),
        ("openai-chat", {"tool": "done", "arg": "text"}, {"event": 8}, 8),
    ],
)
def test_last_words_in_one_event_are_struck_behind_it(wire: str, finish: Any, at: dict[str, Any], event: int):
    """Gemini and Ollama stream a tool call in one event: no fault behind the eighth one would ever fire."""
    turns = [TWO[0], {"user": "y", "model": [{"tool": "shell", "args": {"command": "x"}}, {"text": "z"}]}]
    story, facts = scenario(turns=turns, faults=[{"at": at, "do": "early_end"}]), ControlFacts(True, resumes=True)
    played = as_far_as(story, agent(wire=wire, **({"finish": finish} if finish else {})), facts)
    assert [it.at.event for it in played.faults] == [event]


def test_a_scenario_about_a_session_alone_is_skipped_where_none_is_promised():
    """Its first turn says nothing of what it is about."""
    story, facts = scenario(turns=TWO, tags=["session"]), ControlFacts(True)
    assert why_skipped(as_far_as(story, agent(), facts), agent(), facts) == "the agent does not continue a session"
