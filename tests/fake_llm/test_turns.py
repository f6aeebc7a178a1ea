"""The script by position: the answer depends on turn and step, never on a count of requests."""

import json
from typing import Any

import pytest

from wedgehog.fake_llm.conversation import Conversation, Message, ToolCallSeen, ToolResultSeen, ToolSpec
from wedgehog.fake_llm.reply import Reply, Text, Thinking, ToolCall, UnscriptedError
from wedgehog.fake_llm.script.main_call import MainShape
from wedgehog.fake_llm.script.position import Positions
from wedgehog.fake_llm.script.turns import FinishCall, ScriptedTurn, TurnScript, expand, expand_all

BASH = ToolSpec("Bash", "", {"properties": {"command": {"type": "string"}}, "required": ["command"]})
EDIT_SCHEMA = {"properties": {key: {"type": "string"} for key in ("path", "old_text", "new_text")}}
FETCH = ToolSpec("fetch", "", {"properties": {"url": {"type": "string"}}})


def talk(*messages: Message, tools: tuple[ToolSpec, ...] = (BASH, FETCH), schema: Any = None) -> Conversation:
    return Conversation("anthropic", "m", True, messages, tools, schema=schema)


def user(text: str) -> Message:
    return Message("user", text)


ASKED = talk(user("mk1q go"))
TURN = ScriptedTurn(
    (
        Reply((Text("Let me look."), ToolCall("shell", {"command": "ls {web_url}"}), ToolCall("fetch", {"url": "x"}))),
        Reply((Thinking("{nonce}?"), Text("Done {nonce}"))),
    ),
    "NONCE",
)


def answered(script: TurnScript, call: int = 1) -> Conversation:
    """The conversation with the first round's results."""
    token = script.positions.tokens.token(1, 1, 1)
    return talk(
        user("mk1q go"),
        Message("assistant", tool_calls=(ToolCallSeen(f"toolu_{token}a1", "Bash", "{}"),)),
        Message("tool", tool_results=(ToolResultSeen(f"toolu_{token}a1", "ok"),)),
    )


@pytest.fixture
def script() -> TurnScript:
    positions = Positions("wbcdf")
    positions.begin(1, "mk1q")
    found = TurnScript(positions, {1: TURN}, beacon=lambda command, token: f"<{token}>{command}")
    found.values = {"web_url": "http://pages"}
    return found


def test_the_step_chooses_the_reply(script: TurnScript):
    """Two attempts at step 1 get the same reply, and step 2 the next."""
    first, again = script.answer(1, ASKED), script.answer(2, ASKED)
    assert isinstance(first, Reply) and isinstance(again, Reply)
    assert first.items[0] == again.items[0] == Text("Let me look.")
    second = script.answer(3, answered(script))
    assert second == Reply((Thinking("NONCE?"), Text("Done NONCE")))


def test_a_scripted_shell_becomes_the_agents_own_with_a_beacon_around_the_command(script: TurnScript):
    """Its id holds the token, which identifies the result, and the attempt."""
    first, again = script.answer(1, ASKED), script.answer(2, ASKED)
    call = first.items[1]
    assert call == ToolCall("Bash", {"command": "<wbcdf1x1x1>ls http://pages"}, "wbcdf1x1x1a1")
    assert again.items[1].id == "wbcdf1x1x1a2"


def test_other_tools_keep_their_names_and_get_an_id_of_the_same_kind(script: TurnScript):
    """Calls of one reply are numbered in order."""
    assert script.answer(1, ASKED).items[2] == ToolCall("fetch", {"url": "x"}, "wbcdf1x1x2a1")


def test_asking_for_a_place_again_counts_no_attempt(script: TurnScript):
    """Recorder and script both ask."""
    assert script.place(1, ASKED) == script.place(1, ASKED)
    assert script.place(2, ASKED).attempt == 2


def test_a_step_beyond_the_script_is_unscripted_and_says_where(script: TurnScript):
    """The run is an error; the script does not guess an answer."""
    script.turns = {1: ScriptedTurn(TURN.replies[:1], "N")}
    with pytest.raises(UnscriptedError, match=r"turn 1 step 2: the script has 1 replies"):
        script.answer(1, answered(script))


def test_a_turn_that_the_script_does_not_know_is_unscripted(script: TurnScript):
    """The run is an error too."""
    script.positions.begin(5, "mk5q")
    with pytest.raises(UnscriptedError, match="turn 5 step 1: the script has 0"):
        script.answer(1, talk(user("mk5q hm")))


def test_a_shell_that_the_agent_does_not_have_is_unscripted(script: TurnScript):
    """A scenario with tools is skipped for such an agent; here it is an error."""
    with pytest.raises(UnscriptedError, match="advertises none"):
        script.answer(1, talk(user("mk1q go"), tools=(FETCH,)))


def test_a_request_without_tools_gets_words_where_the_script_calls_one(script: TurnScript):
    """An agent at its limit asks for its last words; a text of the script stays before ours."""
    asked = talk(user("mk1q go"), tools=())
    assert script.answer(1, asked) == Reply((Text("Let me look."), Text("That is all. NONCE")))
    only_a_call = ScriptedTurn((Reply((ToolCall("shell", {"command": "ls"}),), stop="tool"),), "N")
    script.turns = {1: only_a_call}
    assert script.answer(2, asked) == Reply((Text("That is all. N"),))


SUBMIT = ToolSpec(
    "final_answer",
    "",
    {"properties": {"answer": {"type": "string"}, "sure": {"type": "boolean"}}, "required": ["answer", "sure"]},
)


def test_last_words_are_sent_by_the_tool_that_ends_the_agents_turn(script: TurnScript):
    """A reply with tool calls stays; a request that does not offer the tool gets text."""
    script.finish = FinishCall("final_answer", "answer")
    script.turns = {
        1: ScriptedTurn(
            (
                Reply(
                    (Thinking("Hm."), Text("Done "), Text("{nonce}")),
                ),
            ),
            "NONCE",
        )
    }
    said = script.answer(1, talk(user("mk1q go"), tools=(BASH, SUBMIT)))
    call = ToolCall("final_answer", {"answer": "Done NONCE", "sure": False}, "wbcdf1x1x1a1")
    assert said == Reply((Thinking("Hm."), call)) and said.stop_reason == "tool"
    assert script.answer(2, ASKED).items[1:] == (Text("Done "), Text("NONCE"))
    script.turns = {1: TURN}
    assert script.answer(3, talk(user("mk1q go"), tools=(BASH, FETCH, SUBMIT))).items[1].name == "Bash"


def test_last_words_are_text_before_a_call_without_an_argument_for_them(script: TurnScript):
    """`finish:` names only the tool; the text has the form that the spec gives."""
    script.finish = FinishCall("complete", "", "Done: {answer}")
    script.turns = {1: ScriptedTurn((Reply((Thinking("Hm."), Text("All {nonce}"))),), "NONCE")}
    said = script.answer(1, talk(user("mk1q go"), tools=(BASH, ToolSpec("complete", "", {"type": "object"}))))
    thought, text, call = said.items
    assert (thought, call) == (Thinking("Hm."), ToolCall("complete", {}, "wbcdf1x1x1a1")) and said.stop_reason == "tool"
    assert isinstance(text, Text) and (text.text, text.words) == ("Done: All NONCE", "All NONCE")


def test_last_words_stand_in_the_property_that_the_agent_shows(script: TurnScript):
    """`finish:` without a tool names it; without a schema they are text."""
    script.finish, script.turns = FinishCall("", "body"), {1: ScriptedTurn((Reply((Text("Done {nonce}"),)),), "NONCE")}
    kinds = {name: {"type": "string"} for name in ("answer", "body")}
    asked = talk(user("mk1q go"), tools=(BASH,), schema={"type": "object", "properties": kinds})
    (said,) = script.answer(1, asked).items
    assert json.loads(said.text) == {"answer": "a short phrase", "body": "Done NONCE"}
    assert script.answer(2, ASKED).items == (Text("Done NONCE"),)


def test_a_spec_chooses_values_in_the_call_that_ends_a_turn_and_in_every_reply_by_a_schema(script: TurnScript):
    """Also in those beside the conversation, such as a check of a message."""
    script.finish = FinishCall("final_answer", "answer", chosen={"sure": True})
    script.turns = {1: ScriptedTurn((Reply((Text("Done {nonce}"),)),), "NONCE")}
    (call,) = script.answer(1, talk(user("mk1q go"), tools=(BASH, SUBMIT))).items
    assert isinstance(call, ToolCall) and call.args == {"answer": "Done NONCE", "sure": True}
    schema = {"type": "object", "properties": {"sure": {"type": "boolean"}}}
    script.positions.end()
    (said,) = script.answer(2, talk(user("Is it safe?"), schema=schema)).items
    assert json.loads(said.text) == {"sure": True}


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ('{"say": "{answer}"}', '{"say": "He said \\"no\\" NONCE"}'),
        ("Answer: {answer}!", 'Answer: He said "no" NONCE!'),
        ("{answer}", 'He said "no" NONCE'),
    ],
)
def test_last_words_stand_in_a_text_of_the_agents_own_form(script: TurnScript, text: str, sent: str):
    """Some agents ask for JSON only in words; a reply by a schema has its own form, and a tool call is none."""
    script.finish = FinishCall("", "", text)
    script.turns = {1: ScriptedTurn((Reply((Text('He said "no" {nonce}', pace_ms=3),)),), "NONCE"), 2: TURN}
    (said,) = script.answer(1, talk(user("mk1q go"), tools=(BASH,))).items
    assert isinstance(said, Text) and (said.text, said.pace_ms) == (sent, 3)
    assert said.words == 'He said "no" NONCE'
    by_schema = talk(user("mk1q go"), tools=(BASH,), schema={"type": "object", "properties": {"a": {"type": "string"}}})
    (said,) = script.answer(2, by_schema).items
    assert isinstance(said, Text) and json.loads(said.text) == {"a": 'He said "no" NONCE'}


def test_last_words_may_be_a_shell_command(script: TurnScript):
    """Some agents end their turn by a command that they watch for; it carries no beacon."""
    script.finish = FinishCall("shell", "command", "echo DONE; echo '{answer}'")
    script.turns = {1: ScriptedTurn((Reply((Text("All {nonce}"),)),), "NONCE")}
    assert script.answer(1, ASKED).items == (
        ToolCall("Bash", {"command": "echo DONE; echo 'All NONCE'"}, "wbcdf1x1x1a1"),
    )


def test_a_call_outside_any_turn_gets_words_that_are_nobodys_business(script: TurnScript):
    """No marker, nothing under way."""
    script.positions.end()
    assert script.answer(1, talk(user("ping"))) == Reply((Text("A short note"),))


def test_a_background_call_gets_a_valid_answer_and_no_nonce(script: TurnScript):
    """Its words stand in the JSON of its schema."""
    script.positions.shape = MainShape.of(ASKED)
    schema = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    reply = script.answer(1, talk(user("a title for mk1q"), tools=(), schema=schema))
    assert isinstance(reply, Reply) and isinstance(reply.items[0], Text)
    assert json.loads(reply.items[0].text) == {"title": "A short note wbcdfn1e"}


def test_each_call_can_have_a_nonce_of_its_own_that_begins_with_its_turns(script: TurnScript):
    """The control run's answer identifies its call."""
    script.nonce_per_call = True
    script.turns = {1: ScriptedTurn((Reply((Text("{nonce}"),)),), "NONCE")}
    said = [script.answer(call, ASKED).items[0].text for call in (1, 2)]
    assert said == ["NONCEc1e", "NONCEc2e"] == [script.nonce_of(1), script.nonce_of(2)]


def test_only_known_names_are_expanded():
    """Braces of shell commands and JSON stay."""
    assert expand("{nonce} {other} {{nonce}} ${HOME}", {"nonce": "N"}) == "N {other} {N} ${HOME}"
    assert expand_all({"a": ["{x}", 1, {"b": "{x}"}], "c": None}, {"x": "X"}) == {"a": ["X", 1, {"b": "X"}], "c": None}


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        (ToolSpec("WebFetch", "", {"properties": {"url": {"type": "string"}}}), {"url": "http://pages/news"}),
        (ToolSpec("fetch", "", {"properties": {"id": {"type": "string"}}}), {"url": "http://pages/news"}),
    ],
)
def test_a_page_is_read_by_the_agents_own_tool(script: TurnScript, tool: ToolSpec, args: dict[str, str]):
    """A tool that is only called like the role gets the arguments as they are."""
    script.values = {"web_url": "http://pages"}
    page, other = ToolCall("fetch", {"url": "{web_url}/news"}), ToolCall("fetch", {"id": "7"})
    script.turns = {1: ScriptedTurn((Reply((page, other)),), "NONCE")}
    call, named = script.answer(1, talk(user("mk1q go"), tools=(BASH, tool))).items
    assert isinstance(call, ToolCall) and (call.name, call.args) == (tool.name, args)
    assert isinstance(named, ToolCall) and named.args == {"id": "7"}


@pytest.mark.parametrize(("tools", "calls"), [((BASH,), []), ((ToolSpec("Edit", "", EDIT_SCHEMA), BASH), ["Edit"])])
def test_a_subagent_without_a_tool_for_files_gets_last_words(tools: tuple[ToolSpec, ...], calls: list[str]):
    """A call of a tool that it does not have would be its agent's failure."""
    positions = Positions("wbcdf", named=lambda asked: "editor" if asked.messages[0].text == "Edit it." else "")
    positions.begin(1, "mk1q")
    edit = ToolCall("edit_file", {"path": "a.txt", "old": "one", "new": "two"})
    script = TurnScript(positions, {1: TURN}, conversations={"editor": (Reply((edit,)),)})
    said = script.answer(1, talk(user("Edit it."), tools=tools))
    assert isinstance(said, Reply) and [item.name for item in said.items if isinstance(item, ToolCall)] == calls
