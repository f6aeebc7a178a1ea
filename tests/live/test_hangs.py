"""Agents that hang, looked at before they are ended: what they waited for, in the run folder and in one sentence."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wedgehog.harness.record.event import HangSeen
from wedgehog.harness.record.history import read
from wedgehog.harness.sandbox.stacks import py_spy

WAITS = """\
import json, os, socket, subprocess, sys, threading, urllib.request
url, session, message = sys.argv[1:4]
def ask():
    body = {"model": "m", "max_tokens": 999, "messages": [{"role": "user", "content": message}]}
    request = urllib.request.Request(url + "/v1/messages", json.dumps(body).encode(), {
        "content-type": "application/json", "x-api-key": os.environ["KEY"], "anthropic-version": "2023-06-01"})
    return json.load(urllib.request.urlopen(request, timeout=100))["content"][0]["text"]
def lost_result():
    threading.Event().wait()
answer = ask()
if "child" in message:
    subprocess.run(["sleep", "600"])
if "lost" in message:
    lost_result()
print(answer, flush=True)
"""

NODE = """\
const [url, session, message] = process.argv.slice(2)
const body = JSON.stringify({model: 'm', max_tokens: 999, messages: [{role: 'user', content: message}]})
const headers = {'content-type': 'application/json', 'x-api-key': process.env.KEY, 'anthropic-version': '2023-06-01'}
fetch(url + '/v1/messages', {method: 'POST', headers, body}).then(reply => reply.json()).then(told => {
  if (message.includes('busy')) for (;;) {}
  console.log(told.content[0].text)
})
"""

needs_py_spy = pytest.mark.skipif(py_spy() is None, reason="py-spy is not installed (the extra `forensics`)")


@pytest.fixture
def hang(wedgehog: Any, told: Any, agent: Any, tmp_path: Path) -> Callable[..., tuple[HangSeen, dict[str, Any], str]]:
    """Plays one story until its deadline: what was seen, the file, and what the terminal said."""

    def played(
        user: str, network: str = "--network=embedded", faults: Any = (), code: str = WAITS, **words: Any
    ) -> tuple[HangSeen, dict[str, Any], str]:
        turns = [{"user": user, "model": [{"text": "Done {nonce}"}]}]
        story = told("hangs", turns=turns, faults=list(faults))
        ran = wedgehog("run", story, "--agent", agent(code=code, limits={"turn_s": 2}, **words), network)
        assert ran.returncode == 1, ran.stderr + ran.stdout
        folder = tmp_path / "runs" / "latest" / "hangs" / "mine"
        seen = next(read(folder / "history.jsonl").of(HangSeen))
        return seen, json.loads((folder / seen.file).read_text()), " ".join(ran.stdout.split())

    return played


def test_a_stalled_reply_is_named_with_its_call_and_its_link(hang: Any, network: str):
    """Through either network; the sentence stands in the verdict, and so in the terminal."""
    seen, kept, stdout = hang("Go on", network, faults=[{"at": {"byte": 10}, "do": {"stall": "forever"}}])
    assert seen.says.startswith("it waited for the reply to call 1 on llm, open since ")
    assert f"turn_deadline: turn 1 gave no answer and no error within 2.0 s: {seen.says}" in stdout
    (process,) = kept["processes"]
    (peer,) = kept["peers"]
    assert (peer["link"], peer["state"], peer["pid"]) == ("llm", "ESTABLISHED", process["pid"])
    assert process["argv"][-1].endswith("Go on") and process["state"] == "sleeping"


@needs_py_spy
def test_a_thread_that_waits_for_what_will_never_come_is_found(hang: Any):
    """No call, no tool and no connection is open: only its stack can say it."""
    seen, kept, _ = hang("lost")
    if kept["stacks"][0]["why_not"]:
        pytest.skip(f"another's memory may not be read here: {kept['stacks'][0]['why_not']}")
    assert seen.says in (
        "no call, no tool and no connection was open; its last call, 1, was answered whole; "
        f"thread MainThread in mine.py:9 {function}"
        for function in ("wait", "Condition.wait")  # as the version of py-spy has it
    )
    assert [frame["function"] for frame in kept["stacks"][0]["threads"][0]["frames"]][-2:] == [
        "lost_result",
        "<module>",
    ]


def test_a_child_that_still_runs_is_named(hang: Any):
    """With both processes in the file."""
    seen, kept, _ = hang("child")
    assert seen.says.startswith("no call was open; its process `sleep 600` still ran")
    leader, child = kept["processes"]
    assert child["parent"] == leader["pid"] and child["argv"] == ["sleep", "600"]


@pytest.mark.skipif(shutil.which("node") is None, reason="no node")
@pytest.mark.parametrize("reports", [True, False])
def test_a_node_is_asked_for_its_report_only_where_it_was_started_to_give_one(hang: Any, tmp_path: Path, reports: bool):
    """Any other would be killed by the signal, and the harness would have done it."""
    (tmp_path / "agent.js").write_text(NODE)
    env = {"KEY": "{key}", **({"NODE_OPTIONS": "--report-on-signal"} if reports else {})}
    seen, kept, _ = hang(
        "Go on",
        faults=[{"at": {"byte": 10}, "do": {"stall": "forever"}}],
        command=[shutil.which("node"), "{here}/agent.js", "{llm_url}", "{session_dir}", "{message}"],
        env=env,
    )
    assert seen.says.startswith("it waited for the reply to call 1 on llm")
    assert bool(kept["node_reports"]) is reports
    if reports:
        (report,) = kept["node_reports"].values()
        handles = {handle["type"] for handle in report["libuv"]}
        assert "tcp" in handles and "environmentVariables" not in report
