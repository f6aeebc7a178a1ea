"""The script as it is played: the words by position, harmed as the plan says, and told to the recorder."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from wedgehog.fake_llm.conversation import Conversation, Message, ToolCallSeen, ToolResultSeen, ToolSpec
from wedgehog.fake_llm.observer import WriteEnded
from wedgehog.fake_llm.reply import Failure, Reply, Text, ToolCall, UnscriptedError, Usage
from wedgehog.fake_llm.script.main_call import MainShape
from wedgehog.fake_llm.script.position import Positions
from wedgehog.fake_llm.script.results_in_text import ResultsInText
from wedgehog.fake_llm.script.turns import FinishCall, ScriptedTurn, TurnScript
from wedgehog.harness.inject.injector import Injector
from wedgehog.harness.record.events.call import ToolCallOffered
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.history import History
from wedgehog.harness.run.recording.placing import SentReply
from wedgehog.harness.run.scripted_replies import ScriptedReplies
from wedgehog.harness.scenario.fault_config import FaultConfig
from wedgehog.harness.scenario.fault_plan import FaultPlan
from wedgehog.harness.services.beacon import wrapped

BASH = ToolSpec("bash", "", {"properties": {"command": {"type": "string"}}})
LOOK = Reply((Text("Let me look."), ToolCall("shell", {"command": "ls"})))
DONE = Reply((Text("Done {nonce}"),))


def talk(text: str = "mk1q go", done: str = "", schema: Any = None, size: int = 0) -> Conversation:
    """A request; with `done` it carries that token's result of `size` characters."""
    told = [Message("user", text)]
    if done:
        told += [Message("tool", tool_results=(ToolResultSeen(done, "x" * size),))]
    return Conversation("anthropic", "m", True, tuple(told), (BASH,), schema=schema)


@pytest.fixture
def play(manual_clock: Any) -> Any:
    """Makes a play of two steps under some faults; turn 1 is under way."""

    def make(*faults: dict[str, Any], turns: Any = None) -> ScriptedReplies:
        plan = FaultPlan(tuple(FaultConfig.model_validate(words).planned() for words in faults))
        positions = Positions("wbcdf")
        positions.begin(1, "mk1q")
        script = TurnScript(positions, turns or {1: ScriptedTurn((LOOK, DONE), "NONCE")})
        return ScriptedReplies(script, Injector(plan, {}, History(manual_clock), manual_clock), manual_clock)

    return make


def test_the_recorder_hears_what_is_offered_under_which_token(play: Any):
    """Turn, step and call, the agent's own name for the tool, and that its arguments are whole."""
    it = play()
    reply = it.answer(1, talk())
    assert it.sent(1) == SentReply(reply, [("1.1.1", "bash", True)])


def test_a_call_that_ends_the_turn_is_the_answer_and_no_work_of_a_tool(play: Any):
    """Its words are known to the recorder; an agent that asks on gets last words again."""
    it = play(turns={1: ScriptedTurn((DONE,), "NONCE")})
    it.script.finish = FinishCall("bash", "command")
    reply = it.answer(1, talk())
    assert reply.items == (ToolCall("bash", {"command": "Done NONCE"}, "wbcdf1x1x1a1"),)
    assert it.sent(1) == SentReply(reply, (), 0, "Done NONCE")
    again = it.answer(2, talk(done="wbcdf1x1x1a1"))
    assert it.place(2, talk()).step == 2 and again.items[0].args == {"command": "That is all. NONCE"}


@pytest.mark.parametrize(
    ("said", "carried"),
    [
        (Message("assistant", tool_calls=(ToolCallSeen("c", "bash", '{"command": "Done NONCE"}'),)), (1,)),
        (Message("user", "Observation: Done NONCE"), (1,)),
        (Message("assistant", tool_calls=(ToolCallSeen("c", "bash", '{"command": "ls"}'),)), ()),
    ],
)
def test_an_answer_that_a_tool_call_carried_is_seen_in_later_requests(play: Any, said: Message, carried: Any):
    """In the call, as the agent sends it back, or in its result."""
    it = play(turns={1: ScriptedTurn((DONE,), "NONCE")})
    it.script.finish = FinishCall("bash", "command")
    it.answer(1, talk())
    later = replace(talk(), messages=(*talk().messages, said))
    assert it.replies_in(later) == carried


def test_words_before_the_call_that_ends_the_turn_are_the_answer(play: Any):
    """An agent that asks on gets last words again."""
    it = play(turns={1: ScriptedTurn((DONE,), "NONCE")})
    it.script.finish = FinishCall("bash", "")
    reply = it.answer(1, talk())
    assert [type(item) for item in reply.items] == [Text, ToolCall] and reply.items[0].text == "Done NONCE"
    assert it.sent(1) == SentReply(reply, (), 0, "Done NONCE")
    assert it.answer(2, talk(done="wbcdf1x1x1a1")).items[0].text == "That is all. NONCE"


def test_arguments_cut_by_max_tokens_are_not_whole(play: Any):
    """The id and the name are there, the call is not."""
    it = play({"do": {"max_tokens": 5}})
    reply = it.answer(1, talk())
    assert reply.stop == "max_tokens" and reply.items[1].raw_args == '{"com'
    assert it.sent(1).offers == [("1.1.1", "bash", False)]


def test_equal_calls_have_an_equal_digest_and_traced_ones_have_none():
    """A command that writes to our file has a mark of its own, so it is never the same."""

    def digest(command: str) -> str:
        call = ToolCall("bash", {"command": command})
        return SentReply(Reply((call,)), [("1.1.1", "bash", True)]).offered(1)[0].digest

    assert digest("ls") == digest("ls") != digest("pwd")
    assert digest("ls") and not digest(wrapped("ls", "wbcdf1x1x1", Path("trace")))


@pytest.mark.parametrize(
    ("kind", "wrapped"),
    [("prose", False), ("fenced", True), ("unclosed", False), ("list", True), ("wrong_types", False), ("none", False)],
)
def test_whole_arguments_with_other_characters_around_them_are_known(play: Any, kind: str, wrapped: bool):
    """An agent that takes a fence or a list off runs the command that the model wrote, and not half of one.

    An object whose values have other types is known too.
    """
    it, misfits = play({"do": {"garbage_arguments": kind}}), kind == "wrong_types"
    it.answer(1, talk())
    (found,) = it.sent(1).offered(2)
    expected = ToolCallOffered("1.1.1", "bash", whole=False, wrapped=wrapped, misfits=misfits)
    assert replace(found, digest="") == expected
    cut = it.sent(1).offered(1)[0]
    assert not cut.wrapped and not cut.misfits


def test_the_recorder_knows_only_the_rest_of_a_reply_that_the_client_continues(play: Any):
    """The client sends the beginning back as the assistant's last message."""
    it, asked = play(turns={1: ScriptedTurn((DONE,), "NONCE")}), talk()
    it.answer(1, replace(asked, messages=(*asked.messages, Message("assistant", "Done"))))
    assert it.sent(1).reply.items == (Text(" NONCE"),)


def test_the_recorder_knows_only_what_comes_before_a_stop_sequence(play: Any):
    """A call behind it never comes, and it is no call in the text."""
    it = play()
    it.answer(1, replace(talk(), stops=("look",)))
    assert it.sent(1).reply.items == (Text("Let me "),) and not it.sent(1).offers


@pytest.mark.parametrize(
    ("chars", "left"),
    [
        (11, '{"command":'),
        (13, '{"command":"l'),
        (14, '{"command":"ls'),
        (99, '{"command":"ls'),
    ],
)
def test_max_tokens_counts_the_characters_that_the_author_wrote(play: Any, chars: int, left: str):
    """The trace that we put before and behind a command is not in the script; the cut lies in `ls` where it says so."""
    it = play({"do": {"max_tokens": chars}})
    it.script.beacon = lambda command, token: wrapped(command, token, Path("trace"))
    cut = it.answer(1, talk()).items[1].raw_args
    ours = json.dumps(wrapped("\0", "wbcdf1x1x1", Path("trace")).partition("\0")[0])[1:-1]
    assert cut.replace(ours, "")[: len(left)] == left
    if chars < 14:
        assert cut.replace(ours, "") == left
    assert (ours in cut) is (chars > 12), "it is cut before our trace, or after all of it"


def test_a_result_is_known_by_its_token(play: Any):
    """As the recorder asks it."""
    assert play().token_of_result("toolu_wbcdf1x1x1a1", "") == "1.1.1"


def test_a_failure_is_no_reply_and_the_next_attempt_gets_the_words(play: Any):
    """Nothing is offered by a 429."""
    it = play({"do": {"status": 429}})
    assert isinstance(it.answer(1, talk()), Failure) and it.replies == {}
    assert it.answer(2, talk()).items[0] == Text("Let me look.")
    assert [fired.call for fired in it.injector.history.of(FaultFired)] == [1]


def test_slowness_grows_with_what_the_request_carries_tool_results_too(play: Any):
    """One second per KB: the result's two and the question's little."""
    it = play({"at": {"step": 2}, "do": {"slow": {"s_per_kb": 1}}})
    it.answer(1, talk())
    reply = it.answer(2, talk(done="toolu_wbcdf1x1x1a1", size=2048))
    assert reply.delay_s == pytest.approx(2 + len("mk1q go") / 1024)


def test_endless_tools_go_on_behind_the_last_line_of_the_script(play: Any):
    """Step 3 has no words, and the fault has."""
    it = play({"at": {"step": 2}, "do": "endless_tools"})
    it.answer(1, talk())
    second = it.answer(2, talk(done="toolu_wbcdf1x1x1a1"))
    third = it.answer(3, talk(done="toolu_wbcdf1x2x1a1"))
    assert second.items[0].args == {"command": "ls # 2"} and second.items[0].id == "wbcdf1x2x1a1"
    assert third.items[0].args == {"command": "ls # 3"} and third.items[0].id == "wbcdf1x3x1a1"


@pytest.mark.parametrize(
    ("how", "equal"),
    [({}, True), ({"results_as_words": True}, False), ({"results_in_text": ResultsInText((), ())}, False)],
)
def test_the_same_call_again_is_equal_to_the_letter(play: Any, how: dict[str, Any], equal: bool):
    """A guard that compares calls sees it; where calls or results are words, they are known by the beacon alone."""
    it = play({"do": {"endless_tools": False}})
    it.script.beacon = lambda command, token: wrapped(command, token, Path("/b"))
    for name, value in how.items():
        setattr(it.script.positions, name, value)
    first, second = it.answer(1, talk()), it.answer(2, talk(done="toolu_wbcdf1x1x1a1"))
    commands = {call.args["command"] for reply in (first, second) for call in reply.items}
    assert (commands == {"ls"}) is equal
    assert [call.id for call in second.items] == ["wbcdf1x2x1a1"]


def test_a_script_that_ends_with_a_tool_call_has_some_last_words(play: Any):
    """What its author expects never to come (the tool outlasts the turn) comes from an agent of another patience."""
    it = play(turns={1: ScriptedTurn((LOOK,), "NONCE")})
    it.answer(1, talk())
    assert it.answer(2, talk(done="toolu_wbcdf1x1x1a1")).items == (Text("That is all. NONCE"),)


def test_a_step_beyond_the_script_is_unscripted(play: Any):
    """While its turn is under way."""
    it = play()
    with pytest.raises(UnscriptedError, match="turn 1 step 3: the script has 2 replies"):
        it.answer(1, talk(done="toolu_wbcdf1x2x1a1"))


def test_a_call_beyond_the_script_of_a_turn_that_is_over_gets_last_words(play: Any):
    """So that an agent that goes on by itself comes to an end."""
    it = play()
    it.script.positions.end()
    reply = it.answer(1, talk(done="toolu_wbcdf1x2x1a1"))
    assert reply.items == (Text("That is all. NONCE"),)


def test_calls_of_no_turn_get_words_that_offer_nothing(play: Any):
    """And they do not matter."""
    it = play()
    it.script.positions.end()
    assert it.answer(1, talk("ping")) == Reply((Text("A short note"),)) and it.replies == {}


def test_a_structured_call_of_the_control_run_gets_its_words_in_json(play: Any):
    """Before the main shape is known: it may be the call that answers. A schema may have no room for words."""
    it = play()
    it.script.nonce_per_call = True
    check, say = ({"type": "object", "properties": {name: {"type": kind}}} for name, kind in _CHECK_AND_SAY)
    asked = replace(talk(), tools=())
    assert it.answer(1, replace(asked, schema=check)).items == (Text('{"ok": false}'),)
    (words,) = it.answer(2, replace(asked, schema=say)).items
    assert json.loads(words.text) == {"said": "Let me look.That is all. NONCEc2e"}
    assert it.sent(2).text_within(99, WriteEnded(2, 0, 99, 99, (), "complete", "end"), broken_off=False) == words.words


def test_what_came_of_a_cut_reply_by_a_schema_is_its_words(play: Any):
    """Not the JSON around them; a later request carries them also if the agent writes its JSON in another way."""
    said = Text('{"sure": 1, "answer": "Grüße, \\"Hans\\" und alle"}', span=(23, 47))
    sent, whole = SentReply(Reply((said,))), WriteEnded(1, 0, 99, 12, (), "complete", "end")
    came = [sent.text_within(tokens, whole, broken_off=False) for tokens in (3, 6, 8, 12)]
    assert came == ["", "G", 'Grüße, "', 'Grüße, "Hans" und alle']
    it = play()
    it.replies[1] = sent
    assert it.replies_in(_with(json.dumps(json.loads(said.text), indent=1))) == (1,)
    assert it.replies_twice(_with(said.text, said.text)) == (1,)


_CHECK_AND_SAY = (("ok", "boolean"), ("said", "string"))


def test_each_call_is_placed_once_and_told_to_the_nemesis_once(play: Any):
    """The recorder asks first, the script later."""
    it = play()
    assert it.place(1, talk()) == it.place(1, talk())
    it.answer(1, talk())
    assert it.place(2, talk()).attempt == 2
    assert it.injector.open_calls == {1, 2}
    assert set(it.shapes) == set(it.tools_seen) == {1, 2}


def _with(*said: str) -> Conversation:
    """A request that carries these messages of the model."""
    return replace(talk(), messages=(*talk().messages, *(Message("assistant", text) for text in said)))


def test_a_request_tells_which_replies_it_carries(play: Any):
    """Also with other punctuation, and inside of a longer message; not half of one."""
    it = play()
    it.answer(1, talk())
    carried = {text: it.replies_in(_with(text)) for text in ("Let me look.", "Thought: LET ME LOOK", "Let me", "")}
    assert carried == {"Let me look.": (1,), "Thought: LET ME LOOK": (1,), "Let me": (), "": ()}


def test_the_words_of_a_summary_are_found_in_a_conversation(play: Any):
    """A request without the agent's tools asks beside the conversation."""
    it = play()
    it.script.positions.shape = MainShape.of(talk())
    aside = replace(talk("mk1q Summarize the conversation so far."), tools=())
    (words,) = it.answer(2, aside).items
    assert it.replies_in(_with(f"What was said before: {words.text}")) == (2,)


@pytest.mark.parametrize("empty", [True, False])
def test_a_request_after_an_empty_summary_is_the_conversations(play: Any, empty: bool):
    """It holds nothing that was said before; after a summary with words it would hold these."""
    it = play(*([{"at": {"on": "compaction"}, "do": "empty_reply"}] if empty else []))
    it.script.positions.shape, it.script.positions.sides.marked = MainShape.of(talk()), True
    it.answer(1, talk())
    it.answer(2, replace(talk("mk1q Summarize the conversation so far."), tools=()))
    assert it.place(3, talk("Go on.")).background == ("" if empty else "side")


def test_the_scripts_count_of_tokens_holds_until_the_conversation_is_shorter(play: Any):
    """A provider counts what was sent; an agent that goes on after a compaction would compact for ever."""
    full = replace(DONE, usage=Usage(980_000, 3))
    it = play(turns={1: ScriptedTurn((full,), "NONCE")})
    it.script.positions.shape = MainShape.of(talk())
    assert it.answer(1, talk()).usage == full.usage
    (words,) = it.answer(2, replace(talk("mk1q Summarize the conversation so far."), tools=())).items
    assert it.answer(3, talk(f"mk1q go on after this: {words.text}")).usage is None


def test_fewer_messages_end_the_scripts_count_too(play: Any):
    """The summary was empty, or refused, and the agent has left the earlier messages out."""
    full = replace(DONE, usage=Usage(980_000, 3))
    it = play(turns={1: ScriptedTurn((full,), "NONCE")})
    whole, shorter = _with("What was said"), talk()
    assert it.answer(1, whole).usage == it.answer(2, whole).usage == full.usage
    assert it.answer(3, shorter).usage is None


def test_a_reply_that_stands_in_two_messages_is_told_if_it_came_once(play: Any):
    """A model that said it twice may be quoted twice; empty messages are no words."""
    it = play()
    it.answer(1, talk())
    twice = _with("Let me look.", "Let me look.")
    assert it.replies_twice(twice) == (1,)
    assert it.replies_twice(_with("Let me look.", "", "")) == ()
    it.answer(2, talk())
    assert it.replies_twice(twice) == ()


def test_what_the_agent_tells_the_model_after_its_answer_gets_other_words(play: Any):
    """The end of a subagent, for one. The same words would look like an answer that is shown twice."""
    it = play(turns={1: ScriptedTurn((DONE,), "NONCE")})
    answered = Message("assistant", "Done NONCE")
    told = Message("user", "<notice>Your subagent has ended.</notice>")
    again = replace(talk(), messages=(Message("user", "mk1q go"), answered, told))
    assert it.answer(1, talk()).items[0].text == "Done NONCE"
    assert it.answer(2, again).items[0].text == "I have heard of it. NONCE"
    assert it.answer(3, replace(again, messages=again.messages[:2])).items[0].text == "Done NONCE"


def test_the_model_asks_for_the_result_of_a_subagent_where_a_tool_for_that_is_offered(play: Any):
    """Elsewhere it says its last words at once."""
    asks = Reply((ToolCall("subagent_result", {}),))
    it = play(turns={1: ScriptedTurn((asks, DONE), "NONCE", only_offered=True)})
    kinds = {"agent_id": {"type": "string"}}
    waits = ToolSpec("wait_agent", "", {"type": "object", "properties": kinds, "required": ["agent_id"]})
    begun = Message("assistant", tool_calls=(ToolCallSeen("c1", "spawn_agent", "{}"),))
    launched = Message("tool", tool_results=(ToolResultSeen("c1", '{"agent_id": "a1"}'),))
    knows = Conversation("anthropic", "m", True, (begun, launched, Message("user", "mk1q go")), (BASH, waits))
    assert it.answer(1, talk()).items[0].text == "Done NONCE"
    (call,) = it.answer(2, knows).items
    assert (call.name, call.args) == ("wait_agent", {"agent_id": "a1"})
