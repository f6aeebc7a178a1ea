"""Whether a spec fits its agent, in words that its author can act on."""

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from wedgehog.harness.agents.missing import ProgramError
from wedgehog.harness.agents.spec import load_spec
from wedgehog.harness.commands.agents_check import check
from wedgehog.harness.commands.console import CheckFinding
from wedgehog.harness.commands.control_findings import findings
from wedgehog.harness.record.events.call import RequestArrived
from wedgehog.harness.record.events.run import HostRefused
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.history import History, read
from wedgehog.harness.run import job
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.run.tool_turn import CONTROL_TOOL

PLAIN_HTTP = Path(__file__).parents[2] / "live" / "plain_http.py"
AGENT = """\
import json, os, subprocess, sys
from plain_http import post
url, file, message = sys.argv[1:]
talk = json.load(open(file)) if os.path.exists(file) and not os.environ.get("FORGETS") else []
talk.append({"role": "user", "content": message})
tool = {"type": "function", "function": {"name": os.environ.get("CALLED", "bash"), "parameters": {"type": "object",
    "properties": {os.environ.get("TAKES", "command"): {"type": "string"}}}}}
tools = {} if os.environ.get("NO_TOOL") else {"tools": [tool]}
while True:
    body = {"model": "m", "messages": talk, **tools}
    reply = post(url + "/v1/chat/completions", body, {"authorization": "Bearer k"}, timeout_s=20)
    said = json.loads(reply.read())["choices"][0]["message"]
    talk.append(said)
    if not said.get("tool_calls"):
        break
    for call in said["tool_calls"]:
        command = json.loads(call["function"]["arguments"])["command"]
        out = subprocess.run(command, shell=True, capture_output=True, text=True).stdout
        talk.append({"role": "tool", "tool_call_id": call["id"], "content": out})
json.dump(talk, open(file, "w"))
print(said["content"])
"""


HI = "= [*sys.argv[1:3], 'hi']"
"""An agent that takes its message for another one."""


async def looked(tmp_path: Path, code: str = AGENT, **spec: object) -> list[CheckFinding]:
    """What is found about an agent with this code."""
    (tmp_path / "agent.py").write_text(code)
    shutil.copy(PLAIN_HTTP, tmp_path)
    command = ["{python}", "-S", "-E", "{here}/agent.py", "{llm_url}", "{session_dir}/talk.json", "{message}"]
    words = {"name": "mine", "wire": "openai-chat", "command": command, "recover_s": 0, **spec}
    words = {key: value for key, value in words.items() if value is not None}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(words))
    return await check(load_spec(tmp_path / "mine.yaml"), "embedded", tmp_path / "kept")


async def test_an_agent_that_shows_everything_is_well(tmp_path: Path):
    """A message, a tool round, a resume; the runs are kept where asked."""
    found = await looked(tmp_path)
    assert all(finding.ok for finding in found), found
    said = "\n".join(finding.says for finding in found)
    assert "openai-chat, not streamed, model 'm'" in said and "(tools: bash)" in said
    assert "continued the session" in said
    assert list((tmp_path / "kept").rglob("history.jsonl"))


OF_A_FILE = AGENT.replace("subprocess.run(command, shell=True, capture_output=True, text=True).stdout", "command")
"""Its tool takes a name, and gives it back."""


@pytest.mark.parametrize(
    ("own", "ok", "said"),
    [
        ({"name": "lookup", "args": {"file": "a"}}, True, "lookup was called and its result sent back"),
        ({"name": "pay"}, False, "own_tool: the agent advertises no tool pay (tools: lookup)"),
        (None, False, "write `own_tool: {name: lookup, args: {…}}`"),
    ],
)
async def test_a_tool_of_its_own_can_stand_in_for_a_shell(
    tmp_path: Path, own: dict[str, Any] | None, ok: bool, said: str
):
    """A spec that names none is told of the key."""
    code = OF_A_FILE.replace('["command"]', '["file"]')
    env = {"CALLED": "lookup", "TAKES": "file"}
    command = ["{python}", "-S", "{here}/agent.py", "{llm_url}", "{session_dir}/talk.json", "{message}"]
    found = await looked(tmp_path, code, env=env, command=command, own_tool=own)
    (told,) = [finding for finding in found if "lookup" in finding.says]
    assert (told.ok, said in told.says) == (ok, True), told


async def test_an_agent_with_a_shell_needs_no_other_tool(tmp_path: Path):
    """The key has no effect."""
    found = await looked(tmp_path, own_tool={"name": "lookup"})
    (told,) = [finding for finding in found if not finding.ok]
    assert told.says.startswith("own_tool has no effect") and told.sign == "n/a "


async def test_a_shell_tool_may_be_called_shell(tmp_path: Path):
    """Its name is listed like any other."""
    said = "\n".join(finding.says for finding in await looked(tmp_path, AGENT.replace("bash", "shell")))
    assert "a shell command was run and its result sent back (tools: shell)" in said


NEEDS_ONE = 'if os.environ.get("NO_TOOL") else'


async def test_tools_for_some_messages_only_are_no_background_calls(tmp_path: Path):
    """And the author reads why scenarios with tools are skipped."""
    found = await looked(tmp_path, AGENT.replace(NEEDS_ONE, 'if "command" not in message else'))
    said = "\n".join(finding.says for finding in found)
    assert "its requests offer bash only for some messages (tools for the first one: none)" in said
    assert "background calls" not in said and "no tool that takes a shell command" not in said


RUNS = "subprocess.run(command, shell=True, capture_output=True, text=True).stdout"


async def test_a_result_of_a_command_that_was_not_run_is_no_tool_round(tmp_path: Path):
    """An agent that asks for permission without a user sends a result too: the command's trace decides."""
    assert AGENT.count(RUNS) == 1
    (missing,) = [it for it in await looked(tmp_path, AGENT.replace(RUNS, '"denied"')) if not it.ok]
    assert missing.sign == "MISS" and missing.says.startswith(
        "a result came back without the shell command having been run (tools: bash): does the agent ask for permission?"
    )


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        (("done",), "a result came back before the shell command had ended (tools: bash)"),
        (("results",), "the shell command was run (tools: bash), but no request carried its result"),
        (("started", "done", "results"), "a shell tool is advertised (tools: bash), but its command was not run"),
        (("started", "done"), "its result came back, but it left no trace in the run's folder"),
    ],
)
async def test_what_is_lacking_of_a_tool_round_is_told_apart(tmp_path: Path, lost: tuple[str, ...], said: str):
    """It was not run, not to its end, not where we can see it, or its result was not sent."""
    await looked(tmp_path)
    whole = read(next((tmp_path / "kept").rglob("control/*/history.jsonl")))
    kept = [
        replace(it, results=()) if isinstance(it, RequestArrived) and "results" in lost else it for it in whole.events
    ]
    left = [it for it in kept if not (isinstance(it, BeaconSeen) and it.phase in lost)]
    facts = ControlFacts(True, tools=frozenset({"bash"}), shell=True, resumes=True)
    found = findings(load_spec(tmp_path / "mine.yaml"), facts, History(events=left).seal())
    (missing,) = [finding for finding in found if not finding.ok]
    assert said in missing.says and not missing.optional


async def test_tools_of_our_host_are_no_shell_and_are_tested(tmp_path: Path):
    """An agent may have no other tools: scenarios with these are played."""
    await looked(tmp_path)
    history = read(next((tmp_path / "kept").rglob("control/*/history.jsonl")))
    facts = ControlFacts(True, tools=frozenset({CONTROL_TOOL}), resumes=True, working_tools=(CONTROL_TOOL,))
    spec = load_spec(tmp_path / "mine.yaml")
    called, shell = [it for it in findings(spec, facts, history) if "tools:" in it.says]
    assert (
        called.ok and called.says == f"a tool of our host was called and its result sent back (tools: {CONTROL_TOOL})"
    )
    assert shell.sign == "n/a " and "scenarios with a shell are skipped" in shell.says


async def test_words_that_do_not_reach_the_model_are_missed(tmp_path: Path):
    """Whatever the model says is answered then, but to another question."""
    (missing,) = [it for it in await looked(tmp_path, AGENT.replace("= sys.argv[1:]", HI)) if not it.ok]
    assert missing.sign == "MISS" and missing.says == (
        "messages 1, 2 did not reach the model: no request holds their words; "
        "`command` has {message}: does the agent pass it on to the model as it is?"
    )


async def test_so_are_words_that_do_not_reach_a_model_that_refuses_the_request(tmp_path: Path):
    """The refusal is what follows: an agent whose message is empty or another argument is told why."""
    code = AGENT.replace("= sys.argv[1:]", HI).replace('"role": "user"', '"role": "hat"')
    refused, lost = [it.says for it in await looked(tmp_path, code) if not it.ok]
    assert refused.startswith("the provider refused its request without any fault: 400")
    assert lost.startswith("message 1 did not reach the model: no request holds its words; `command` has {message}")


@pytest.mark.parametrize(
    ("words", "key"),
    [
        ({"command": ["{python}", "{here}/agent.py", "hi"]}, "command"),
        ({"command": None, "http": {"start": ["{python}", "{port}"], "url": "/", "body": {"text": "hi"}}}, "http"),
    ],
)
async def test_a_spec_without_a_place_for_the_message_is_refused_at_once(
    tmp_path: Path, words: dict[str, Any], key: str
):
    """Nothing is played."""
    with pytest.raises(ProgramError, match=rf"mine.yaml:\d: {key}: the user's message does not reach the agent: write"):
        await looked(tmp_path, **words)
    assert not list((tmp_path / "kept").rglob("history.jsonl"))


@pytest.mark.parametrize(
    ("code", "resume", "said"),
    [
        (AGENT, "hi", "write {message} in `resume` where"),
        (AGENT.replace("= sys.argv[1:]", HI), "{message}", "`command` has {message}: does"),
    ],
)
async def test_what_is_said_of_lost_words_fits_the_spec(tmp_path: Path, code: str, resume: str, said: str):
    """The next message has its own command line; the hint is not given where {message} is present."""
    words = ["{python}", "-S", "-E", "{here}/agent.py", "{llm_url}", "{session_dir}/talk.json", resume]
    first = next(it for it in await looked(tmp_path, code, resume=words) if not it.ok)
    assert said in first.says and not first.optional


LISTENS = """\
import http.server, json, sys, urllib.request
class Service(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply(b"ready")
    def do_POST(self):
        said = self.rfile.read(int(self.headers["content-length"])).decode()
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": said}]}).encode()
        request = urllib.request.Request(sys.argv[2] + "/v1/chat/completions", body,
            {"content-type": "application/json", "authorization": "Bearer k"})
        self.reply(json.load(urllib.request.urlopen(request, timeout=20))["choices"][0]["message"]["content"].encode())
    def reply(self, body):
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Service).serve_forever()
"""


async def test_a_service_gets_its_words_in_the_body(tmp_path: Path):
    """Or in the URL, or a header."""
    start = ["{python}", "-S", "-E", "{here}/agent.py", "{port}", "{llm_url}"]
    service = {"start": start, "url": "/ask", "body": {"text": "{message}"}}
    found = await looked(tmp_path, LISTENS, command=None, http=service)
    assert not [finding for finding in found if not finding.ok and not finding.optional]


@pytest.mark.parametrize(
    ("code", "asked"),
    [("raise SystemExit('no key')", False), (LISTENS.replace("said = ", 'return self.reply(b"fine"); said = '), True)],
)
async def test_only_a_service_that_runs_is_asked_for_its_address(tmp_path: Path, code: str, asked: bool):
    """One that ended shows why it did."""
    start = ["{python}", "-S", "-E", "{here}/agent.py", "{port}", "{llm_url}"]
    service = {"start": start, "url": "/ask", "body": {"text": "{message}"}}
    (finding,) = await looked(tmp_path, code, command=None, http=service)
    assert ("does the service listen on {port}" in finding.says) == asked
    assert ("the service ended with exit code 1; it printed:\nno key" in finding.says) != asked


async def test_the_call_that_answered_is_named_and_not_the_one_for_a_title(tmp_path: Path):
    """Whichever came first."""
    title = """\
asked = {"model": "small", "messages": [{"role": "user", "content": "A title for: " + message}]}
post(url + "/v1/chat/completions", asked, {"authorization": "Bearer k"}, timeout_s=20).read()
while True:
"""
    found = await looked(tmp_path, AGENT.replace("while True:\n", title))
    assert found[0].says == "a message was answered: openai-chat, not streamed, model 'm'"


def until_called(tool: str, shown: str = "") -> str:
    """The part of an agent that asks again and again for a call of this tool; `shown` is how it reads its answer."""
    return f"""\
    if not any(call["function"]["name"] == "{tool}" for call in said.get("tool_calls") or []):
        talk.append({{"role": "user", "content": "Please call {tool}."}})
        tries = tries + 1 if "tries" in globals() else 1
        if tries < 3:
            continue
    else:
        talk.append({{"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": "ok"}})
        {shown or "pass"}
    if True:
"""


SUBMITS = until_called(
    "final_answer", 'said = {"content": json.loads(said["tool_calls"][0]["function"]["arguments"])["answer"]}'
)


@pytest.mark.parametrize(
    ("finish", "said"),
    [
        (None, "a text answer took 3 main calls, and each got the whole answer as text (tools: final_answer): if the"),
        ({"tool": "submit", "arg": "answer"}, "finish: the agent advertises no tool submit (tools: final_answer)"),
        ({"tool": "final_answer", "arg": "answer"}, ""),
    ],
)
async def test_an_agent_that_answers_by_a_tool_call_needs_finish(tmp_path: Path, finish: Any, said: str):
    """Without it, the agent asks again and again for the call; the finding proposes the line of the spec."""
    code = AGENT.replace('    if not said.get("tool_calls"):\n', SUBMITS)
    env = {"CALLED": "final_answer", "TAKES": "answer"}
    found = [it for it in await looked(tmp_path, code, env=env, finish=finish) if not it.ok and "shell" not in it.says]
    assert [it.says[: len(said) or 99] for it in found if not it.optional] == ([said] if said else [])
    if finish is None:
        assert "`finish: {tool: final_answer, arg: answer}`" in found[0].says


NO_ARGUMENTS = """\
tool["function"] |= {"name": "complete", "parameters": {"type": "object", "properties": {}}}
while True:
"""


@pytest.mark.parametrize("finish", [None, {"tool": "complete"}])
async def test_an_agent_whose_model_ends_a_turn_by_a_call_without_arguments_needs_finish(tmp_path: Path, finish: Any):
    """Its words are text before the call."""
    code = AGENT.replace('    if not said.get("tool_calls"):\n', until_called("complete")).replace(
        "while True:\n", NO_ARGUMENTS
    )
    found = [it for it in await looked(tmp_path, code, finish=finish) if not it.ok and not it.optional]
    assert ["write `finish: {tool: complete}`" in it.says for it in found] == ([True] if finish is None else [])


async def test_a_call_with_a_few_of_the_tools_beside_the_answer_is_no_second_answer(tmp_path: Path):
    """Such as that of a subagent which looks for what to remember."""
    beside = """\
named = [{"type": "function", "function": {**tool["function"], "name": f"look{n}"}} for n in range(4)]
aside = {"model": "m", "messages": talk, "tools": [tool, *named[:1]]}
tools["tools"] += named
post(url + "/v1/chat/completions", aside, {"authorization": "Bearer k"}, timeout_s=20).read()
while True:
"""
    found = await looked(tmp_path, AGENT.replace("while True:\n", beside))
    assert not [it.says for it in found if "main calls" in it.says]


@pytest.mark.parametrize(
    ("resume", "said"),
    [
        (None, "; if it can continue one, write `resume:`, its command line for later messages"),
        (
            ["{python}", "-S", "-E", "{here}/agent.py", "{llm_url}", "{session_dir}/talk.json", "again {message}"],
            "; is `resume:` right?",
        ),
    ],
)
async def test_a_session_that_is_not_continued_needs_a_command_line(tmp_path: Path, resume: Any, said: str):
    """The finding asks about the one that is there, or names the key."""
    found = await looked(tmp_path, AGENT, env={"FORGETS": "1"}, resume=resume)
    (lost,) = [it.says for it in found if "was not continued" in it.says]
    assert lost.endswith(f"does not hold the first{said}")


async def test_a_session_that_the_spec_names_and_the_agent_forgets_is_pointed_out(tmp_path: Path):
    """Its user would expect it, and scenarios would be red."""
    command = ["{python}", "-S", "{here}/agent.py", "{llm_url}", "{session_dir}/{session}.json", "{message}"]
    found = await looked(tmp_path, AGENT, env={"FORGETS": "1"}, command=command)
    (lost,) = [it.says for it in found if "was not continued" in it.says]
    assert "the spec names a session ({session})" in lost


async def test_calls_in_text_have_no_effect_beside_tools(tmp_path: Path):
    """A request that offers tools gets calls of its wire."""
    found = await looked(tmp_path, AGENT, calls_in_text={"shell": "run {command}"})
    says = "calls_in_text has no effect: the agent's requests offer tools (bash); leave the key out"
    assert says in [it.says for it in found]


def told(spec: Path, facts: ControlFacts, *events: HostRefused) -> list[str]:
    """What is said of a control run that showed this much."""
    return [finding.says for finding in findings(load_spec(spec), facts, History(events=events).seal())]


REFUSED = (
    HostRefused(host="telemetry.example.com", why="not among the spec's hosts"),
    HostRefused(host="10.0.0.1", why="an address"),
)


async def test_hosts_that_were_refused_are_told(tmp_path: Path):
    """They are listed, but are no error if the agent works without them; no host is listed twice."""
    await looked(tmp_path)
    well = read(next((tmp_path / "kept").rglob("control/*/history.jsonl")))
    both = History(events=[*well.events, *REFUSED]).seal()
    found = list(findings(load_spec(tmp_path / "mine.yaml"), ControlFacts(True), both))
    (line,) = [it for it in found if "telemetry" in it.says]
    hosts = "telemetry.example.com (not among the spec's hosts), 10.0.0.1 (an address)"
    assert line.says == f"it requested hosts that were refused: {hosts}; declare them under `hosts:` if needed"
    assert line.optional and not line.ok
    failed = told(tmp_path / "mine.yaml", ControlFacts(False, "it asked for telemetry.example.com."), *REFUSED)
    assert failed[1:] == [
        "it requested hosts that were refused: 10.0.0.1 (an address); declare them under `hosts:` if needed"
    ]


@pytest.mark.parametrize(
    ("roles", "end"),
    [
        ({"read_file", "write_file", "edit_file"}, "apply"),
        ({"write_file", "edit_file"}, "apply"),  # its model reads by commands
        ({"read_file", "write_file"}, "apply, but not those that call edit_file: no tool was taken for that"),
        ({"read_file"}, "apply, but not those that call write_file or edit_file: no tool was taken for that"),
    ],
)
async def test_what_no_tool_is_known_for_is_told(tmp_path: Path, roles: set[str], end: str):
    """Its author has such a tool, of another shape, and else learns of it only from the skipped scenarios."""
    await looked(tmp_path)
    history = read(next((tmp_path / "kept").rglob("control/*/history.jsonl")))
    facts = ControlFacts(True, file_tools=frozenset(roles))
    (line,) = [it.says for it in findings(load_spec(tmp_path / "mine.yaml"), facts, history) if "for files" in it.says]
    assert (
        line == f"it has tools of its own for files ({', '.join(sorted(roles))}): the scenarios of the tag files {end}"
    )


def test_a_runtime_that_does_not_start_is_told_how_to_be_installed_again(tmp_path: Path):
    """Its installation may be broken, and the file that says how to talk to it is seldom wrong."""
    spec = tmp_path / "mine.yaml"
    runtime = "runtime: {npm: [x], version: '1.2', licence: MIT, same_as: pi}\n"
    spec.write_text("name: mine\nwire: openai-chat\ncommand: ['{bin}/x', '{message}']\n" + runtime)
    (line,) = told(spec, ControlFacts(False, f"{spec}: cannot start '/x': No such file or directory"))
    again = "If its installation is broken: wedgehog agents install pi@1.2 --again"
    assert line == f"cannot start '/x': No such file or directory. {again}"
    for other in (runtime.replace(", same_as: pi", ""), ""):
        spec.write_text(f"name: mine\nwire: openai-chat\ncommand: ['x', '{{message}}']\n{other}")
        (line,) = told(spec, ControlFacts(False, f"{spec}: cannot start 'x'"))
        assert line == f"{spec}: cannot start 'x'", "nothing of that name can be installed"


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"FORGETS": "1"}, "the session was not continued"),
        ({"NO_TOOL": "1"}, "no tool that takes a shell command is advertised (tools: none)"),
        ({"NO_TOOL": "1"}, "If its model writes tool calls in its text, say how in `calls_in_text: {shell:"),
        ({"TAKES": "file", "CALLED": "shell"}, "scenarios with tools are skipped. A shell is known by its name"),
    ],
)
async def test_what_is_not_there_makes_scenarios_not_apply(tmp_path: Path, env: dict[str, str], said: str):
    """It is said, and is no mistake of the spec."""
    command = ["{python}", "-S", "{here}/agent.py", "{llm_url}", "{session_dir}/talk.json", "{message}"]
    missing = [finding for finding in await looked(tmp_path, env=env, command=command) if not finding.ok]
    assert [finding.optional for finding in missing] == [True] and said in missing[0].says
    assert missing[0].sign == "n/a "


@pytest.mark.parametrize(
    ("code", "spec", "said"),
    [
        ("print('hello')", {}, "no request for the model arrived"),
        ("import sys; sys.exit('no config')", {}, "it said 'no config': no request for the model arrived"),
        (AGENT, {"wire": "anthropic"}, "the spec says wire anthropic, and the agent called openai-chat"),
        (AGENT.replace('print(said["content"])', "print('ok')"), {}, "is `answer:` right?"),
    ],
)
async def test_what_is_missing_is_said_in_words(tmp_path: Path, code: str, spec: dict[str, object], said: str):
    """No request, a wrong wire, an answer that is read from the wrong place."""
    (finding,) = await looked(tmp_path, code, **spec)
    assert not finding.ok and not finding.optional and said in finding.says


async def test_a_program_that_does_not_exist_is_named_with_the_place_where_it_was_looked_for(tmp_path: Path):
    """Nothing is played, and no file of ours is named."""
    with pytest.raises(ProgramError) as wrong:
        await looked(tmp_path, command=["no-such-program", "{message}"])
    path = os.environ["PATH"]
    assert str(wrong.value) == f"{tmp_path}/mine.yaml:1: command: there is no program 'no-such-program' in {path}"


CALM = """\
import json, sys
from plain_http import post
url, file, message = sys.argv[1:]
body = {"model": "m", "messages": [{"role": "user", "content": message}]}
try:
    reply = post(url + "/v1/chat/completions", body, {"authorization": "Bearer k"}, timeout_s=20)
    print(json.loads(reply.read())["choices"][0]["message"]["content"])
except OSError:
    print("WORDS")
"""


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        ("I couldn't reach the language model: its server is not responding", "I couldn''t reach the language model"),
        ("Das Sprachmodell antwortet nicht. Bitte warten.", "Das Sprachmodell antwortet nicht"),
        ("Lo siento, el servicio del modelo ha fallado (401).", "Lo siento"),  # its other errors may have no number
    ],
)
async def test_words_that_no_pattern_knows_as_an_error_are_proposed_for_the_spec(
    tmp_path: Path, words: str, pattern: str
):
    """With the pattern in the spec nothing is proposed any more."""
    calm = CALM.replace("WORDS", words)
    said = [it.says for it in await looked(tmp_path, calm) if "refused key" in it.says]
    assert len(said) == 1 and said[0].endswith(f"if they name one, write `errors: ['{pattern}']`"), said
    known = await looked(tmp_path, calm, errors=[pattern.replace("''", "'")])
    assert not [it for it in known if "refused key" in it.says]


EVENTS = """\
import json, sys
from plain_http import post
url, key = sys.argv[1], {"authorization": "Bearer k"}
talk = []
for line in sys.stdin:
    talk.append({"role": "user", "content": json.loads(line)["prompt"]})
    body = {"model": "m", "messages": talk}
    print(json.dumps({"event": "thinking"}), flush=True)
    try:
        reply = post(url + "/v1/chat/completions", body, key)
        talk.append(json.loads(reply.read())["choices"][0]["message"])
        print(json.dumps({"event": "done", "output": talk[-1]["content"]}), flush=True)
    except OSError as wrong:
        print(json.dumps({"event": "failed", "message": str(wrong)}), flush=True)
"""


@pytest.mark.parametrize(
    ("done", "says"),
    [
        (
            '"output":',
            "after a refused key the turn did not end within 1 s: these lines came and none fits `done`: "
            '{"event": "thinking"}, {"event": "failed", "message": "HTTP Error 401: Unauthorized"}; if the last one '
            """ends the turn, write `done: '"event": *"(done|failed)"'`, and `error: jsonl:message` or """
            "`answer: jsonl:message`",
        ),
        ('"event": *"(done|failed)"', ""),
    ],
)
async def test_a_turn_that_no_line_ends_is_told_with_its_lines(tmp_path: Path, done: Any, says: str):
    """An agent whose error is another line than its answer waits for ever; one that ends with both is well."""
    start = ["{python}", "-S", "-E", "{here}/agent.py", "{llm_url}"]
    talks = {"start": start, "send": {"prompt": "{message}"}, "done": done, "answer": "jsonl:output"}
    lines = talks | {"error": "jsonl:message"} if not says else talks
    said = [it.says for it in await looked(tmp_path, EVENTS, command=None, lines=lines, limits={"turn_s": 1})]
    late = [it for it in said if "did not end" in it]
    assert bool(late) == bool(says) and all(says in it for it in late[:1]), said


async def test_a_process_whose_first_turn_did_not_end_is_asked_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Each further turn would only end at its deadline; what they would show is not said."""
    monkeypatch.setattr(job, "TURN_S", 1.0)
    start = ["{python}", "-S", "-E", "{here}/agent.py", "{llm_url}"]
    talks = {"start": start, "send": {"prompt": "{message}"}, "done": "never", "answer": "jsonl:output"}
    *_, last = [it.says for it in await looked(tmp_path, EVENTS, command=None, lines=talks)]
    assert last.startswith("turn 1: answered, but it did not end within 1 s: these lines came")
    assert not list((tmp_path / "kept").rglob("key-refused"))
