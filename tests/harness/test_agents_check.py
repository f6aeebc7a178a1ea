"""Whether a spec fits its agent, in words that its author can act on."""

from pathlib import Path

import pytest
import yaml

from wedgehog.harness.agents.spec import load_spec
from wedgehog.harness.agents_check import Finding, check

AGENT = """\
import json, os, subprocess, sys, urllib.request
url, file, message = sys.argv[1:]
talk = json.load(open(file)) if os.path.exists(file) and not os.environ.get("FORGETS") else []
talk.append({"role": "user", "content": message})
tool = {"type": "function", "function": {"name": os.environ.get("CALLED", "bash"), "parameters": {"type": "object",
    "properties": {os.environ.get("TAKES", "command"): {"type": "string"}}}}}
tools = {} if os.environ.get("NO_TOOL") else {"tools": [tool]}
while True:
    body = json.dumps({"model": "m", "messages": talk, **tools}).encode()
    request = urllib.request.Request(url + "/v1/chat/completions", body,
        {"content-type": "application/json", "authorization": "Bearer k"})
    said = json.load(urllib.request.urlopen(request, timeout=20))["choices"][0]["message"]
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


async def looked(tmp_path: Path, code: str = AGENT, **spec: object) -> list[Finding]:
    """What is found about an agent with this code."""
    (tmp_path / "agent.py").write_text(code)
    command = ["{python}", "-S", "-E", "{here}/agent.py", "{llm_url}", "{session_dir}/talk.json", "{message}"]
    words = {"name": "mine", "wire": "openai-chat", "command": command, "recover_s": 0, **spec}
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


async def test_a_shell_tool_may_be_called_shell(tmp_path: Path):
    """Its name is told like any other."""
    said = "\n".join(finding.says for finding in await looked(tmp_path, AGENT.replace("bash", "shell")))
    assert "a shell command was run and its result sent back (tools: shell)" in said


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"FORGETS": "1"}, "the session was not continued"),
        ({"NO_TOOL": "1"}, "no tool that takes a shell command is advertised (tools: none)"),
        ({"TAKES": "file", "CALLED": "shell"}, "no tool that takes a shell command is advertised (tools: shell)"),
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
        ("import sys; sys.exit('no config')", {}, "exit code 1. Its last words: no config"),
        (AGENT, {"wire": "anthropic"}, "the spec says wire anthropic, and the agent called openai-chat"),
        (AGENT.replace('print(said["content"])', "print('ok')"), {}, "is `answer:` right?"),
    ],
)
async def test_what_is_missing_is_said_in_words(tmp_path: Path, code: str, spec: dict[str, object], said: str):
    """No request, a wrong wire, an answer that is read from the wrong place."""
    (finding,) = await looked(tmp_path, code, **spec)
    assert not finding.ok and not finding.optional and said in finding.says
