"""What `wedgehog init` proposes for programs that Node runs and that take lines."""

import re
from pathlib import Path

import pytest

from wedgehog.harness.commands.first_spec.propose import propose

READS = """
import readline from "node:readline";
const rl = readline.createInterface({ input: process.stdin });
// const { wrong } = JSON.parse(line);
const save = (kept) => fs.writeFileSync(file, JSON.stringify({ query: kept, answer: 1 }));
const ask = (body) => fetch(url, { method: "POST", body: JSON.stringify({ model: "m", messages: body }) });
"""
ERROR = {"done": '"(reply|error)":.*}$', "error": "jsonl:error"}


def whole(reads: str, writes: str) -> str:
    return f'{READS}rl.on("line", async (line) => {{\n{reads}\n{writes}\n}});\n'


@pytest.mark.parametrize(
    ("reads", "send"),
    [
        ("const text = JSON.parse(line).text;", {"text": "{message}"}),
        ("const { type, prompt, id } = JSON.parse(line.trim());", {"prompt": "{message}"}),
        ("const it = JSON.parse(line); go(it.id, it.question.trim());", {"question": "{message}"}),
        ("const it: Asked = JSON.parse(line) as Asked; go(it?.input);", {"input": "{message}"}),
        ("const it = JSON.parse(line); const { message, sessionId } = it;", {"message": "{message}"}),
        (
            "const it = JSON.parse(line); if (it.type !== 'user') return; go(it.words);",
            {"type": "user", "words": "{message}"},
        ),
        ("function turn(got) { go(got.utterance, got.id) }\nturn(JSON.parse(line))", {"utterance": "{message}"}),
        (
            "const turn = async (got) => go(got.utterance);\nconst it = JSON.parse(line); turn(it)",
            {"utterance": "{message}"},
        ),
    ],
)
def test_the_key_of_a_message_is_the_one_that_is_read(tmp_path: Path, reads: str, send: dict[str, str]):
    """By a usual name, or because it is the only one beside an id and the like."""
    (tmp_path / "agent.mjs").write_text(whole(reads, "console.log(JSON.stringify({ reply: said }))"))
    assert propose(tmp_path).talks == {"send": send, "answer": "jsonl:reply", "done": '"reply":.*}$'}


@pytest.mark.parametrize(
    ("writes", "keys"),
    [
        ("console.log(JSON.stringify({ reply }));\nconsole.log(JSON.stringify({ error: `${e}` }));", ERROR),
        ("process.stdout.write(JSON.stringify({ id: it.id, said: x }) + '\\n')", {"done": '"said":.*}$'}),
        ("process.stdout.write(`${JSON.stringify({ type: 'done', output: f(x, y) })}\\n`)", {"done": '"output":.*}$'}),
        (
            "const emit = (e) => process.stdout.write(JSON.stringify(e) + '\\n');\n"
            "emit({ type: 'result', result: { text: said, id: 1 } });",
            {"done": '"text":.*}$', "answer": "jsonl:result.text"},
        ),
        ("function out(e) {\n  console.log(JSON.stringify(e));\n}\nout({ reply: x }); out({ error: y });", ERROR),
    ],
)
def test_the_key_of_an_answer_is_the_one_that_is_printed(tmp_path: Path, writes: str, keys: dict[str, str]):
    """Also by a function that prints what it gets; what is sent or stored elsewhere is no answer."""
    (tmp_path / "agent.mjs").write_text(whole("const text = JSON.parse(line).text;", writes))
    named = re.match(r'"\(?(\w+)', keys["done"])
    answer = keys.get("answer", f"jsonl:{named and named[1]}")
    assert propose(tmp_path).talks == {"send": {"text": "{message}"}, "answer": answer, **keys}


@pytest.mark.parametrize(
    ("code", "sign"),
    [
        ("createInterface({ input, prompt: 'you> ' }); rl.prompt()", "^you> $"),
        ('createInterface({ input }); rl.setPrompt("> ")', "^> $"),
        ("createInterface({ input }); rl.question('\\nAsk me: ', go)", "^Ask me: $"),
        ("createInterface({ input }); rl.question(`${name}> `, go)", ""),
        ("createInterface({ input }); rl.question('', go)", ""),
    ],
)
def test_a_prompt_of_readline_ends_each_turn(tmp_path: Path, code: str, sign: str):
    """It says that a message is taken, too."""
    (tmp_path / "chat.js").write_text(f"const rl = readline.{code};\n")
    proposed = propose(tmp_path)
    assert (proposed.kind, proposed.talks) == ("lines", {"ready": sign, "done": sign} if sign else {})


@pytest.mark.parametrize("reads", ["JSON.parse(line)", "const it = JSON.parse(line); go(it.left, it.right)"])
def test_what_the_source_does_not_show_is_left_to_a_guess(tmp_path: Path, reads: str):
    """Two unusual names are no proposal."""
    (tmp_path / "agent.mjs").write_text(whole(reads, "console.log(JSON.stringify({ reply: said }))"))
    assert propose(tmp_path).talks == {}


PLAIN = """
import * as readline from "node:readline";
for await (const line of readline.createInterface({ input: process.stdin })) {
  try {
    console.log(JSON.stringify({ answer: await ask(line) }));
  } catch (error) {
    console.log(JSON.stringify({ error: error.message }));
  }
}
"""


def test_a_program_can_take_plain_lines_and_answer_in_json(tmp_path: Path):
    """No key says how a message is written: it is the line."""
    keys = {"done": '"(answer|error)":.*}$', "answer": "jsonl:answer", "error": "jsonl:error"}
    (tmp_path / "agent.mjs").write_text(PLAIN)
    assert propose(tmp_path).talks == keys
