"""An agent spec is read completely or refused in one line."""

import re
from pathlib import Path
from typing import get_args

import pytest

from wedgehog.harness.agents.spec import AgentSpec, load_spec, renamed, variants
from wedgehog.harness.agents.spec_keys import Wire
from wedgehog.harness.scenario.document import BadFileError

HEAD = "name: a\nwire: anthropic\n"
SPECIMEN = f"""{HEAD}
command: [x, --fixes, "{{fixes}}", "{{message}}"]
fixes: {{inner: why, outer: why, total: why}}
fixed: [outer, total]
"""

EVERY_KEY = """
name: my-agent
wire: openai-chat
command: ["{python}", "{here}/agent.py", --session, "{session_dir}", --model, "{model}", "{message}"]
models: [one, two]
resume: ["{python}", "{here}/agent.py", --session, "{session_dir}", "{message}"]
env: {OPENAI_BASE_URL: "{llm_url}/v1", OPENAI_API_KEY: "{key}", SPEED: "{time_scale}", RETRIES: 3}
inherit_env: [CUDA_HOME]
files: {"{home}/.my-agent/config.json": '{"url": "{llm_url}", "tools": "{tool_url}", "page": "{web_url}"}'}
workdir: "{here}/template"
session_files: ["{session_dir}/*.jsonl"]
answer: "json:payloads[*].text"
error: stderr
errors: ["gave up"]
abort: SIGINT
timeouts: [{name: total, s: 90, says: Timeout}, {name: idle, s: 60, inside: total}]
wake_up: ["{python}", "{here}/agent.py", --tick, "{message}"]
limits: {turn_s: 60, calls_per_turn: 8, calls_without_progress: 5, tool_rounds: 10, tool_result_chars: 4000, tool_s: 30,
  usd_per_turn: 0.5, tokens_per_turn: 90000}
start_s: 60
recover_s: 30
usage: {input_tokens: "jsonl:usage.in", usd: "json:cost", counts: session}
price_as: claude-sonnet-4-6
known: {stall-mid-stream: a reason}
tools: http
"""


def loaded(tmp_path: Path, text: str):
    (tmp_path / "a.yaml").write_text(text)
    return load_spec(tmp_path / "a.yaml")


NO_MESSAGE = "the user's message does not reach the agent"


def complaint(tmp_path: Path, text: str, *, without_message: bool = True) -> str:
    """What is said of a spec; most have no {message}, which would be a mistake of its own."""
    with pytest.raises(BadFileError) as caught:
        loaded(tmp_path, text)
    lines = str(caught.value).replace(f"{tmp_path}/", "").splitlines()
    return "\n".join(line for line in lines if not (without_message and NO_MESSAGE in line))


def test_every_documented_key_is_read(tmp_path: Path):
    """The spec of the documentation, and its path."""
    spec = loaded(tmp_path, EVERY_KEY)
    assert (spec.here, spec.kind, spec.limits.usd_per_turn) == (tmp_path, "command", 0.5)
    assert spec.timeouts[1].inside == "total"
    assert spec.env["RETRIES"] == "3"
    assert spec.scales_time and spec.wakes_up and not spec.error_at_path


def test_what_a_spec_leaves_out_has_the_documented_defaults(tmp_path: Path):
    """A first spec has three lines."""
    spec = loaded(tmp_path, HEAD + "command: [x, '{message}']")
    assert (spec.answer, spec.error, spec.abort, spec.start_s, spec.recover_s) == ("stdout", "stderr", "SIGINT", 60, 30)
    assert (spec.price_as, spec.limits.turn_s, spec.tools) == ("claude-sonnet-4-6", None, None)
    assert not spec.scales_time and not spec.wakes_up
    assert variants(spec) == [spec]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("", "a.yaml:1: expected exactly one of command, callable, http, page, chat, lines, acp and tui, found none"),
        (
            "command: [x]\ncallable: a:b\n",
            "a.yaml:4: expected exactly one of command, callable, http, page, chat, lines, acp and tui, "
            "found command and",
        ),
        ("comand: [x]\n", "a.yaml:3: unknown key 'comand' (did you mean 'command'?)"),
        ("command: []\n", "a.yaml:3: 'command': expected a list of at least 1, found an empty list"),
        ("command: x\n", "a.yaml:3: 'command': expected a list, found 'x'"),
        ("command: [x]\nlimits:\n  turns_s: 1\n", "a.yaml:5: unknown key 'turns_s' (did you mean 'turn_s'?)"),
        ("command: [x]\nlimits: {turn_s: 0}\n", "a.yaml:4: 'limits.turn_s': expected a number above 0, found 0"),
        ("command: [x]\nanswer: yaml:a\n", "a.yaml:4: expected stdout, stderr, json:PATH"),
        ("command: [x]\nfinish: {}\n", "a.yaml:4: expected at least one of tool, arg, text and with"),
        ("command: [x]\nmodels: [a, b]\n", "a.yaml:4: no message names the chosen model: write {model} in command"),
        ("command: [x, '{model}']\n", "a.yaml:3: {model} has a value only with `models: [FIRST, SECOND]`"),
        (
            "command: [x, '{model}']\nmodels: [a]\n",
            "a.yaml:4: 'models': expected a list of at least 2",
        ),
        (
            "command: [x]\nlimits:\n  calls_per_turn: {at_most: 5}\n",
            "a.yaml:5: 'limits.calls_per_turn': expected a whole number or a mapping with the key 'why', found",
        ),
        (
            "command: [x]\nlimits:\n  calls_per_turn: {at_most: 5, why: ok}\n",
            "a.yaml:5: 'limits.calls_per_turn.why': expected text of at least 3 characters, found 'ok'",
        ),
        ("command: [x]\nusage: {usd: stdout}\n", "a.yaml:4: expected json:PATH or jsonl:PATH, found 'stdout'"),
        ("command: [x]\nusage: {counts: turn}\n", "a.yaml:4: expected at least one of input_tokens"),
        ("command: [x]\nanswer: text\n", "a.yaml:4: expected stdout, stderr, json:PATH"),
        ("command: [x]\nanswer: json:a..b\n", "a.yaml:4: expected a path of dotted keys"),
        ("command: [x]\nerrors: ['(']\n", "a.yaml:4: '(' is not a regular expression"),
        (
            "command: [x]\nabort: SIGFOO\n",
            "a.yaml:4: 'abort': expected 'SIGINT', 'SIGTERM' or 'SIGHUP', found 'SIGFOO'",
        ),
        (
            "command: [x]\ntimeouts:\n- {name: a, s: 1}\n- {name: b, s: 1, inside: c}\n",
            "a.yaml:6: 'c' is not another timeout",
        ),
        (
            "tui: {start: [x], ready: '>', asks: {shows: may, allow: {yes: true}, deny: n}}\n",
            "a.yaml:3: expected a pattern under `shows`, and keys as the answers",
        ),
        ("callable: nothing\n", "a.yaml:3: expected 'package.module:function'"),
        ("callable: a:b\nresume: [x]\n", "a.yaml:4: 'resume' goes with 'command'"),
        ("http: {url: /m}\n", "a.yaml:3: expected either `start`"),
        ("http:\n  url: /m\n  start: [x]\n", "a.yaml:5: no key contains {port}"),
        ("http: {base: 'localhost:1', url: /m}\n", "a.yaml:3: expected an address like http://"),
        ("http:\n  base: http://h:1\n  url: /m\n  answer: stdout\n", "a.yaml:6: expected `text`, `json:PATH`, "),
        (
            "http: {base: 'http://h:1', url: /m}\nanswer: json:a\n",
            "a.yaml:4: for a service, 'answer' goes inside 'http'",
        ),
        ("command: [x]\nfixes: {a: b}\n", "a.yaml:4: 'fixes' (all switches) and 'fixed' (the default set) go together"),
        ("command: ['{fixes}']\nfixes: {a: b}\nfixed: [c]\n", "a.yaml:5: 'c' is not among the fixes: a"),
        ("command: [x]\nfixes: {a: b}\nfixed: [a]\n", "a.yaml:4: no key contains {fixes}"),
        ("command:\n- x\n- '{mesage}'\n", "a.yaml:5: unknown template '{mesage}' (did you mean '{message}'?)"),
        ("command: [x]\nfiles:\n  '{hme}/x': y\n", "a.yaml:5: unknown template '{hme}' (did you mean '{home}'?)"),
        ("command: [x]\nenv: {A: '{message}'}\n", "a.yaml:4: {message} has no value here"),
        ("command: ['{port}']\n", "a.yaml:3: {port} is only for a service that we start"),
        ("command: [x]\nworkdir: '{home}/t'\n", "a.yaml:4: expected a path, absolute or with {here}"),
        ("command: [x]\nhosts: {API.example.com: llm}\n", "a.yaml:4: "),
        ("command: [x]\nhosts: {api.example.com: lm}\n", "a.yaml:4: "),
        (
            "http: {base: 'http://h:1', url: /m}\nhosts: {a.b: llm}\n",
            "a.yaml:4: an agent with `hosts` runs in a private",
        ),
        ("command: ['{tool_command}']\ntools: stdio\nhosts: {a.b: llm}\n", "a.yaml:4: a pipe does not cross into"),
        ("command: ['{pipe}']\nhosts: {a.b: llm}\n", "a.yaml:4: a pipe does not cross into"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(tmp_path: Path, more: str, expected: str):
    """File, line, what was expected, and a suggestion."""
    assert complaint(tmp_path, HEAD + more).startswith(expected)


def test_all_mistakes_of_a_spec_are_told_at_once(tmp_path: Path):
    """One line each, from the top of the file; first those of single keys, then those between keys."""
    assert complaint(tmp_path, HEAD + "comand: [x]\nlimits: {turn_s: 0}\nabort: SIGFOO\n").splitlines() == [
        "a.yaml:3: unknown key 'comand' (did you mean 'command'?)",
        "a.yaml:4: 'limits.turn_s': expected a number above 0, found 0",
        "a.yaml:5: 'abort': expected 'SIGINT', 'SIGTERM' or 'SIGHUP', found 'SIGFOO'",
    ]
    file = "name: a\nwire: gemni\ncomand: x\nabort: SIGFOO\nfixes: {a: b}\nfiles: {'{hme}': y}\nlimits: {turns_s: 1}\n"
    assert [line.split(" (")[0].split(", found")[0] for line in complaint(tmp_path, file).splitlines()] == [
        "a.yaml:2: 'wire': expected " + re.sub(", ([^,]*)$", r" or \1", ", ".join(map(repr, get_args(Wire)))),
        "a.yaml:3: unknown key 'comand'",
        "a.yaml:4: 'abort': expected 'SIGINT', 'SIGTERM' or 'SIGHUP'",
        "a.yaml:5: 'fixes'",
        "a.yaml:6: unknown template '{hme}'",
        "a.yaml:7: unknown key 'turns_s'",
    ]
    lines = complaint(tmp_path, HEAD + "command: [x]\nabort: SIGFOO\n", without_message=False).splitlines()
    assert lines[0] == f"a.yaml:3: {NO_MESSAGE}: write {{message}} where it takes it"
    assert lines[1].startswith("a.yaml:4: 'abort': expected") and len(lines) == 2
    (typo,) = complaint(tmp_path, HEAD + "command: ['{mesage}']\n", without_message=False).splitlines()
    assert typo.startswith("a.yaml:3: unknown template '{mesage}'")
    said = complaint(tmp_path, HEAD + "callable: a:b\nresume: ['{mesage}']\nanswer: stderr\n").splitlines()
    assert [line.split(" ", 1)[0] for line in said] == ["a.yaml:4:", "a.yaml:4:", "a.yaml:5:"]
    assert "'resume' goes with 'command'" in said[0] and "'{mesage}'" in said[1]


@pytest.mark.parametrize(
    ("more", "lines"),
    [
        ("tools: htp\ncommand: ['{tool_url}']\n", [3]),
        ("tools: htp\ncommand: ['{idle_s}']\n", [3, 4]),
        ("timeouts: [{name: idle, s: 0}]\ncommand: ['{idle_s}']\n", [3]),
        ("command: '{fixes} {model}'\nfixes: {a: b}\nfixed: [a]\nmodels: [a, b]\n", [3]),
        ("fixes: 3\nfixed: [a]\ncommand: [x]\n", [3]),
        ("http: {base: 'http://h:1', url: /m}\nwake_up: 3\n", [4, 4]),
        ("command: ['{hme}']\nstdin: open\nhttp: {start: [x], url: /a}\nresume: [q]\nfixed: [a]\n", [3, 5, 5, 7, 7]),
        ("http: 3\nsimulate: 'a:b'\nenv: {PORT: '{port}'}\nresume: [x]\n", [3, 6]),
    ],
)
def test_a_key_that_holds_a_mistake_makes_no_other_key_wrong(tmp_path: Path, more: str, lines: list[int]):
    """Where one half of a contradiction can't be read, the other half may be right."""
    assert [int(line.split(":")[1]) for line in complaint(tmp_path, HEAD + more).splitlines()] == lines


def test_a_program_in_the_place_of_a_spec_is_told_apart(tmp_path: Path):
    """Not as a mistake of YAML."""
    (tmp_path / "agent.py").write_text("import os\n\ndef main(): ...\n")
    with pytest.raises(BadFileError, match=r"agent\.py: this is a program; `wedgehog init` writes a spec for it"):
        load_spec(tmp_path / "agent.py")


@pytest.mark.parametrize("name", ["../x", "x" * 101])
def test_a_name_that_could_be_no_folder_of_a_run_is_refused(tmp_path: Path, name: str):
    """It would leave the folder of the campaign, or be too long for a file system."""
    assert "a.yaml:1: 'name'" in complaint(tmp_path, f"name: {name}\nwire: anthropic\ncommand: [x]\n")


def test_a_specimen_stands_for_every_row_of_its_fix_matrix(tmp_path: Path):
    """No fix, the set, each fix alone, the set without each of its fixes."""
    rows = {agent.name: agent.chosen for agent in variants(loaded(tmp_path, SPECIMEN))}
    assert rows == {
        "buggy": (),
        "fixed": ("outer", "total"),
        "only-inner": ("inner",),
        "only-outer": ("outer",),
        "only-total": ("total",),
        "without-outer": ("total",),
        "without-total": ("outer",),
    }


def test_a_variant_has_only_the_timers_that_its_fixes_give_it(tmp_path: Path):
    """A timer with `fixes` needs one of them, and then stands for another one of its name."""
    timers = """timeouts:
  - {name: client, s: 60}
  - {name: client, s: 120, fixes: [inner]}
  - {name: budget, s: 75, fixes: [outer, total]}
"""
    agents = {it.name: renamed(it, it.name) for it in variants(loaded(tmp_path, SPECIMEN + timers))}
    found = {name: [(timer.name, timer.s) for timer in it.timeouts] for name, it in agents.items()}
    assert (found["buggy"], found["only-inner"]) == ([("client", 60)], [("client", 120)])
    for name in ("fixed", "only-outer", "only-total", "without-outer", "without-total"):
        assert found[name] == [("client", 60), ("budget", 75)]


def test_a_timer_of_an_unknown_fix_is_refused(tmp_path: Path):
    """At its line, with the fixes that there are."""
    with pytest.raises(BadFileError, match=r"a\.yaml:7: 'outr' is not among the fixes: inner, o"):
        loaded(tmp_path, SPECIMEN + "timeouts: [{name: budget, s: 75, fixes: [outer, outr]}]\n")


def test_a_suffix_tells_two_specimens_of_one_incident_apart(tmp_path: Path):
    """Every variant's name ends with it; file, folder and family are unchanged."""
    agents = variants(loaded(tmp_path, SPECIMEN + "suffix: -ollama\n"))
    assert [agent.name for agent in agents[:3]] == ["buggy-ollama", "fixed-ollama", "only-inner-ollama"]
    assert {(agent.family, agent.path) for agent in agents} == {("a", tmp_path / "a.yaml")}


def test_the_schema_has_every_key_and_allows_no_other():
    """For completion in editors."""
    made = AgentSpec.model_json_schema()
    assert {"name", "wire", "command", "http", "limits", "fixes"} <= made["properties"].keys()
    assert made["additionalProperties"] is False


def test_a_timer_reaches_its_agent_by_a_template_of_its_own(tmp_path: Path):
    """In seconds or in milliseconds; only such a timer can be set."""
    spec = loaded(
        tmp_path,
        f"""{HEAD}command: [x, "{{global_request_s}}", "{{message}}"]
env: {{IDLE: "{{idle_ms}}"}}
timeouts: [{{name: global-request, s: 4}}, {{name: idle, s: 0.5}}, {{name: typing, s: 120}}]
""",
    )
    assert spec.settable == {"global-request", "idle"}
    assert spec.timeouts[0].templates == {"global_request_s": "4", "global_request_ms": "4000"}
    assert spec.timeouts[1].templates["idle_ms"] == "500"
    other = renamed(spec, "a+idle-1")
    assert (other.name, other.family, other.path) == ("a+idle-1", "a", spec.path)


def test_a_template_of_no_timer_is_a_mistake(tmp_path: Path):
    """Like any other unknown name."""
    said = complaint(
        tmp_path, f"""{HEAD}command: [x, "{{idle_s}}", "{{message}}"]\ntimeouts: [{{name: total, s: 4}}]\n"""
    )
    assert "unknown template '{idle_s}'" in said


@pytest.mark.parametrize(
    ("words", "promised"),
    [
        ("command: [a, '{session}', '{message}']", True),
        ("command: [a, '{session_dir}', '{message}']", False),
        ("command: [a, '{message}']\nresume: [a, --continue, '{message}']", True),
        ("command: [a, '{message}']\nenv: {TRACE: '{session}'}", False),
        ("http: {start: [a, '{port}'], url: /, body: {id: '{session}', text: '{message}'}, answer: json:a}", True),
        (
            "http: {start: [a, '{port}'], url: /, body: {user_id: '{session}', text: '{message}'}, answer: json:a}",
            False,
        ),
        ("http: {start: [a, '{port}'], url: /, headers: {X-User: '{session}'}, body: '{message}'}", False),
        ("http: {start: [a, '{port}'], url: /, body: {id: '{session}', messages: [{content: '{message}'}]}}", False),
        ("http: {start: [a, '{port}', '{session}'], url: /, body: {text: '{message}'}, answer: json:a}", False),
        ("acp: {start: [a]}", True),
        ("lines: {start: [a], done: x}", False),
        ("callable: a:b", False),
    ],
)
def test_a_spec_promises_a_session_where_a_message_names_it(tmp_path: Path, words: str, promised: bool):
    """A folder for sessions is no promise, nor is a name that only the process gets: each message may stand alone."""
    path = tmp_path / "a.yaml"
    path.write_text(f"{HEAD}{words}\n")
    assert load_spec(path).says_it_resumes is promised


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ("{shell: run it}", "expected the place of an argument, such as {command} or {args}, found 'run it'"),
        ("{shell: 'run {line}'}", "expected {command} where the command goes, found 'run {line}'"),
    ],
)
def test_a_call_in_text_holds_its_argument(tmp_path: Path, calls: str, said: str):
    """Else the agent would run nothing."""
    assert said in complaint(tmp_path, HEAD + f"command: [x]\ncalls_in_text: {calls}\n")
    assert loaded(tmp_path, HEAD + "command: [x]\ncalls_in_text: {shell: 'run {args}'}\n").calls_in_text


@pytest.mark.parametrize(
    ("chat", "said"),
    [
        ("{start: [x], api: whatsapp}", "whatsapp brings messages to a webhook: write `webhook: /path`"),
        ("{start: [x], api: discord, webhook: /x}", "Discord brings messages over its gateway: leave `webhook` out"),
        ("{start: [x], event: app_mention}", "only Slack and Discord have mentions: write `api: slack`"),
        ("{start: [x], api: discord, event: both}", "only Slack brings a mention as two events: write `api: slack`"),
        ("{start: [x], webhook: hook}", "webhook"),
        ("{start: [x], webhook: /hook}", "no key contains {port}"),
        (
            '{start: [x, "{port}"]}',
            "{port} is only for a service that we start (http: {start: …}), a page, or a bot with a webhook",
        ),
        (
            '{start: [x, "{port}"], webhook: /hook}\nhosts: {api.x.org: chat}',
            "where its `webhook` port cannot be reached",
        ),
        ("{start: [x]}\nabort: SIGINT", "for an agent in a chat, 'abort' goes inside 'chat'"),
    ],
)
def test_what_does_not_fit_an_agent_in_a_chat_is_said(tmp_path: Path, chat: str, said: str):
    """Each vendor brings its messages in its own way."""
    assert said in complaint(tmp_path, f"{HEAD}chat: {chat}\n")


@pytest.mark.parametrize("key", ["abort: SIGINT", "answer: stdout", "error: stderr"])
def test_what_the_user_of_a_page_sees_and_does_goes_inside_of_page(tmp_path: Path, key: str):
    """An alert there is an error, whatever it says."""
    page = HEAD + 'page: {start: [x, "{port}"]}\n'
    word = key.partition(":")[0]
    assert f"for an agent with a page, '{word}' goes inside 'page'" in complaint(tmp_path, page + key + "\n")
    assert loaded(tmp_path, page).error_at_path
