"""Agents that hang, looked at before they are ended: what they waited for, in the run folder and in one sentence."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wedgehog.harness.record.events.turn import HangSeen
from wedgehog.harness.record.history import read
from wedgehog.harness.sandbox.stacks import py_spy

WAITS = """\
import json, os, subprocess, sys, threading
from plain_http import post
url, session, message = sys.argv[1:4]
def ask():
    body = {"model": "m", "max_tokens": 999, "messages": [{"role": "user", "content": message}]}
    headers = {"x-api-key": os.environ["KEY"], "anthropic-version": "2023-06-01"}
    return json.loads(post(url + "/v1/messages", body, headers, timeout_s=100).read())["content"][0]["text"]
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


STALLS = [{"at": {"byte": 10}, "do": {"stall": "forever"}}]
STORIES: dict[str, dict[str, Any]] = {
    "stalls": {"user": "Go on", "faults": STALLS},
    "lost": {"user": "lost"},
    "child": {"user": "child"},
}
Seen = tuple[HangSeen, dict[str, Any], str]


@pytest.fixture
def hang(wedgehog: Any, told: Any, tmp_path: Path) -> Callable[..., dict[str, Seen]]:
    """Plays stories until their deadline, side by side: what was seen, the file, and what the terminal said."""

    def played(stories: dict[str, Any], specs: dict[str, str], network: str = "--network=embedded") -> dict[str, Seen]:
        names = [told(name, **words) for name, words in stories.items()]
        ran = wedgehog("run", *names, *(word for spec in specs.values() for word in ("--agent", spec)), network)
        assert ran.returncode == 1, ran.stderr + ran.stdout
        stdout, found = " ".join(ran.stdout.split()), {}
        for story, name in ((story, name) for story in stories for name in specs):
            folder = tmp_path / "runs" / "latest" / story / name
            assert json.loads((folder / "verdicts.json").read_text())["verdict"] == "fail"
            seen = next(read(folder / "history.jsonl").of(HangSeen))
            found[story if len(specs) == 1 else name] = seen, json.loads((folder / seen.file).read_text()), stdout
        return found

    return played


_PLAYED: dict[str, dict[str, Seen]] = {}


@pytest.fixture
def hung(hang: Any, agent: Any) -> dict[str, Seen]:
    """What came of all stories through the embedded network; played once."""
    if "python" not in _PLAYED:
        _PLAYED["python"] = hang(STORIES, {"mine": agent(code=WAITS, limits={"turn_s": 2})})
    return _PLAYED["python"]


@pytest.mark.parametrize("name", ["embedded", "toxiproxy"])
def test_a_stalled_reply_is_named_with_its_call_and_its_link(
    hang: Any, agent: Any, request: pytest.FixtureRequest, name: str
):
    """Through either network; the sentence stands in the verdict, and so in the terminal."""
    if name == "embedded":
        seen, kept, stdout = request.getfixturevalue("hung")["stalls"]
    else:
        spec = agent(code=WAITS, limits={"turn_s": 2})
        story = {"stalls": STORIES["stalls"]}
        seen, kept, stdout = hang(story, {"mine": spec}, request.getfixturevalue("toxiproxy"))["stalls"]
    assert seen.says.startswith("it waited for the reply to call 1 on llm, open since ")
    assert f"turn_deadline: turn 1 gave no answer and no error within 2.0 s: {seen.says}" in stdout
    (process,) = kept["processes"]
    (peer,) = kept["peers"]
    assert (peer["link"], peer["state"], peer["pid"]) == ("llm", "ESTABLISHED", process["pid"])
    assert process["argv"][-1].endswith("Go on") and process["state"] == "sleeping"


@needs_py_spy
def test_a_thread_that_waits_for_what_will_never_come_is_found(hung: dict[str, Seen]):
    """No call, no tool and no connection is open: only its stack can say it."""
    seen, kept, _ = hung["lost"]
    if kept["stacks"][0]["why_not"]:
        pytest.skip(f"another's memory may not be read here: {kept['stacks'][0]['why_not']}")
    assert seen.says in (
        "no call, no tool and no connection to the model or a tool was open; its last call, 1, was answered whole; "
        f"thread MainThread in mine.py:9 {function}"
        for function in ("wait", "Condition.wait")  # as the version of py-spy has it
    )
    assert [frame["function"] for frame in kept["stacks"][0]["threads"][0]["frames"]][-2:] == [
        "lost_result",
        "<module>",
    ]


def test_a_child_that_still_runs_is_named(hung: dict[str, Seen]):
    """With both processes in the file."""
    seen, kept, _ = hung["child"]
    assert seen.says.startswith("no call was open; its process `sleep 600` still ran")
    leader, child = kept["processes"]
    assert child["parent"] == leader["pid"] and child["argv"] == ["sleep", "600"]


@pytest.fixture
def hung_nodes(hang: Any, agent: Any, tmp_path: Path) -> dict[str, Seen]:
    """Two programs of Node, one started to give reports; played once."""
    if "node" not in _PLAYED:
        (tmp_path / "agent.js").write_text(NODE)
        command = [shutil.which("node"), "{here}/agent.js", "{llm_url}", "{session_dir}", "{message}"]
        specs = {
            name: agent(name, command=command, env={"KEY": "{key}", **options}, limits={"turn_s": 2})
            for name, options in {"silent": {}, "reports": {"NODE_OPTIONS": "--report-on-signal"}}.items()
        }
        _PLAYED["node"] = hang({"stalls": STORIES["stalls"]}, specs)
    return _PLAYED["node"]


@pytest.mark.skipif(shutil.which("node") is None, reason="no node")
@pytest.mark.parametrize("reports", [True, False])
def test_a_node_is_asked_for_its_report_only_where_it_was_started_to_give_one(
    hung_nodes: dict[str, Seen], reports: bool
):
    """Any other would be killed by the signal, and the harness would have done it."""
    seen, kept, _ = hung_nodes["reports" if reports else "silent"]
    assert seen.says.startswith("it waited for the reply to call 1 on llm")
    assert bool(kept["node_reports"]) is reports
    if reports:
        (report,) = kept["node_reports"].values()
        handles = {handle["type"] for handle in report["libuv"]}
        assert "tcp" in handles and "environmentVariables" not in report
