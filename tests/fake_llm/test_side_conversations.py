"""Conversations beside the main one: a subagent, a planner or a judge is no attempt of the main conversation's step."""

import time
from dataclasses import replace

import pytest

from wedgehog.fake_llm.conversation import Conversation, Message, ToolCallSeen, ToolResultSeen, ToolSpec
from wedgehog.fake_llm.reply import Reply, Text, ToolCall
from wedgehog.fake_llm.script.call_tokens import note, prompt_mark
from wedgehog.fake_llm.script.main_call import MainShape
from wedgehog.fake_llm.script.openings import QuotedMessage, asides, lasting
from wedgehog.fake_llm.script.position import CallPosition, Positions
from wedgehog.fake_llm.script.script_file import ConversationWhen
from wedgehog.fake_llm.script.turns import ScriptedTurn, TurnScript

SALT, MARKER, WORDS = "wbcdf", "mkqrst1q", "Read both files, please."
TEXT = {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]}
TOOLS = (ToolSpec("bash"), ToolSpec("task", schema=TEXT))
SYSTEM = Message("system", "You are an agent.")
PROMPT = "Read the first file and say what is in it."


def user(text: str) -> Message:
    return Message("user", text)


MAIN = user(f"{MARKER} {WORDS}")


def talk(*messages: Message, system: Message = SYSTEM, tools: tuple[ToolSpec, ...] = TOOLS) -> Conversation:
    return Conversation("anthropic", "m", True, (system, *messages), tools)


def returned(step: int, text: str = "ok", call: int = 1) -> tuple[Message, Message]:
    """A tool round, as an agent that keeps our ids sends it."""
    id_ = f"toolu_{SALT}1x{step}x{call}a1"
    return (
        Message("assistant", tool_calls=(ToolCallSeen(id_, "task", "{}"),)),
        Message("tool", tool_results=(ToolResultSeen(id_, text),)),
    )


SHAPE = replace(MainShape.of(talk(MAIN)), marked=True)


@pytest.fixture
def positions() -> Positions:
    """Turn 1 is under way, and the main conversation has asked for its first step."""
    found = Positions(SALT, SHAPE)
    found.begin(1, MARKER, WORDS)
    found.place(talk(MAIN))
    return found


@pytest.fixture
def delegating(positions: Positions) -> Positions:
    """The model has called the tool `task` with a prompt."""
    positions.sides.offered(f"{SALT}1x1x1", 1, {"prompt": PROMPT})
    return positions


def is_main(place: CallPosition, step: int, attempt: int) -> bool:
    return (place.background, place.step, place.attempt) == ("", step, attempt)


# ---- subagents


@pytest.mark.parametrize(
    "opening",
    [PROMPT, f"Your task:\n{PROMPT}\nBe brief.", "Do what the description says.", f"{PROMPT} (For: {MARKER} {WORDS})"],
    ids=["the prompt", "wrapped", "other words", "with the user's message"],
)
def test_a_subagent_with_the_tools_and_the_system_text_of_its_parent_is_no_attempt(delegating: Positions, opening: str):
    place = delegating.place(talk(user(opening)))
    assert (place.background, str(place.side), place.turn, place.step, place.attempt) == (
        "subagent",
        "subagent 1",
        1,
        1,
        1,
    )
    assert is_main(delegating.place(talk(MAIN, *returned(1))), 2, 1)


def test_the_message_itself_under_another_system_text_is_a_subagent_while_a_prompt_waits(delegating: Positions):
    other = Message("system", "You are a reader of files.")
    assert delegating.place(talk(MAIN, system=other)).background == "subagent"
    assert is_main(delegating.place(talk(MAIN)), 1, 2)


def test_the_same_message_under_another_system_text_is_a_retry_where_nothing_was_delegated(positions: Positions):
    """An agent that falls back to another model may have another system text for it."""
    assert is_main(positions.place(talk(MAIN, system=Message("system", "You are a fallback."))), 1, 2)


def test_a_subagent_with_fewer_tools_is_one_too(delegating: Positions):
    assert delegating.place(talk(user(PROMPT), tools=())).background == "subagent"


def test_a_retry_of_a_subagent_is_an_attempt_of_its_own_step(delegating: Positions):
    first = talk(user(PROMPT))
    second = talk(user(PROMPT), Message("assistant", "Let me look."), user("Go on."))
    placed = [delegating.place(it) for it in (first, first, second)]
    assert [(str(it.side), it.step, it.attempt) for it in placed] == [
        ("subagent 1", 1, 1),
        ("subagent 1", 1, 2),
        ("subagent 1", 2, 1),
    ]


def test_parallel_subagents_are_told_apart_by_their_prompts(delegating: Positions):
    delegating.sides.offered(f"{SALT}1x1x2", 1, {"prompt": "Read file number 2."})
    delegating.sides.offered(f"{SALT}1x1x3", 1, {"prompt": "Read file number 3."})
    openings = [PROMPT, "Read file number 2.", "Read file number 3.", "Read file number 2."]
    placed = [delegating.place(talk(user(opening))) for opening in openings]
    assert [(str(it.side), it.attempt) for it in placed] == [
        ("subagent 1", 1),
        ("subagent 2", 1),
        ("subagent 3", 1),
        ("subagent 2", 2),
    ]


TITLE = Message("system", "Summarize this conversation in under 50 characters.")


@pytest.mark.parametrize("declared", [False, True], ids=["by its prompt", "declared"])
def test_a_request_for_the_title_of_a_subagent_is_no_subagent(delegating: Positions, declared: bool):
    """It offers no tools, and quotes the prompt of a conversation that has some."""
    if declared:
        delegating.named = lambda conversation: "reader" if PROMPT in conversation.text else ""
    assert delegating.place(talk(user(PROMPT))).side is not None
    asked = talk(user(f"A title for:\nUser: {PROMPT}\nModel: It is empty."), system=TITLE, tools=())
    place = delegating.place(asked)
    assert (place.background, place.side) == ("title", None)
    assert str(delegating.place(talk(user(PROMPT))).side) == ("reader 1" if declared else "subagent 1")


def test_a_request_for_the_title_of_an_ended_turn_is_no_subagent_though_a_prompt_still_waits(delegating: Positions):
    """A stopped turn leaves its prompts without results."""
    delegating.end(1)
    delegating.begin(2, "mkqrst2q", "And now?")
    place = delegating.place(talk(user(f"A title for:\nUser: {MARKER} {WORDS}"), system=TITLE, tools=()))
    assert (place.turn, place.background, place.side) == (2, "title", None)


def test_the_kind_of_a_subagent_is_no_prompt(positions: Positions):
    """Any request may hold such a word."""
    positions.sides.offered(f"{SALT}1x1x1", 1, {"subagent_type": "general-purpose"})
    place = positions.place(talk(user(f"A title, not general-purpose: {MARKER}"), system=TITLE, tools=()))
    assert (place.background, place.side) == ("title", None)


def test_a_prompt_is_known_by_the_mark_of_its_call_where_the_script_wrote_it(positions: Positions):
    """It holds also for an agent whose main calls never hold the marker."""
    positions.sides.marked = False
    positions.sides.offered(f"{SALT}1x1x1", 1, {"prompt": f"{prompt_mark(f'{SALT}1x1x1')} Look"})
    assert positions.place(talk(user(f"<task>{SALT.upper()}1x1x1a0 Look</task>"))).background == "subagent"


def test_a_subagent_that_outlives_its_turn_belongs_to_the_one_under_way(delegating: Positions):
    delegating.place(talk(user(PROMPT)))
    delegating.end()
    assert delegating.place(talk(user(PROMPT))).turn == 1
    delegating.begin(2, "mkqrst2q")
    place = delegating.place(talk(user(PROMPT)))
    assert (place.turn, str(place.side), place.attempt) == (2, "subagent 1", 3)


# ---- what is still the main conversation


def test_a_subagent_that_works_in_the_background_begins_after_the_result_of_its_call(positions: Positions):
    """Its prompt has the mark of the call; it belongs to the turn that began it, also if that is over."""
    positions.sides.offered(f"{SALT}1x1x1", 1, {"prompt": f"{SALT}1x1x1a0 {PROMPT}"})
    assert positions.place(talk(MAIN, *returned(1))).step == 2
    positions.end(1)
    place = positions.place(talk(user(f"{SALT}1x1x1a0 {PROMPT}")))
    assert (str(place.side), place.turn, place.step) == ("subagent 1", 1, 1)


def test_subagents_whose_task_stands_in_their_system_text_are_told_apart(positions: Positions):
    """Their messages are the same ones, and so is the head of the system text, which their parent has too."""
    for call in (1, 2):
        positions.sides.offered(f"{SALT}1x1x{call}", 1, {"prompt": f"{SALT}1x1x{call}a0 {PROMPT}"})
    assert positions.place(talk(MAIN, *returned(1), *returned(1, call=2))).step == 2
    begin = user("Begin. Your task is in the system prompt.")
    texts = [f"You are an agent. {'Rules. ' * 40}Your role: {SALT}1x1x{call}a0 {PROMPT}" for call in (1, 2, 1)]
    placed = [positions.place(talk(begin, system=Message("system", text))) for text in texts]
    assert [(str(it.side), it.step, it.attempt) for it in placed] == [
        ("subagent 1", 1, 1),
        ("subagent 2", 1, 1),
        ("subagent 1", 1, 2),
    ]


def test_a_scripted_subagent_is_found_by_a_task_in_its_system_text():
    """A condition on its opening asks for the task, wherever the agent puts it."""
    first = ConversationWhen(opening="/Read the first file/")
    positions = Positions(SALT, SHAPE, lambda request: "reader" if first.holds(request) else "")
    positions.begin(1, MARKER, WORDS)
    positions.place(talk(MAIN))
    for call, which in ((1, "first"), (2, "second"), (3, "first")):
        positions.sides.offered(f"{SALT}1x1x{call}", 1, {"prompt": f"{SALT}1x1x{call}a0 Read the {which} file."})
    positions.place(talk(MAIN, *returned(1), *returned(1, call=2), *returned(1, call=3)))
    begin = user("Begin. Your task is in the system prompt.")
    systems = [Message("system", f"You are an agent. {'Rules. ' * 40}Task: {SALT}1x1x{call}a0") for call in (1, 2, 3)]
    placed = [positions.place(talk(begin, system=system)) for system in systems]
    placed.append(positions.place(talk(begin, *returned(9), system=systems[0])))
    assert [(str(it.side), it.step) for it in placed] == [
        ("reader 1", 1),
        ("subagent 1", 1),
        ("reader 2", 1),
        ("reader 1", 2),
    ]


@pytest.mark.parametrize(
    "messages",
    [(MAIN,), (MAIN, *returned(1)), (user("Summarize the conversation so far."),)],
    ids=["a retry", "a step", "a summary"],
)
def test_a_system_text_that_lists_the_subagents_makes_none(positions: Positions, messages: tuple[Message, ...]):
    """The parent may show its model which ones are at work."""
    positions.sides.offered(f"{SALT}1x1x1", 1, {"prompt": f"{SALT}1x1x1a0 {PROMPT}"})
    assert positions.place(talk(MAIN, *returned(1))).step == 2
    lists = Message("system", f"You are an agent. At work: {SALT}1x1x1a0 {PROMPT}")
    assert positions.place(talk(*messages, system=lists)).background != "subagent"


def test_a_fork_is_a_subagent_that_begins_with_a_copy_of_the_conversation(positions: Positions):
    """It is known by the prompt behind the copy; a message that reports the launch makes no fork."""
    mark = f"{SALT}1x1x1a0"
    positions.sides.offered(f"{SALT}1x1x1", 1, {"prompt": f"{mark} {PROMPT}"})
    launched = returned(1, "Launched.")
    fork = [MAIN, *launched, user(f"You are a forked worker. {mark} {PROMPT}"), Message("assistant", "Understood.")]
    first = positions.place(talk(*fork, user("Begin.")))
    assert (str(first.side), first.step, first.attempt) == ("subagent 1", 1, 1)
    second = positions.place(talk(*fork, user("Begin."), *returned(9)))
    assert (str(second.side), second.step) == ("subagent 1", 2)
    main = positions.place(talk(MAIN, *launched))
    assert (main.side, main.step, main.attempt) == (None, 2, 1)
    told = user(f"You are told that the task '{mark} {PROMPT}' has ended.")
    assert positions.place(talk(MAIN, *launched, Message("assistant", "It works."), told)).side is None


def test_a_report_of_a_launch_makes_no_fork(positions: Positions):
    mark = f"{SALT}1x1x1a0"
    positions.sides.offered(f"{SALT}1x1x1", 1, {"prompt": f"{mark} {PROMPT}"})
    assert positions.place(talk(MAIN, *returned(1), user(f"Launched: {mark} {PROMPT}"))).side is None


def test_a_summary_that_quotes_a_prompt_is_no_subagent(positions: Positions):
    """It quotes the message of the user, too."""
    positions.sides.offered(f"{SALT}1x1x1", 1, {"prompt": f"{SALT}1x1x1a0 {PROMPT}"})
    positions.place(talk(MAIN, *returned(1)))
    told = user(f"So far: the user said {MARKER} {WORDS}; a task was begun: {SALT}1x1x1a0 {PROMPT}")
    assert positions.place(talk(told)).side is None


def test_a_retry_whose_text_holds_an_argument_of_its_own_tool_call_is_a_retry(positions: Positions):
    """The user named the file that the model reads; a clock before the message makes the opening another one."""
    said = "mkqrst1q read /tmp/some/file.txt"
    assert is_main(positions.place(talk(user(f"[12:00:01] {said}"))), 1, 2)
    positions.sides.offered(f"{SALT}1x1x1", 1, {"path": "/tmp/some/file.txt"})
    assert is_main(positions.place(talk(user(f"[12:00:02] {said}"))), 1, 3)


@pytest.mark.parametrize(
    "later",
    [
        talk(user(f"So far the files were read. Now: {MARKER} {WORDS}")),
        talk(user(f"The conversation so far: A short note {note(SALT, 7)}. Go on.")),
        talk(user("Earlier messages were left out."), *returned(1)),
        talk(user("Earlier messages were left out."), Message("assistant", "Let me look."), user("Go on.")),
        talk(user("Go on."), system=Message("system", f"You are an agent. So far: {note(SALT, 7)}")),
    ],
    ids=["with the message", "a summary", "with results", "with a reply", "a summary in the system text"],
)
def test_a_summary_in_the_place_of_messages_is_the_main_conversation(delegating: Positions, later: Conversation):
    delegating.place(talk(MAIN, *returned(1)))
    delegating.sides.answered(7, "summary", structured=False)
    assert is_main(delegating.place(later), 2, 2)
    assert is_main(delegating.place(later), 2, 3), "and so is its retry"


@pytest.mark.parametrize("empty", [True, False])
def test_what_follows_an_empty_summary_is_the_main_conversation(positions: Positions, empty: bool):
    """It takes the place of all messages. After a failed one, an agent that goes on without them has lost them."""
    positions.place(talk(MAIN, *returned(1)))
    positions.sides.answered(7, "summary", structured=False)
    if empty:
        positions.sides.said_nothing("summary")
    place = positions.place(talk(user("Go on.")))
    assert is_main(place, 2, 2) if empty else place.background == "side"


def test_a_judge_after_a_summary_is_no_main_call(positions: Positions):
    """It has another system text, or the main conversation has gone on."""
    positions.sides.said_nothing("summary")
    assert positions.place(talk(user("Is that right?"), system=Message("system", "You judge."))).background == "side"
    assert is_main(positions.place(talk(user("Go on."))), 1, 2)
    assert positions.place(talk(user("Is that right?"))).background == "side"


def test_a_structured_summary_is_followed_by_the_main_conversation(positions: Positions):
    """Its words are the schema's, and how the agent writes them down is unknown."""
    positions.place(talk(MAIN, *returned(1)))
    positions.sides.answered(7, "compact", structured=True)
    assert is_main(positions.place(talk(user("Goal: a short phrase. Go on."))), 2, 2)
    assert positions.place(talk(user("Is that right?"))).background == "side"


def test_an_earlier_place_is_asked_again_and_is_no_side_conversation(delegating: Positions):
    """The same opening as before, and fewer rounds than before."""
    delegating.place(talk(MAIN, *returned(1)))
    delegating.place(talk(MAIN, *returned(1), *returned(2)))
    assert is_main(delegating.place(talk(MAIN)), 1, 2)


def test_an_agent_that_writes_its_users_words_anew_has_one_conversation(positions: Positions):
    """Its main calls hold no marker in its control run."""
    positions.sides.marked = False
    assert is_main(positions.place(talk(user("Could you read both files?"))), 1, 2)


def test_a_new_turn_without_a_marker_is_the_main_conversation(positions: Positions):
    """The agent's own timer fired."""
    positions.end()
    positions.begin(2, "mkqrst2q")
    assert is_main(positions.place(talk(user("Your timer fired."))), 1, 1)


@pytest.mark.parametrize(
    ("asks", "purpose"),
    [
        ("Summarize the conversation so far in detail.", "compact"),
        ("Please write a detailed summary of this session for a colleague.", "compact"),
        ("You have reached the maximum number of steps. Summarize the conversation.", ""),
        ("Sum up our conversation so far.", "compact"),
        ("Now summarise the files for me.", ""),
    ],
)
def test_a_compaction_with_the_tools_of_the_main_conversation_is_no_attempt(
    positions: Positions, asks: str, purpose: str
):
    told = (MAIN, *returned(1))
    positions.place(talk(*told))
    assert positions.place(talk(*told, Message("assistant", "Done."), user(asks))).background == purpose


def test_a_compaction_that_quotes_the_whole_conversation_is_no_attempt_and_its_results_count(positions: Positions):
    """The results that it summarizes are never sent to the main conversation, and their tools must not run again."""
    printed = f"ok\n{SALT}1x1x1\n"
    asks = talk(user(f"Summarize the conversation so far, with all that matters:\nuser: {MAIN.text}\ntool: {printed}"))
    assert positions.place(asks).background == "compact"
    positions.sides.answered(2, "compact", structured=False)
    after = talk(user(f"What was said before: A short note {note(SALT, 2)}. The message: {MAIN.text}"))
    assert is_main(positions.place(after), 2, 1)


@pytest.mark.parametrize(
    ("opening", "purpose"), [("You are an agent.", "compact"), ("You judge what others say.", "side")]
)
def test_a_compaction_may_have_lost_all_that_was_said(positions: Positions, opening: str, purpose: str):
    """An agent that shortens the conversation until it fits sends only the question, behind its own system text."""
    positions.place(talk(Message("system", "You are an agent."), MAIN))
    asks = user("Please provide a concise summary of our conversation so far, with the key decisions.")
    assert positions.place(talk(Message("system", opening), asks)).background == purpose


@pytest.mark.parametrize(
    ("asks", "purpose"),
    [
        ("Summarize this coding conversation in under 50 characters.", "title"),
        ("Summarize this conversation in 6 words.", "title"),
        ("Summarize the conversation so far for yourself, in 200 words.", "summary"),
        ("Summarize what was said, in under 4000 characters.", "summary"),
        ("Summarize the conversation. It was about a title and a loop.", "title"),
        ("Your task is to create a detailed summary of the conversation so far.", "summary"),
    ],
)
def test_what_a_call_without_tools_is_for_stands_in_its_instructions(positions: Positions, asks: str, purpose: str):
    told = (MAIN, Message("assistant", "A title? A loop? Memories?"), user(asks))
    assert positions.place(talk(*told, tools=())).background == purpose


# ---- planners and judges


PLANNER = Message("system", "You plan.")


@pytest.mark.parametrize(
    "plans",
    [
        lambda said: talk(user(f"Make a plan for this: {said}")),
        lambda said: talk(user(f"{said}\n\nFirst, only write a plan.")),
        lambda said: talk(user(said), system=PLANNER),
    ],
    ids=["before", "behind", "system text"],
)
def test_a_planner_that_quotes_the_user_is_known_from_the_control_run(plans):
    control = "mkctrl1q Hello! Please answer."
    answering = talk(user(control))
    found = asides([plans(control), answering], answering, QuotedMessage("mkctrl1q", "Hello! Please answer."))
    positions = Positions(SALT, replace(SHAPE, asides=found))
    positions.begin(1, MARKER, WORDS)
    assert positions.place(plans(f"{MARKER} {WORDS}")).background == "side"
    assert is_main(positions.place(talk(MAIN)), 1, 1)


def test_calls_of_one_growing_text_are_no_asides():
    """An agent that writes its steps behind the question asks one conversation."""
    first, second = talk(user("mkctrl1q Hi\nThought:")), talk(user("mkctrl1q Hi\nThought: I know.\nAnswer:"))
    assert asides([first, second], second, QuotedMessage("mkctrl1q", "Hi")) == frozenset()


def test_a_judge_that_does_not_quote_the_user_is_a_side_conversation(positions: Positions):
    judge = talk(user("Rate this answer from 1 to 10: The files are empty."))
    place = positions.place(judge)
    assert (place.background, str(place.side)) == ("side", "side 1")


# ---- what they are told


def test_a_subagent_gets_words_of_its_own_and_never_the_call_of_its_parent():
    positions = Positions(SALT, SHAPE)
    positions.begin(1, MARKER, WORDS)
    turn = ScriptedTurn((Reply((ToolCall("subagent", {"prompt": "Read it."}),)), Reply((Text("{nonce}"),))), "NONCE")
    script = TurnScript(positions, {1: turn})
    (call,) = script.answer(1, talk(MAIN)).items
    assert call == ToolCall("task", {"prompt": f"{SALT}1x1x1a0 Read it."}, f"{SALT}1x1x1a1")
    positions.sides.offered(f"{SALT}1x1x1", 1, call.args)
    said = script.answer(2, talk(user(call.args["prompt"])))
    assert said == Reply((Text(f"The task is done. {note(SALT, 2)}"),))
    assert script.answer(3, talk(MAIN, *returned(1, said.items[0].text))).items == (Text("NONCE"),)


@pytest.mark.parametrize(
    ("text", "left"), [("x" * 20_000, "x" * 20_000), ("at 2026-01-02T03:04 in run-a1b", "at 0 in run-0")]
)
def test_a_long_word_in_a_system_text_is_read_in_linear_time(text: str, left: str):
    """A search at each of its letters would take seconds, and for a pasted file minutes."""
    started_s = time.process_time()
    assert lasting(text) == left
    assert time.process_time() - started_s < 0.5
