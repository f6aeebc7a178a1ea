"""What each reply fault makes of a scripted answer."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.edit_kinds import (
    Duplicated,
    EarlyEnd,
    ErrorEvent,
    Malformed,
    Misnumbered,
    NoUsage,
    OpenEnd,
    OtherForm,
    PingsOnly,
    Reordered,
)
from wedgehog.fake_llm.reply import BALANCE, Failure, Reply, Text, ToolCall, Usage
from wedgehog.harness.faults.base import parse_fault
from wedgehog.harness.faults.reply_fault import Context

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
CONTEXT = Context(event=3, request_bytes=2048, now=NOW, step=4)
LOOK = Text("Let me look.")
LIST = ToolCall("shell", {"command": "ls"}, id="7")
REPLY = Reply((LOOK, LIST))


def harmed(do, answer=REPLY, context=CONTEXT):
    return parse_fault(do).on_answer(answer, context)


def test_a_status_replaces_the_answer():
    """Seconds stay seconds; a date is counted from now, as HTTP writes dates."""
    assert harmed({"status": {"code": 429, "retry_after": 2}}) == Failure(429, retry_after=2)
    dated = harmed({"status": {"code": 429, "retry_after": "date:5"}})
    assert dated == Failure(429, retry_after="Sun, 01 Mar 2026 12:00:05 GMT")


def test_a_shortened_retry_after_is_still_a_whole_second():
    """The header knows no fractions."""
    fault = parse_fault({"status": {"code": 429, "retry_after": 20}}).scaled(50)
    assert fault.retry_after == 1
    assert parse_fault({"status": {"code": 429, "retry_after": "date:120"}}).scaled(50).retry_after == "date:3"
    assert parse_fault({"status": 429}).scaled(50).retry_after is None


@pytest.mark.parametrize(
    ("do", "edit"),
    [
        ("early_end", EarlyEnd(3)),
        ({"pings_only": 0.5}, PingsOnly(3, 0.5)),
        ({"error_event": 500}, ErrorEvent(3, 500, None)),
        ({"error_event": {"by": "gateway"}}, ErrorEvent(3, 529, None, "gateway")),
    ],
)
def test_an_edit_strikes_at_the_triggers_event(do, edit):
    """Without an event it fires before the first; a failure has no stream to edit."""
    assert harmed(do) == replace(REPLY, edits=(edit,))
    assert harmed(do, context=replace(CONTEXT, event=None)).edits[0].event == 0
    assert harmed(do, Failure(500)) == Failure(500)


def test_slowness_grows_with_the_request():
    """Two kilobytes at 3 s each, and one second for all; failures are slow too."""
    assert harmed({"slow": {"s": 1, "s_per_kb": 3}}).delay_s == 7
    assert harmed({"slow": 2}, Failure(500, delay_s=1)).delay_s == 3


def test_endless_tools_repeat_the_scripted_call_and_tell_it_apart_by_the_step():
    """A new id each time, and a comment that changes nothing but the text."""
    assert harmed("endless_tools").items == (ToolCall("shell", {"command": "ls # 4"}),)
    assert harmed({"endless_tools": False}).items == (ToolCall("shell", {"command": "ls"}, untraced=True),)
    listed = Reply((ToolCall("run", {"commands": ["cd /", "ls"]}),))
    assert harmed("endless_tools", listed).items[0].args == {"commands": ["cd /", "ls # 4"]}
    other = Reply((ToolCall("add", {"a": 1}),))
    assert harmed("endless_tools", other).items == other.items


def test_endless_tools_go_on_after_the_script_wants_to_end():
    """A final text becomes the last call again; without any call ever made it stays."""
    final = Reply((Text("Done."),), stop="end")
    assert harmed("endless_tools", final) == final
    again = harmed("endless_tools", final, replace(CONTEXT, last_tool_call=LIST))
    assert again == Reply((ToolCall("shell", {"command": "ls # 4"}),))


def test_max_tokens_stops_in_the_middle_of_the_argument():
    """The text before the call is kept, the call's JSON is cut, and what would follow is gone."""
    cut = harmed({"max_tokens": 5}, Reply((LOOK, LIST, ToolCall("shell", {"command": "pwd"}))))
    assert cut == Reply((LOOK, replace(LIST, raw_args='{"com')), stop="max_tokens")


@pytest.mark.parametrize("chars", [0, 1, 12, 10_000])
def test_max_tokens_never_leaves_a_whole_argument(chars):
    """However high the limit, at least the closing brace is lost."""
    (_, call) = harmed({"max_tokens": chars}).items
    with pytest.raises(json.JSONDecodeError):
        json.loads(call.raw_args)


def test_a_filter_cuts_where_a_token_limit_does_and_gives_another_reason():
    """Half a sentence or half a call; a refused request stays refused."""
    assert harmed({"content_filter": 3}, Reply((Text("Hello "),))) == Reply((Text("Hel"),), stop="filter")
    cut = harmed({"content_filter": 5}, Reply((LOOK, LIST)))
    assert cut == Reply((LOOK, replace(LIST, raw_args='{"com')), stop="filter")
    assert harmed("content_filter", Failure(500)) == Failure(500)


def test_max_tokens_cuts_the_text_where_there_is_no_call():
    """Characters are counted across text items."""
    two = Reply((Text("Hello "), Text("world")))
    assert harmed({"max_tokens": 8}, two).items == (Text("Hello "), Text("wo"))
    assert harmed({"max_tokens": 3}, two).items == (Text("Hel"),)
    assert harmed({"max_tokens": 99}, two).items == (Text("Hello "), Text("worl"))
    assert harmed("max_tokens", Failure(500)) == Failure(500)


def test_max_tokens_counts_the_words_in_json_by_a_schema():
    """What stands before them comes whole, and the JSON is broken."""
    said = Text('{"sure": 1, "answer": "Hello world"}', span=(23, 34))
    (text,) = harmed({"max_tokens": 4}, Reply((said,))).items
    assert (text.text, text.words) == ('{"sure": 1, "answer": "Hell', "Hell")
    assert harmed({"max_tokens": 99}, Reply((said,))).items[0].text == said.text[:-1]


TWO = Reply((LOOK, LIST, ToolCall("shell", {"command": "pwd"}, id="8")))


@pytest.mark.parametrize(
    ("do", "edit"),
    [
        ("duplicated_event", Duplicated(3)),
        ("reordered_events", Reordered(3)),
        ("malformed_json", Malformed(3)),
        ("no_usage", NoUsage()),
        ({"other_form": "fields"}, OtherForm("fields")),
        ("open_end", OpenEnd()),
        ({"misnumbered": "ids"}, Misnumbered("ids")),
        ({"misnumbered": "again"}, Misnumbered("again")),
    ],
)
def test_other_edits_need_no_event(do, edit):
    """With one they strike there; without, at the first event that delivers something."""
    assert harmed(do).edits == (edit,)
    assert getattr(harmed(do, context=replace(CONTEXT, event=None)).edits[0], "event", 0) == 0
    assert harmed(do, Failure(500)) == Failure(500)


def test_a_page_and_a_used_up_balance_replace_the_answer():
    """What the page says and how the provider refuses is the fake's to know."""
    assert harmed("html_body") == Failure(200, html=True)
    assert harmed({"html_body": {"code": 502, "message": "Down"}}) == Failure(502, message="Down", html=True)
    assert harmed("error_body") == Failure(429, as_success=True)
    assert harmed({"error_body": {"code": 401, "message": "No"}}) == Failure(401, message="No", as_success=True)
    assert harmed("balance") == Failure(402, kind=BALANCE)


def test_an_empty_reply_and_a_refusal_keep_nothing_of_what_was_to_be_said():
    """Both are complete replies; what they cost stays as scripted."""
    told = replace(REPLY, usage=Usage(7, 8))
    assert harmed("empty_reply", told) == Reply(usage=Usage(7, 8), stop="end")
    assert harmed({"empty_reply": "no_choice"}, told) == Reply(usage=Usage(7, 8), stop="filter", no_choice=True)
    assert harmed({"empty_reply": "broken_call"}, told) == Reply(usage=Usage(7, 8), stop="end", broken_call=True)
    assert harmed({"refusal": "No."}, told) == Reply((Text("No."),), usage=Usage(7, 8), stop="refusal")
    assert harmed("empty_reply", Failure(500)) == harmed("refusal", Failure(500)) == Failure(500)


def test_duplicate_ids_take_two_calls():
    """All calls bear the first one's id, made up where it has none; a single call stays as it is."""
    assert [call.id for call in harmed("duplicate_ids", TWO).items[1:]] == ["7", "7"]
    nameless = Reply((replace(LIST, id=""), LIST))
    first, second = harmed("duplicate_ids", nameless).items
    assert first.id == second.id != ""
    assert harmed("duplicate_ids") == REPLY


@pytest.mark.parametrize(
    ("do", "tools", "name"),
    [
        ("near_miss_tool", ("Bash",), "Bah"),
        ({"near_miss_tool": "case"}, ("Bash",), "bASH"),
        ({"near_miss_tool": "suffix"}, ("Bash",), "Bash_tool"),
        ({"near_miss_tool": "marks"}, ("Bash",), "Bash<|channel|>commentary"),
        ("near_miss_tool", ("Bash", "Bah"), "Bash_tool"),
        ("near_miss_tool", (), "x_tool"),
    ],
)
def test_a_near_miss_is_no_tool_that_was_advertised(do, tools, name):
    """By a letter, by case or by a suffix; where that is a tool too, or no other name, by a suffix."""
    called = "Bash" if tools else "x"
    answer = Reply((ToolCall(called, {"command": "ls"}, id="7"),))
    missed = harmed(do, answer, replace(CONTEXT, tools=tools)).items[0]
    assert missed == ToolCall(name, {"command": "ls"}, id="7")


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        ("prose", "I will call it with command as you asked."),
        ("fenced", '```json\n{"command":"ls"}\n```'),
        ("unclosed", '{"command":"l'),
        ("list", '[{"command":"ls"}]'),
        ("wrong_types", '{"command": 7}'),
        ("none", ""),
    ],
)
def test_garbage_arguments_are_sent_verbatim(kind, raw):
    """The call keeps its name and its id; only its arguments make no sense."""
    assert harmed({"garbage_arguments": kind}).items == (LOOK, replace(LIST, raw_args=raw))


@pytest.mark.parametrize(("command", "left"), [("ls", '"l'), ('say "ls"', '"say \\"ls\\'), ("", "")])
def test_an_agent_that_closes_unclosed_arguments_gets_less_than_the_model_wrote(command: str, left: str):
    """A parser that only adds the braces would change nothing if nothing but a brace were missing."""
    said = harmed({"garbage_arguments": "unclosed"}, Reply((ToolCall("shell", {"command": command}),))).items[0]
    assert said.raw_args == f'{{"command":{left}'


@pytest.mark.parametrize("stream", [True, False])
def test_an_error_in_a_stream_also_meets_a_fallback_that_does_not_stream(stream: bool):
    """Permanent harm must not end because the agent asks for the reply in one piece."""
    asked = replace(CONTEXT, conversation=Conversation("anthropic", "m", stream, ()))
    found = harmed({"error_event": 500}, context=asked)
    assert found == (replace(REPLY, edits=(ErrorEvent(3, 500, None),)) if stream else Failure(500))
