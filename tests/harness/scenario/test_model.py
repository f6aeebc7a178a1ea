"""Scenario files: what they may say, what is wrong with one in one line, and what is expected of an agent."""

from pathlib import Path
from typing import Any

import pytest

from wedgehog.fake_llm.reply import Text, ToolCall
from wedgehog.harness.campaign.selection import check_invariant
from wedgehog.harness.faults.base import parse_fault
from wedgehog.harness.scenario.document import BadFileError
from wedgehog.harness.scenario.expect import FailConfig, expected_words, meets
from wedgehog.harness.scenario.fault_plan import ALWAYS
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.scenario.scenario_file import find_scenarios, load_scenario

HEAD = "name: a-story\nwhy: Because.\n"
TURNS = "turns:\n  - user: Go on.\n    model:\n      - {text: 'Done {nonce}'}\n"


@pytest.fixture
def file(tmp_path: Path) -> Any:
    """Writes a scenario file; its lines begin with name, why and turns (3 to 6)."""

    def write(rest: str = "", head: str = HEAD, turns: str = TURNS) -> Path:
        path = tmp_path / "a-story.yaml"
        path.write_text(head + turns + rest)
        return path

    return write


def complaint(path: Path) -> str:
    """The one line about a bad file, without its path."""
    with pytest.raises(BadFileError) as caught:
        load_scenario(path, check_invariant)
    said = str(caught.value)
    assert "\n" not in said
    return said.removeprefix(str(path.parent) + "/")


def test_all_mistakes_of_a_scenario_are_told_at_once(file: Any):
    """One line each: first those of single keys, then those between keys, files and invariants."""
    path = file("faults:\n  - at: {turn: 5}\n    do: cut\n  - at: {step: 9}\n    do: cut\n")
    with pytest.raises(BadFileError) as caught:
        load_scenario(path, check_invariant)
    assert str(caught.value).splitlines() == [
        f"{path}:8: there is no turn 5, only 1",
        f"{path}:10: the script has only 1 step in turn 1",
    ]
    path = file("session: lost.jsonl\ninvariants: {turn_answerd: {}}\nexpect: {a: {fail: [turn_deadlin]}}\n")
    with pytest.raises(BadFileError) as caught:
        load_scenario(path, check_invariant)
    said = str(caught.value).splitlines()
    assert [line.split(" ", 1)[0] for line in said] == [f"{path}:{number}:" for number in (7, 8, 9)]


@pytest.mark.parametrize(
    ("rest", "lines"),
    [
        ("time_scale: 0\ninvariants: {turn_answerd: {}}\nsession: lost.jsonl\nfaults: [{at: {turn: 5}, do: cut}]\n", 4),
        ("faults: [{do: cut, times: 0}, {at: {turn: 5}, do: cut}]\nexpect: {a: {fail: [turn_deadlin]}}\n", 2),
        ("faults:\n- do: {stal: forever}\n  link: lm\n  times: no\n  at: {turn: -1}\n  stick_to: 1\n", 5),
        ("time_scael: 2\ntags: 3\nfaults: [{at: {step: 9}, do: cut}]\n", 3),
    ],
)
def test_a_key_that_holds_a_mistake_does_not_hide_the_others(file: Any, rest: str, lines: int):
    """Each line of the file is named at once; what needs the key that can't be read is left open."""
    path = file(rest)
    with pytest.raises(BadFileError) as caught:
        load_scenario(path, check_invariant)
    said = str(caught.value).splitlines()
    assert [line.split(" ", 1)[0] for line in said] == [
        f"{path}:{number}:" for number in range(7 + ("\n-" in rest), 7 + ("\n-" in rest) + lines)
    ]


def test_a_scenario_is_read_with_its_replies_and_its_plan(file: Any):
    """Seconds of the plan are divided by the run's time scale."""
    faults = "faults:\n  - at: {step: 2, event: 5, after_s: 60}\n    do: {stall: forever}\n    times: always\n"
    path = file(faults, turns=TURNS + "      - {text: 'More {nonce}'}\n")
    scenario = load_scenario(path, check_invariant).scenario
    assert scenario.turns[0].replies[0].items == (Text("Done {nonce}"),)
    (line,) = scenario.plan(30).faults
    assert (line.link, line.trigger.step, line.trigger.event, line.trigger.after_s) == ("llm", 2, 5, 2)
    assert (line.fault, line.times, line.sticks_to) == (parse_fault({"stall": "forever"}), ALWAYS, "call")


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("trns: []\n", "a-story.yaml:7: unknown key 'trns' (did you mean 'turns'?)"),
        ("time_scale: fast\n", "a-story.yaml:7: "),
        ("time_scale: {by: 2}\n", "a-story.yaml:7: 'time_scale': expected a number, found a mapping with the key by"),
        ("time_scale: 0\n", "a-story.yaml:7: "),
        ("faults:\n  - do: {stal: forever}\n", "a-story.yaml:8: "),
        ("faults:\n  - link: lm\n    do: cut\n", "a-story.yaml:8: unknown link 'lm', expected one of llm"),
        ("faults:\n  - do: give_up\n", "a-story.yaml:8: "),
        ("faults:\n  - link: tool:web\n    do: {status: 429}\n", "a-story.yaml:8: status is something the model says"),
        ("faults:\n  - do: refuse\n    at: {phase: body}\n", "a-story.yaml:9: refuse fires on connections"),
        ("faults:\n  - do: cut\n    at: {byte: 1, event: 1}\n", "a-story.yaml:9: `event` and `byte` are two places"),
        ("faults:\n  - do: cut\n    at: {turn: 2}\n", "a-story.yaml:9: there is no turn 2, only 1"),
        (
            "faults:\n  - do: cut\n    at: {event: 2, when: done}\n",
            "a-story.yaml:9: `when` says at which end of a tool call",
        ),
        ("faults:\n  - do: cut\n    at: {tool: 1, event: 2}\n", "a-story.yaml:9: `event` means nothing beside `tool`"),
        (
            "faults:\n  - do: abort\n    at: {phase: connect}\n",
            "a-story.yaml:9: abort is done to the agent: write one of",
        ),
        ("faults:\n  - do: cut\n    at: {step: 0}\n", "a-story.yaml:9: "),
        ("faults:\n  - do: cut\n    times: 0\n", "a-story.yaml:9: "),
        (
            "faults:\n  - do: {cut: fin}\n  - do: {stall: 1}\n  - do: {cut: rst}\n",
            "a-story.yaml:10: one scenario cuts with fin or with rst, not with both",
        ),
        (
            "faults:\n  - do: {cut: rst}\n  - do: cut\n    at: {turn: 1}\n",
            "a-story.yaml:9: one scenario cuts with fin or with rst, not with both",
        ),
        ("invariants:\n  paid_call_bond: {}\n", "a-story.yaml:8: unknown invariant 'paid_call_bond' (did you mean"),
        (
            "invariants:\n  paid_call_bound: {per_stp: 1}\n",
            "a-story.yaml:8: paid_call_bound has no parameter",
        ),
        ("invariants:\n  paid_call_bound: of\n", "a-story.yaml:8: expected parameters or `off: reason`"),
        ("expect:\n  buggy: {fail: [no_such]}\n", "a-story.yaml:8: unknown invariant 'no_such'"),
        ("expect:\n  buggy: fail\n", "a-story.yaml:8: "),
        ("expect:\n  buggy: {fail: []}\n", "a-story.yaml:8: "),
        ("expect:\n  fixed: pass\n  buggy, other: {fail: [no_such]}\n", "a-story.yaml:9: unknown invariant 'no_such'"),
        ("expect:\n  fixed: pass\n  buggy, other: fail\n", "a-story.yaml:9: "),
        ("expect:\n  buggy, fixed: pass\n  other, fixed: pass\n", "a-story.yaml:9: 'fixed' stands here a second time"),
        ("expect:\n  buggy,, fixed: pass\n", "a-story.yaml:8: expected names of agents, separated by commas"),
        ("web:\n  /a: {status: 99}\n", "a-story.yaml:8: "),
        ("session: planted/none.jsonl\n", "a-story.yaml:7: no such file beside the scenario: planted/none.jsonl"),
        ("session: /etc/passwd\n", "a-story.yaml:7: expected a file beside the scenario, such as planted/passwd"),
        ("session: ../up.jsonl\n", "a-story.yaml:7: expected a file beside the scenario, such as planted/up.jsonl"),
    ],
)
def test_a_mistake_is_one_line_with_its_place_and_what_was_expected(file: Any, rest: str, said: str):
    """Unknown keys, wrong types, what contradicts itself, names that do not exist."""
    assert complaint(file(rest)).startswith(said)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("control", "expected another name: each campaign has a folder 'control' of its own"),
        ("bodies", "expected another name: each campaign has a folder 'bodies' of its own"),
        (
            "s" * 101,
            "'name': expected a name of at most 100 small letters, digits and hyphens, such as empty-reply-once",
        ),
    ],
)
def test_a_name_that_cannot_be_a_folder_of_a_campaign_is_refused(file: Any, name: str, said: str):
    """The runs of a scenario `control` lay among the control runs; a long name broke the campaign when it began."""
    assert said in complaint(file(head=HEAD.replace("a-story", name)))
    load_scenario(file(head=HEAD.replace("a-story", f"a-{name}"[:100])))


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("at: {phase: body, byte: 3}, do: cut", "`phase: body` and `byte` are two places: write one of them"),
        ("at: {phase: middle, event: 3}, do: cut", "`phase: middle` and `event` are two places"),
        ("at: {phase: connect, byte: 3}, do: refuse", "`phase: connect` and `byte` are two places"),
        ("at: {step: 2}, do: cut", "the script has only 1 step in turn 1"),
        ("at: {step: 3, phase: connect}, do: refuse", "the script has only 1 step in turn 1"),
        ("link: agent, at: {tool: 1}, do: kill", "the script's reply in turn 1, step 1 calls no tool"),
        ("at: {after_s: .inf}, do: abort", "'faults[0].at.after_s': expected a finite number, found .inf"),
        ("at: {after_s: 1e400}, do: abort", "'faults[0].at.after_s': expected a finite number, found .inf"),
        ("heal: {after_s: .nan}, do: stall", "'faults[0].heal.after_s': expected a finite number, found .nan"),
        ("at: {turn: true}, do: cut", "'faults[0].at.turn': expected a whole number, found true"),
        ("times: true, do: cut", "'faults[0].times': expected a whole number or 'always', found true"),
        ("do: {cut: }", "cut has nothing after its colon: write `do: cut`, or its parameters"),
        ("do: {html_body: 204}", "html_body: a reply with status 204 has no body"),
        ("do:", "a fault is a name or one `name: value`, found nothing"),
        ("do: {cut: fin, stall: 3}", "a fault is a name or one `name: value`, found the keys cut, stall"),
        ("do: [cut]", "a fault is a name or one `name: value`, found a list"),
        ("do: {true: 3}", "no fault is called 'true'"),
        ("link: agent, do: {abort: {x: 1}}", "abort has no parameter 'x'; it takes no parameters"),
        ("do: {no_usage: [1]}", "no_usage takes no parameters, found a list"),
    ],
)
def test_what_could_never_happen_is_refused_in_the_words_of_the_file(file: Any, fault: str, said: str):
    """A fault that could never strike is a mistake of the file, and is told as one line."""
    found = complaint(file("faults:\n- {" + fault + "}\n"))
    assert found.startswith("a-story.yaml:8: ")
    assert said in found


CALLS = TURNS + "      - [{tool: shell}, {tool: fetch}]\n      - {text: 'And {nonce}'}\n"


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ("{tool: 1}", "the script's reply in turn 1, step 1 calls no tool"),
        ("{step: 2, tool: 3}", "the script's reply in turn 1, step 2 calls only 2 tools"),
        ("{step: 4, tool: 1}", "the script has only 3 steps in turn 1"),
    ],
)
def test_a_trigger_at_a_tool_call_that_the_script_does_not_make_is_refused(file: Any, at: str, said: str):
    """For faults, and for a message that is given during a turn."""
    assert said in complaint(file(f"faults:\n- {{link: agent, at: {at}, do: kill}}\n", turns=CALLS))
    turn = at.replace("{", "{turn: 1, ")
    turns = f"{CALLS}  - user: Wait.\n    during: {turn}\n    model: [{{text: 'Yes {{nonce}}'}}]\n"
    assert said in complaint(file(turns=turns))


@pytest.mark.parametrize("do", ["cut", "stall", "{stall: 3}"])
@pytest.mark.parametrize("link", ["llm", "channel", "tool:web"])
@pytest.mark.parametrize("when", ["started", "done"])
def test_a_fault_that_counts_bytes_is_refused_at_a_tool_call(file: Any, link: str, when: str, do: str):
    """No connection carries a reply then; Toxiproxy can limit only one connection, and the run would be an error."""
    line = f"- {{link: {link}, at: {{step: 2, tool: 1, when: {when}}}, do: {do}}}\n"
    said = complaint(file(f"faults:\n{line}", turns=CALLS))
    assert "counts bytes of one connection, and a tool call holds none: write the `step` of a request" in said


@pytest.mark.parametrize(
    "faults",
    [
        "- {at: {step: 2, tool: 1, when: done}, do: down}",
        "- {at: {step: 2, tool: 1}, do: {latency: 2}}",
        "- {link: agent, at: {step: 2, tool: 2}, do: kill}",
        "- {at: {phase: request, byte: 60}, do: stall}",
        "- {do: endless_tools}\n- {at: {step: 5}, do: cut}\n- {link: agent, at: {step: 6, tool: 1}, do: kill}",
        "- {at: {step: 3, byte: 5, after_s: 2}, do: {cut: rst}}",
    ],
)
def test_what_can_happen_is_accepted(file: Any, faults: str):
    """Also a step that only an endless loop reaches."""
    assert load_scenario(file(f"faults:\n{faults}\n", turns=CALLS)).scenario.faults


@pytest.mark.parametrize("then", ["fin", "rst"])
def test_many_cuts_of_one_kind_are_no_contradiction(file: Any, then: str):
    """One link, one way to close."""
    line = f"  - do: {{cut: {then}}}\n"
    assert len(load_scenario(file(f"faults:\n{line}{line}")).scenario.faults) == 2


@pytest.mark.parametrize(
    ("turns", "said"),
    [
        ("", "a-story.yaml:1: "),
        ("turns: []\n", "a-story.yaml:3: "),
        ("turns:\n  - user: a\n    resume: b\n", "a-story.yaml:4: a turn has exactly one of user, wake_up and resume"),
        ("turns:\n  - model: []\n", "a-story.yaml:4: a turn has exactly one of"),
        ("turns:\n  - user: a\n    model:\n      - {txt: a}\n", "a-story.yaml:6: "),
    ],
)
def test_a_turn_that_is_none_is_told_by_its_line(file: Any, turns: str, said: str):
    """Every scenario has one turn at least, each with one stimulus."""
    assert complaint(file(turns=turns)).startswith(said)


def test_planted_files_lie_beside_the_scenario(file: Any, tmp_path: Path):
    """A session to start from, and lines for a later turn, each told by the place where it is named."""
    (tmp_path / "planted").mkdir()
    for name in ("start", "line"):
        (tmp_path / "planted" / f"{name}.jsonl").write_text("{}\n")
    turns = TURNS + "  - user: And now?\n    append: planted/line.jsonl\n    model: [{text: 'Yes {nonce}'}]\n"
    scenario = load_scenario(file("session: planted/start.jsonl\n", turns=turns), check_invariant).scenario
    assert scenario.planted == {("session",): "planted/start.jsonl", ("turns", 1, "append"): "planted/line.jsonl"}
    (tmp_path / "planted" / "line.jsonl").unlink()
    assert complaint(file(turns=turns)).startswith("a-story.yaml:8: no such file beside the scenario")


@pytest.mark.parametrize("name", ["Story", "a_story", "-a", "a/b"])
def test_a_name_is_one_that_a_folder_can_have(file: Any, name: str):
    """Small letters, digits and dashes."""
    assert complaint(file(head=f"name: {name}\nwhy: x\n")).startswith("a-story.yaml:1: ")


@pytest.mark.parametrize(
    ("turn", "kind", "text"),
    [
        ({"user": "hi"}, "user", "hi"),
        ({"resume": "go on"}, "resume", "go on"),
        ({"wake_up": {}}, "wake_up", "Look after your scheduled work."),
    ],
)
def test_a_stimulus_is_a_message_a_resume_or_a_wake_up(turn: dict[str, Any], kind: str, text: str):
    """What the agent is told, and as what."""
    (found,) = Scenario.model_validate({"name": "a", "why": "w", "turns": [turn]}).turns
    assert (found.stimulus, found.text) == (kind, text)


def test_what_a_scenario_needs_of_an_agent_is_read_from_it():
    """Tools, a timer of its own, a front end, streams."""

    def told(**more: Any) -> Scenario:
        return Scenario.model_validate({"name": "a", "why": "w", "turns": [{"user": "x"}], **more})

    plain = told()
    assert (plain.tools_called, plain.needs) == (set(), set())
    model = [[{"tool": "shell"}, {"tool": "fetch"}], {"text": "ok"}]
    assert told(turns=[{"user": "x", "model": model}]).tools_called == {"shell", "fetch"}
    assert told(turns=[{"wake_up": {}}]).needs == {"wake_up"}
    assert told(faults=[{"link": "channel", "do": "give_up"}]).needs == {"front_end"}
    assert told(faults=[{"at": {"event": 1}, "do": "cut"}]).needs == {"stream"}
    assert told(faults=[{"at": {"phase": "linger"}, "do": "stall"}]).needs == {"stream"}
    assert told(faults=[{"do": "pings_only"}]).needs == {"stream"}
    assert not told(faults=[{"at": {"byte": 1}, "do": "cut"}]).needs
    assert isinstance(told(turns=[{"user": "x", "model": model}]).turns[0].replies[0].items[0], ToolCall)


@pytest.mark.parametrize(
    ("written", "means"),
    [("off", None), ("off: too slow here", None), (None, {}), ({}, {}), ({"turn_s": 5}, {"turn_s": 5})],
)
def test_an_invariant_is_asked_for_bounded_or_switched_off(written: Any, means: Any):
    """A bare name asks for it as it is."""
    words = {"name": "a", "why": "w", "turns": [{"user": "x"}], "invariants": {"turn_deadline": written}}
    assert Scenario.model_validate(words).invariants["turn_deadline"] == means


@pytest.mark.parametrize(
    ("expect", "verdict", "violated", "met"),
    [
        ("pass", "pass", (), True),
        ("pass", "fail", ("a",), False),
        ("pass", "inconclusive", (), False),
        ("inconclusive", "inconclusive", (), True),
        ("error", "error", (), True),
        ("error", "error", ("a",), False),
        (FailConfig(fail=["a", "b"]), "fail", ("a", "b"), True),
        (FailConfig(fail=["b", "a"]), "fail", ("a", "b"), True),
        (FailConfig(fail=["a", "b"]), "fail", ("a",), False),
        (FailConfig(fail=["a"]), "fail", ("a", "b"), False),
        (FailConfig(fail=["a"]), "error", ("a",), False),
        (FailConfig(fail=["a"]), "pass", (), False),
    ],
)
def test_an_expectation_is_exact(expect: Any, verdict: Any, violated: tuple[str, ...], met: bool):
    """Verdict and set of violations, both."""
    assert meets(expect, verdict, violated) is met


def test_one_expectation_can_be_of_several_agents(file: Any):
    """Their names are separated by commas."""
    scenario = load_scenario(file("expect:\n  buggy, only-a: {fail: [turn_answered]}\n  fixed: pass\n")).scenario
    red = FailConfig(fail=["turn_answered"])
    assert scenario.expect == {"buggy": red, "only-a": red, "fixed": "pass"}


def test_an_expectation_in_words():
    """As the tables show it."""
    said = [expected_words(it) for it in (None, "pass", FailConfig(fail=["b", "a"]))]
    assert said == ["", "pass", "fail: a;b"]


def test_scenarios_are_found_in_a_folder_without_agents_and_planted_sessions(tmp_path: Path):
    """A file is itself; a folder is all below it, in order."""
    for name in ("scenarios/b.yaml", "scenarios/a.yaml", "agents/x.yaml", "planted/s.yaml", "c.yaml", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    found = [str(path.relative_to(tmp_path)) for path in find_scenarios(tmp_path)]
    assert found == ["c.yaml", "scenarios/a.yaml", "scenarios/b.yaml"]
    assert list(find_scenarios(tmp_path / "agents" / "x.yaml")) == [tmp_path / "agents" / "x.yaml"]


def test_a_place_without_scenarios_is_a_mistake(tmp_path: Path):
    """Missing and empty are told apart."""
    with pytest.raises(BadFileError, match="no such scenario file or folder"):
        list(find_scenarios(tmp_path / "nowhere"))
    with pytest.raises(BadFileError, match=r"no scenario file \(\*\.yaml\)"):
        list(find_scenarios(tmp_path))


def test_a_family_is_the_incidents_folder_and_its_agents_lie_there(tmp_path: Path):
    """Whether the scenario lies in `scenarios` or beside the agents."""
    (tmp_path / "incident" / "scenarios").mkdir(parents=True)
    (tmp_path / "incident" / "agents").mkdir()
    for place in ("incident/scenarios/a.yaml", "incident/b.yaml"):
        (tmp_path / place).write_text(HEAD + TURNS + "tags: [core]\n")
        found = load_scenario(tmp_path / place)
        assert (found.family, found.agents_folder) == ("incident", tmp_path / "incident" / "agents")
        assert found.core
    (tmp_path / "c.yaml").write_text(HEAD + TURNS)
    assert load_scenario(tmp_path / "c.yaml").agents_folder is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("{link: chat, do: {stall: forever}}", "`chat: poll`, `send`, `edit` or `typing` goes with"),
        ("{link: llm, at: {chat: poll}, do: {stall: forever}}", "`chat: poll`, `send`, `edit` or `typing` goes with"),
        ("{link: chat, at: {chat: pol}, do: {stall: forever}}", "'poll', 'send', 'edit' or 'typing'"),
        ("{link: chat, at: {chat: poll, phase: request}, do: {stall: forever}}", "a poll is under way before its"),
        ("{link: chat, at: {chat: send, phase: body}, do: {stall: forever}}", "`phase` is a place in a model's reply"),
        ("{link: chat, at: {chat: send, event: 2}, do: {stall: forever}}", "`event` is a place in a model's reply"),
        ("{link: chat, at: {chat: send, step: 2}, do: {stall: forever}}", "a chat service has no steps"),
        (
            "{at: {step: 1}, do: {chat_status: 502}}",
            "chat_status is something that the chat service does: write `link: chat`",
        ),
        ("{link: chat, at: {phase: connect, after_s: 1}, do: down}", "`after_s` has no effect beside `phase: conn"),
        ("{link: chat, at: {after_s: 1}, do: {chat_status: 502}}", "`chat: poll`, `send`, `edit` or `typing` goes"),
        ("{link: chat, do: {chat_status: 502}}", "`chat: poll`, `send`, `edit` or `typing` goes with"),
        ("{link: chat, at: {chat: send, byte: 3}, do: {chat_status: 502}}", "chat_status refuses a request whole"),
        ("{link: chat, at: {phase: connect}, do: {chat_status: 502}}", "counts requests: leave `phase` out"),
        ("{link: chat, at: {chat: send}, do: {chat_status: 200}}", "expected a whole number from 400 to 599"),
        ("{link: chat, at: {chat: send}, do: {status: 502}}", "status is something the model says"),
        ("{link: chat, at: {chat: send}, do: refuse}", "refuse fires on connections: write `phase: connect`"),
    ],
)
def test_a_trigger_that_the_chat_service_does_not_know_is_said(file: Any, words: str, said: str):
    """A fault that could never strike is a mistake, and no inconclusive run."""
    assert said in complaint(file(f"faults:\n  - {words}\n"))


def test_a_fault_on_the_chat_is_a_reason_to_have_one(file: Any):
    """Agents that get their messages elsewhere are skipped."""
    told = file("faults:\n  - {link: chat, at: {phase: connect}, do: {down: 3}}\n")
    assert load_scenario(told).scenario.needs == {"chat"}
    assert "chat" not in load_scenario(file()).scenario.needs


def test_a_public_report_is_an_address(file: Any):
    """One that a reader can open; a story without one is fine."""
    assert load_scenario(file("seen: https://github.com/a/b/issues/1\n")).scenario.seen.endswith("/issues/1")
    assert load_scenario(file()).scenario.seen == ""
    for bad in ("http://a.b/c", "https://localhost/c", "see the tracker", "https://a.b"):
        assert complaint(file(f"seen: {bad}\n")).startswith(
            "a-story.yaml:7: expected the address of a public report"
        ), bad


READER = """conversations:
  - name: reader
    when: {opening: Read}
    model: [{text: "It is empty."}]
"""


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        (READER.replace("reader", "subagent"), ":8: 'subagent' has a meaning of its own: choose another name"),
        (READER.replace("{opening: Read}", "{}"), ":9: expected one of system, opening, tools and model_name"),
        (READER.replace("opening", "openning"), ":9: unknown key 'openning' (did you mean 'opening'?)"),
        (READER + READER.partition("\n")[2], ":11: a second conversation of this name"),
        (READER + "faults: [{at: {on: writer}, do: cut}]\n", "found 'writer'"),
        (READER + "faults: [{at: {on: reader, step: 2}, do: cut}]\n", "only 1 step in the conversation reader"),
        (READER + "faults: [{do: cut, sticks_to: conversation}]\n", "write `at: {on: subagent}`"),
    ],
)
def test_a_mistake_about_a_conversation_is_one_line(file: Any, rest: str, said: str):
    """With the file and the line."""
    assert said in complaint(file(rest))


@pytest.mark.parametrize("on", ["reader", "subagent", "background", "compaction"])
def test_a_fault_may_hit_any_call_beside_the_main_conversation(file: Any, on: str):
    """A declared conversation by its name."""
    scenario = load_scenario(file(READER + f"faults: [{{at: {{on: {on}}}, do: cut}}]\n")).scenario
    assert scenario.plan(1).faults[0].trigger.on == on


def test_a_message_with_a_moment_of_its_own_has_no_pause(file: Any):
    """`pause_s` is the time after the turn before it."""
    turns = (
        "turns: [{user: Go., model: [{text: Yes.}]}, {user: Now?, pause_s: 2, during: {turn: 1}, model: [{text: Y.}]}]"
    )
    assert "comes at the moment of `during`" in complaint(file(turns=turns))
