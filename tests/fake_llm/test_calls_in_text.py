"""Tool calls that the model writes in its text."""

import json
from typing import Any

import pytest

from wedgehog.fake_llm.reply import Reply, Text, Thinking, ToolCall, UnscriptedError
from wedgehog.fake_llm.script.calls_in_text import CallsInText, placeholders
from wedgehog.fake_llm.script.roles import find_fetch, find_shell, find_subagent

REACT = "Thought: {words}\nAction: shell\nAction Input: {command}"
TAGS = "<command>{command}</command>\n<cwd>{cwd}</cwd>"
JSON = '{"thought": "{words}", "action": "shell", "input": "{command}"}'


def written(template: str, call: ToolCall, *said: Text | Thinking) -> Text:
    items = CallsInText({"shell": template}).written(Reply((*said, call), stop="tool")).items
    assert isinstance(items[-1], Text)
    return items[-1]


def shell(command: str, **other: str) -> ToolCall:
    return ToolCall("shell", {"command": command, **other}, "t1x1x1a1")


@pytest.mark.parametrize(
    ("template", "text"),
    [
        (REACT, 'Thought: I "look".\nAction: shell\nAction Input: echo "a"'),
        ("```bash\n{command}\n```", 'I "look".\n```bash\necho "a"\n```'),
        (JSON, '{"thought": "I \\"look\\".", "action": "shell", "input": "echo \\"a\\""}'),
        ("shell({args})", 'I "look".\nshell({"command": "echo \\"a\\""})'),
    ],
)
def test_a_call_is_the_template_with_its_arguments(template: str, text: str):
    """The model's words come first, or where the template says; between quotes a value is as in JSON."""
    found = written(template, shell('echo "a"'), Text('I "look".'))
    assert found.text == text
    assert found.words == 'I "look".'


def test_a_call_without_words_says_nothing_to_the_user():
    """The template's own text is no word of the model."""
    assert written("```bash\n{command}\n```", shell("ls")).words == ""


def test_the_rest_of_the_reply_stays():
    """Its thoughts, its pace and where it stops; that it stops for a tool is a thing of the wire."""
    calls = CallsInText({"shell": REACT})
    reply = calls.written(Reply((Thinking("Hm."), Text("I look.", 7), shell("ls")), stop="tool"))
    assert reply.items[0] == Thinking("Hm.") and isinstance(reply.items[1], Text) and reply.items[1].pace_ms == 7
    assert reply.stop is None
    assert calls.written(Reply((Text("Done."),), stop="end")) == Reply((Text("Done."),), stop="end")


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ('{"command": "echo \\"a', '<command>echo "a'),
        ('{"command": "ls", "cwd": "/t', "<command>ls</command>\n<cwd>/t"),
        ('{"comm', "<command>"),
        ("", "<command>"),
    ],
)
def test_a_call_that_was_cut_ends_where_it_was_cut(raw: str, text: str):
    """At the same character of the same argument."""
    call = ToolCall("shell", {"command": 'echo "a"', "cwd": "/tmp"}, "t1x1x1a1", raw)
    assert written(TAGS, call).text == text


def test_what_has_no_template_is_not_in_the_script():
    """Two calls in one reply, and a tool that no template names."""
    calls = CallsInText({"shell": REACT})
    for items in ((shell("a"), shell("b")), (ToolCall("fetch", {"url": "x"}),)):
        with pytest.raises(UnscriptedError, match="calls_in_text has no text for a reply that calls"):
            calls.written(Reply(items))


def test_templates_offer_tools_by_role():
    """As if a request had offered them: each argument is a text."""
    found = CallsInText({"shell": REACT, "fetch": "Action: fetch {url}", "task": "Ask another: {prompt}"}).tools
    shell_tool, fetch, subagent = find_shell(found), find_fetch(found), find_subagent(found)
    assert (shell_tool and shell_tool.arguments("ls")) == {"command": "ls"}
    assert (fetch and fetch.arguments("http://a")) == {"url": "http://a"}
    assert (subagent and subagent.arguments("Look.")) == {"prompt": "Look."}
    assert placeholders(REACT) == ("command",)
    (whole,) = CallsInText({"shell": "shell({args})"}).tools
    assert find_shell([whole]) is not None


def test_a_json_template_is_json():
    """What an agent reads from it is the command."""
    line = "printf 'a\\n'; (exit 0)"
    found: dict[str, Any] = json.loads(written(JSON, shell(line)).text)
    assert found["input"] == line
