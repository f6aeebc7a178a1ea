"""Results of calls that the model wrote in its text: what the agent put behind each call."""

import re

import pytest

from wedgehog.fake_llm.conversation import Conversation, Message, ToolSpec
from wedgehog.fake_llm.script.main_call import MainShape
from wedgehog.fake_llm.script.position import Positions
from wedgehog.fake_llm.script.results_in_text import ResultFrame, ResultsInText

TEMPLATE = "```bash\n{command}\n```"
REACT = "Thought: {words}\nAction: shell\nAction Input: {command}"
FIRST = (
    "printf '1.1.1 started\\n' >> t; { ls; }; wedgehog_status=$?; printf '%s\\n' wbcdf1x1x1; (exit $wedgehog_status)"
)
SECOND = FIRST.replace("1.1.1", "1.2.1").replace("1x1x1", "1x2x1")
ASKED = Message("user", "mk1q go")


def talk(*messages: Message, tools: tuple[ToolSpec, ...] = ()) -> Conversation:
    return Conversation("openai-chat", "m", False, messages, tools)


def model(command: str) -> Message:
    return Message("assistant", f"```bash\n{command}\n```")


@pytest.fixture
def positions() -> Positions:
    found = Positions("wbcdf", MainShape(), results_in_text=ResultsInText.of({"shell": TEMPLATE, "react": REACT}))
    found.begin(1, "mk1q")
    return found


def results(positions: Positions, *messages: Message, tools: tuple[ToolSpec, ...] = ()) -> list[tuple[str, str]]:
    """(id of the call, text) of each result."""
    read = positions.read(talk(*messages, tools=tools)).messages
    return [(result.call_id, result.text) for message in read for result in message.tool_results]


def test_in_a_chat_the_next_messages_are_the_result(positions: Positions):
    """Of any role, up to the next one of the model; it need not have the last line of the command."""
    seen = results(
        positions, ASKED, model(FIRST), Message("user", "killed"), Message("system", "Go on."), model(SECOND)
    )
    assert seen == [("wbcdf1x1x1a1", "killed\nGo on.")]
    assert positions.place(talk(ASKED, model(FIRST), Message("user", "killed"))).step == 2


def test_a_call_at_the_end_has_no_result(positions: Positions):
    """The agent asks the model to go on with its own text."""
    assert results(positions, ASKED, model(FIRST)) == []
    assert positions.place(talk(ASKED, model(FIRST))).step == 1


def test_the_next_message_of_the_user_is_no_result(positions: Positions):
    """It has a marker: the turn before it ended without a result."""
    positions.begin(2, "mk2q")
    assert results(positions, ASKED, model(FIRST), Message("user", "mk2q and now?")) == []


def test_in_one_prompt_the_text_behind_a_call_is_its_result(positions: Positions):
    """Up to the next call, without what belongs to the templates."""
    pad = f"Thought: I look.\nAction: shell\nAction Input: {FIRST}\nObservation: a\nThought: More.\nAction: shell\n"
    pad += f"Action Input: {SECOND}\nObservation: b"
    prompt = Message("user", f"mk1q go\n{pad}")
    first, second = results(positions, prompt)
    assert first == ("wbcdf1x1x1a1", "Observation: a\nThought: More.")
    assert second == ("wbcdf1x2x1a1", "Observation: b")
    assert positions.place(talk(prompt)).step == 3


def test_a_call_that_was_cut_has_a_result_too(positions: Positions):
    """Of a cut command there is no end: the message is all of it."""
    seen = results(positions, ASKED, Message("assistant", f"```bash\n{FIRST[:40]}"), Message("user", "That was cut."))
    assert seen == [("wbcdf1x1x1a1", "That was cut.")]


def test_a_request_with_tools_of_its_own_is_left_as_it_is(positions: Positions):
    """Its results are the wire's."""
    assert results(positions, ASKED, model(FIRST), Message("user", "ok"), tools=(ToolSpec("Bash"),)) == []


def test_an_agent_at_its_limit_gets_words(positions: Positions):
    """It says so in a last message of its own, which holds no result."""
    last = Message("user", "You have reached the maximum number of steps. Give your final answer.")
    assert positions.is_at_limit(talk(ASKED, model(FIRST), Message("user", "ok"), model(SECOND), last))
    assert not positions.is_at_limit(talk(ASKED, model(FIRST), Message("user", "ok wbcdf1x1x1, a final answer")))
    assert not positions.is_at_limit(talk(Message("user", "mk1q go. Give your final answer by the word Final.")))
    assert not positions.is_at_limit(talk(Message("user", "Look around, and give your final answer.")))


OUTPUT = re.compile(r"hello\s+wbcdf2x1x1")


@pytest.mark.parametrize(
    ("seen", "lost"),
    [
        ("Observation: hello\nwbcdf2x1x1\nThought:", "Observation: \nThought:"),
        ("<output>\nhello\nwbcdf2x1x1\n</output>", "<output>\n\n</output>"),
        ("hello\nwbcdf2x1x1", ""),
    ],
)
def test_what_stands_around_each_result_is_no_result(seen: str, lost: str):
    """So an empty one is seen to be empty, and another one is whole."""
    frame = ResultFrame.around(OUTPUT, seen)
    assert frame is not None and frame.without(lost) == ""
    assert frame.without(seen) == "hello\nwbcdf2x1x1"
    assert frame.without("an error") == "an error"


def test_results_are_read_without_their_frame(positions: Positions):
    """As the control run has shown it."""
    positions.results_in_text = ResultsInText.of({"shell": TEMPLATE}, ResultFrame("<output>", "</output>"))
    assert results(positions, ASKED, model(FIRST), Message("user", "<output>\nok\n</output>")) == [
        ("wbcdf1x1x1a1", "ok")
    ]


def test_a_result_in_other_words_has_no_frame():
    """As of an agent that sums it up, or puts it into a long text."""
    assert ResultFrame.around(OUTPUT, "It said hello.") is None
    assert ResultFrame.around(OUTPUT, "x" * 300 + "hello\nwbcdf2x1x1") is None
