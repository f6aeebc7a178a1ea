"""What `wedgehog init` proposes for programs of JSON lines that hand each message to a function."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from wedgehog.harness.agents.spec import load_spec
from wedgehog.harness.commands.cli import app
from wedgehog.harness.commands.first_spec.propose import propose

TURN = """
import json, sys
def keep(kept): FILE.write(json.dumps(kept))
def emit(event): print(json.dumps(event), flush=True)
def turn(pool, asked):
    try:
        keep({"role": "user", "reply": 1})
        emit({"event": "answer", "id": asked.get("id"), "text": model(asked["text"])})
    except Exception as wrong:
        emit({"event": "failed", "error": str(wrong)})
"""
METHOD = """
class Agent:
    def turn(self, it, again=False):
        print(json.dumps({"reply": model(it["prompt"])}))
    async def run(self):
        for line in sys.stdin:
            asked = json.loads(line)
            CALL
"""


@pytest.mark.parametrize(
    "loop",
    [
        "for line in sys.stdin:\n    pool.submit(turn, 1, json.loads(line))",
        "for line in sys.stdin:\n    asked = json.loads(line)\n    pool.submit(turn, 1, asked)",
        "for line in sys.stdin:\n    turn(1, json.loads(line))",
        "for line in sys.stdin:\n    turn(1, asked=json.loads(line))",
        "def got(it): turn(1, it)\nfor line in sys.stdin:\n    got(json.loads(line))",
        "for line in sys.stdin:\n    Thread(target=turn, args=(1, json.loads(line))).start()",
    ],
)
def test_a_message_is_followed_into_the_function_that_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loop: str
):
    """Through a pool, a thread or a plain call; the answer is followed into the function that prints it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text(TURN + loop)
    done = CliRunner().invoke(app, ["init", "--yes"])
    assert done.exit_code == 0, done.output
    spec = load_spec(tmp_path / "agent.yaml")
    assert spec.lines is not None
    assert (spec.lines.send, spec.lines.done) == ({"text": "{message}"}, '"(text|error)":.*}$')
    assert (spec.lines.answer, spec.lines.error) == ("jsonl:text", "jsonl:error")


@pytest.mark.parametrize("call", ["self.turn(asked)", "asyncio.create_task(self.turn(asked))", "go(self.turn, asked)"])
def test_a_message_is_followed_into_a_method(tmp_path: Path, call: str):
    """Its `self` is not counted."""
    (tmp_path / "agent.py").write_text(METHOD.replace("CALL", call))
    assert propose(tmp_path).talks == {"send": {"prompt": "{message}"}, "done": '"reply":.*}$', "answer": "jsonl:reply"}


def test_another_value_of_a_function_is_no_message(tmp_path: Path):
    """Only the parameter that gets the parsed line counts, and a program that reads no key of it has no message."""
    loop = "for line in sys.stdin:\n    pool.submit(turn, json.loads(line), {})"
    (tmp_path / "loop.py").write_text(TURN + loop)
    assert propose(tmp_path).command is None


PLAIN = """
import json, sys
kept = json.loads(open("session.json").read())
for line in sys.stdin:
    PRINTS
"""


@pytest.mark.parametrize(
    ("prints", "talks"),
    [
        ('print(json.dumps({"answer": ask(line)}))', {"done": '"answer":.*}$', "answer": "jsonl:answer"}),
        (
            'print(json.dumps({"said": ask(line), "ok": True}))\n    print(json.dumps({"failure": "no", "ok": False}))',
            {"done": '"(said|failure)":.*}$', "answer": "jsonl:said", "error": "jsonl:failure"},
        ),
        ('print(ask(line))\n    print("<<END>>", flush=True)', {"done": "^<<END>>$"}),
        ('print(json.dumps({"left": ask(line), "right": 1}))', {}),
        ("print(ask(line))", {}),
        ('print(json.dumps({"answer": json.loads(line)}))', {}),
    ],
)
def test_a_program_may_take_plain_lines(tmp_path: Path, prints: str, talks: dict[str, str]):
    """And answer in JSON, with an unusual name too if it is the only one, or end each answer with one line."""
    (tmp_path / "agent.py").write_text(PLAIN.replace("PRINTS", prints))
    found = propose(tmp_path)
    assert (found.kind, found.talks) == (("lines", talks) if talks else ("command", {}))
    (tmp_path / "agent.py").rename(tmp_path / "filter.py")
    assert propose(tmp_path).command is None


def test_a_json_line_may_have_an_unusual_name(tmp_path: Path):
    """If it is the only one that the program reads, beside an id and the like."""
    printed = 'it = json.loads(line); print(json.dumps({"body": it["utterance"], "id": it["id"]}))'
    (tmp_path / "loop.py").write_text(PLAIN.replace("PRINTS", printed))
    assert propose(tmp_path).talks == {
        "send": {"utterance": "{message}"},
        "done": '"body":.*}$',
        "answer": "jsonl:body",
    }
