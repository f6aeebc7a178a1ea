"""Positions: which turn, step and attempt a request is, read from its conversation alone."""

from typing import Any

import pytest

from wedgehog.fake_llm.conversation import Conversation, Message, ToolCallSeen, ToolResultSeen, ToolSpec
from wedgehog.fake_llm.script.main_call import MainShape
from wedgehog.fake_llm.script.position import Positions

SALT, MARKERS = "wbcdf", {1: "mkqrst1q", 2: "mkqrst2q", 11: "mkqrst11q"}
TOOLS = (ToolSpec("bash"), ToolSpec("read"))


def talk(*messages: Message, tools: tuple[ToolSpec, ...] = TOOLS, schema: Any = None) -> Conversation:
    return Conversation("anthropic", "m", True, messages, tools, schema=schema)


def user(text: str) -> Message:
    return Message("user", text)


def system(text: str) -> Message:
    return Message("system", text)


def calls(*ids: str) -> Message:
    return Message("assistant", tool_calls=tuple(ToolCallSeen(id_, "bash", "{}") for id_ in ids))


def results(*pairs: tuple[str, str]) -> Message:
    return Message("tool", tool_results=tuple(ToolResultSeen(id_, text) for id_, text in pairs))


def rounds(positions: Positions, turn: int, upto: int) -> list[Message]:
    """The tool rounds of a turn, as an agent that keeps our ids tells them."""
    told: list[Message] = []
    for step in range(1, upto + 1):
        id_ = f"toolu_{positions.tokens.token(turn, step, 1)}a1"
        told += [calls(id_), results((id_, "ok"))]
    return told


@pytest.fixture
def positions() -> Positions:
    """Turn 1 is under way."""
    found = Positions(SALT)
    found.begin(1, MARKERS[1])
    return found


# ---- turns


@pytest.mark.parametrize(
    "said",
    [
        "mkqrst1q List the files",
        "MKQRST1Q LIST THE FILES",
        "<user_query>\nmkqrst1q List the files\n</user_query>",
        '> "mkqrst1q List the files"',
        "Today is Monday.\n\nmkqrst1q List the files\n\n[system reminder: be brief]",
    ],
)
def test_a_marker_is_found_quoted_shouted_or_wrapped(positions: Positions, said: str):
    """Agents decorate what their users say."""
    positions.begin(2, MARKERS[2])
    assert positions.place(talk(system("You are."), user(said))).turn == 1


def test_the_highest_marker_of_the_last_marked_message_is_the_turn(positions: Positions):
    """A message that quotes the earlier ones is the newest of them; markers of eleven do not hold that of one."""
    for turn, marker in MARKERS.items():
        positions.begin(turn, marker)
    assert positions.place(talk(user("mkqrst1q a"), user("mkqrst2q b"))).turn == 2
    assert positions.place(talk(user("before: mkqrst1q a. now: mkqrst2q b"))).turn == 2
    place = positions.place(talk(user("mkqrst11q c")))
    assert (place.turn, place.turns_seen) == (11, (11,))


def test_a_marker_counts_only_where_the_user_says_it(positions: Positions):
    """The model may have repeated it, and a tool may have printed it."""
    positions.begin(2, MARKERS[2])
    place = positions.place(talk(user("mkqrst1q a"), Message("assistant", "you said mkqrst2q?"), user("go on")))
    assert place.turn == 1


def test_without_any_marker_it_is_the_turn_under_way(positions: Positions):
    """An agent that rephrases its user; and none when nothing is under way."""
    assert positions.place(talk(user("List the files"))).turn == 1
    positions.end()
    assert positions.place(talk(user("List the files"))).turn == 0
    assert positions.place(talk()).turn == 0


def test_a_late_request_of_an_earlier_turn_stays_in_its_turn(positions: Positions):
    """Its own marker decides, not the turn under way."""
    positions.end()
    positions.begin(2, MARKERS[2])
    assert positions.place(talk(user("mkqrst1q a"))).turn == 1


def test_the_turns_whose_markers_are_still_there_are_told(positions: Positions):
    """It shows whether a session was resumed with its context."""
    positions.begin(2, MARKERS[2])
    assert positions.place(talk(user("mkqrst1q a"), user("mkqrst2q b"))).turns_seen == (1, 2)
    assert positions.place(talk(user("mkqrst2q b"))).turns_seen == (2,)


# ---- steps


def test_each_round_of_results_is_one_step_further(positions: Positions):
    """Step 1 carries none, step 2 the first round's."""
    told = [user("mkqrst1q go")]
    assert positions.place(talk(*told)).step == 1
    assert positions.place(talk(*told, *rounds(positions, 1, 1))).step == 2
    assert positions.place(talk(*told, *rounds(positions, 1, 3))).step == 4


def test_steps_never_go_back_when_history_is_trimmed(positions: Positions):
    """An agent that drops its oldest rounds is not asked to repeat itself."""
    told = [user("mkqrst1q go"), *rounds(positions, 1, 3)]
    assert positions.place(talk(*told)).step == 4
    assert positions.place(talk(told[0])).step == 4
    assert positions.place(talk(user("Summary of what was done; mkqrst1q go"))).step == 4


def test_a_new_turn_begins_at_its_own_first_step(positions: Positions):
    """Results of the turn before belong to it, with or without their messages."""
    told = [user("mkqrst1q go"), *rounds(positions, 1, 2)]
    positions.place(talk(*told))
    positions.begin(2, MARKERS[2])
    assert positions.place(talk(*told, Message("assistant", "done"), user("mkqrst2q and now"))).step == 1
    late = rounds(positions, 1, 2)[-1]
    assert positions.place(talk(user("mkqrst2q and now"), late)).step == 1


def test_the_rounds_of_earlier_turns_are_no_steps_of_one_whose_message_was_lost(positions: Positions):
    """A summary has taken the place of all messages of the user; the results behind it are of turn 1."""
    earlier = rounds(positions, 1, 2)
    positions.begin(2, MARKERS[2])
    assert positions.place(talk(user("Summary: all is well."), *earlier)).step == 1
    assert positions.place(talk(user("Summary: all is well."))).step == 1


def test_a_renamed_call_is_known_by_the_token_that_its_command_printed(positions: Positions):
    """Some agents give ids of their own."""
    token = positions.tokens.token(1, 2, 1)
    told = talk(user("mkqrst1q go"), calls("call_0"), results(("call_0", f"file.txt\n{token.upper()}\n")))
    assert positions.place(told).step == 3
    assert positions.tokens.of(ToolResultSeen("call_0", f"x {token}")) == "1.2.1"


def test_renamed_calls_that_print_nothing_are_counted_by_rounds(positions: Positions):
    """Two rounds with results without a token are step 3."""
    told = [user("mkqrst1q go"), calls("a"), results(("a", "")), calls("b", "c"), results(("b", ""), ("c", ""))]
    assert positions.place(talk(*told)).step == 3


@pytest.mark.parametrize(
    ("id_", "text", "found"),
    [
        ("toolu_wbcdf1x2x3a4", "", "1.2.3"),
        ("call_WBCDF1X2X3A4", "", "1.2.3"),
        ("mine", "wbcdf12x3x10", "12.3.10"),
        ("toolu_wbcdf1x2x3a1", "wbcdf9x9x9", "1.2.3"),
        ("other1x2x3", "1x2x3", ""),
        ("", "", ""),
    ],
)
def test_a_result_is_known_by_its_id_first_and_by_what_was_printed_next(
    positions: Positions, id_: str, text: str, found: str
):
    """Another run's tokens are ignored."""
    assert positions.tokens.of(ToolResultSeen(id_, text)) == found


def test_a_result_without_an_id_and_without_output_is_known_by_the_command_of_its_call(positions: Positions):
    """As of a stopped command, where the wire gives calls no id: its place says which call it answers."""
    told = ToolResultSeen("2/1", "stopped after 30 s", asked='{"command": "sleep 600; echo wbcdf1x2x3"}')
    assert positions.tokens.of(told) == "1.2.3"
    assert positions.tokens.of(ToolResultSeen("2/1", "wbcdf1x2x4", asked=told.asked)) == "1.2.4", (
        "its output comes first"
    )


# ---- results that travel as text


def command(token: str) -> str:
    """The end of a scripted command, as an agent may quote it."""
    return f"ls; printf '%s\\n' {token}; (exit $wedgehog_status)"


@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool"])
def test_a_result_that_travels_as_text_is_a_step_in_any_role(positions: Positions, role: Any):
    """An agent may write `Observation: …` where others send a tool result."""
    first, second = positions.tokens.token(1, 1, 1), positions.tokens.token(1, 2, 1)
    told = [user("mkqrst1q go"), Message(role, f"Observation: a.txt\n{first}\n")]
    assert positions.place(talk(*told)).step == 2
    told += [Message("assistant", "Action: bash"), Message(role, f"Observation: b.txt\n{second}")]
    assert positions.place(talk(*told)).step == 3


@pytest.mark.parametrize(
    "quoted", ["{command}", "id=toolu_{token}a1", '{{"command": "printf \'%s\\\\n\' {token}; (exit 1)"}}']
)
def test_a_call_that_is_written_as_text_is_no_result(positions: Positions, quoted: str):
    """The command holds the token that it is going to print, and the call's id holds it too."""
    token = positions.tokens.token(1, 1, 1)
    said = Message("assistant", f"Action: {quoted.format(command=command(token), token=token)}")
    assert positions.place(talk(user("mkqrst1q go"), said)).step == 1


@pytest.mark.parametrize(
    ("told", "step"),
    [
        ([user("Observation: [error: ended by signal 9]")], 2),
        ([user("Observation: [error: ended by signal 9]"), Message("assistant", "Hm.")], 2),
        ([], 1),
    ],
)
def test_a_result_in_text_without_output_is_known_by_its_quoted_call(positions: Positions, told: Any, step: int):
    """A killed command prints nothing. Of an agent that sends results by their ids, words behind a call are none."""
    token = positions.tokens.token(1, 1, 1)
    quoted = Message("assistant", f"Calling tools: [{{'id': 'call_{token}a1', 'function': {{'name': 'bash'}}}}]")
    said = talk(user("mkqrst1q go"), quoted, *told)
    assert positions.answered_in_text(said) == ()
    positions.results_as_words = True
    assert positions.answered_in_text(said) == (("1.1.1",) if told else ())
    assert positions.place(said).step == step


def test_results_in_text_are_told_with_their_calls(positions: Positions):
    """Each once, in order; those of tool messages are not among them."""
    one, two = positions.tokens.token(1, 1, 1), positions.tokens.token(1, 1, 2)
    said = talk(user(f"mkqrst1q\n{two}\n{one}\n{two}"), results((f"toolu_{one}a1", one)))
    assert positions.tokens_in_text(said) == ("1.1.2", "1.1.1")


# ---- a turn that is played again


def test_a_conversation_that_came_before_gets_its_old_place(positions: Positions):
    """An agent that drops a finished round and asks as at first is offered the call again, and goes on from there."""
    told = [user("mkqrst1q go"), *rounds(positions, 1, 2)]
    for upto in (1, 3, 5):
        positions.place(talk(*told[:upto]))
    again = positions.place(talk(told[0]))
    assert (again.step, again.attempt) == (1, 2)
    renamed = f"toolu_{positions.tokens.token(1, 1, 1)}a2"
    after = positions.place(talk(told[0], calls(renamed), results((renamed, "ok"))))
    assert (after.step, after.attempt) == (2, 2)
    assert positions.place(talk(user("A summary: mkqrst1q go"))).step == 2


@pytest.mark.parametrize(
    "later",
    [
        talk(user("The user said mkqrst1q go. So far: listed the files.")),
        talk(user("mkqrst1q go"), user("Summary: the files are listed.")),
        talk(system("You conclude."), user("mkqrst1q go")),
        talk(user("mkqrst1q go"), tools=()),
    ],
)
def test_a_compaction_or_another_question_does_not_go_back(positions: Positions, later: Conversation):
    """Words in the place of messages, another system text or other tools: it is not the request of before."""
    told = [user("mkqrst1q go"), *rounds(positions, 1, 2)]
    for upto in (1, 3, 5):
        positions.place(talk(*told[:upto]))
    assert positions.place(later).step == 3


def test_the_time_in_a_system_text_makes_no_other_conversation(positions: Positions):
    """Agents write the time into it."""
    told = [user("mkqrst1q go"), *rounds(positions, 1, 1)]
    positions.place(talk(system("You are. It is 12:00:01."), told[0]))
    positions.place(talk(system("You are. It is 12:00:02."), *told))
    assert positions.place(talk(system("You are. It is 12:00:03."), told[0])).step == 1


def test_a_window_that_shows_only_the_last_round_goes_on(positions: Positions):
    """Two requests of the same length are not the same."""
    told = [user("mkqrst1q go"), *rounds(positions, 1, 3)]
    windows = [told[:1], told[:3], [told[0], *told[3:5]], [told[0], *told[5:7]]]
    assert [positions.place(talk(*window)).step for window in windows] == [1, 2, 3, 4]
    told = [system(f"So far: {positions.tokens.token(2, step, 1)}") for step in (1, 2, 3)]
    positions.begin(2, MARKERS[2])
    assert [positions.place(talk(it, user("mkqrst2q go"))).step for it in told] == [2, 3, 4]


def test_repeats_of_a_step_are_its_attempts(positions: Positions):
    """Counted per step; a further step begins at one again."""
    first, second = talk(user("mkqrst1q go")), talk(user("mkqrst1q go"), *rounds(positions, 1, 1))
    placed = [positions.place(it) for it in (first, first, second, first, second)]
    assert [(place.step, place.attempt) for place in placed] == [(1, 1), (1, 2), (2, 1), (1, 3), (2, 2)]


# ---- main and background


MAIN = MainShape.of(talk(system("You are an agent."), user("x")))


@pytest.mark.parametrize(
    ("messages", "tools", "background"),
    [
        ([system("You are an agent."), user("mkqrst1q go")], TOOLS, ""),
        ([system("Another prompt."), user("mkqrst1q go")], TOOLS[:1], ""),
        ([system("You are an agent."), user("mkqrst1q go")], (), "other"),
        ([user("Write a title for: mkqrst1q go")], (), "title"),
        ([system("Summarize the conversation."), user("mkqrst1q go")], (), "summary"),
        ([user("Is this a loop? mkqrst1q")], (ToolSpec("answer"),), "loop"),
    ],
)
def test_background_calls_are_known_by_their_shape(
    messages: list[Message], tools: tuple[ToolSpec, ...], background: str
):
    """At least half of the main call's tools make a main call; what else a call is for is guessed from its words."""
    positions = Positions(SALT, MAIN)
    positions.begin(1, MARKERS[1])
    place = positions.place(talk(*messages, tools=tools))
    assert (place.background, place.turn) == (background, 1)


def test_a_structured_call_without_words_that_tell_is_called_structured():
    """A schema is asked for, and nothing says why."""
    positions = Positions(SALT, MAIN)
    assert positions.place(talk(user("ok?"), tools=(), schema={"type": "object"})).background == "structured"


def test_an_agent_without_tools_is_known_by_the_opening_of_its_system_text():
    """Its title calls have another; a structured answer is another shape too."""
    bare = talk(system("You are an agent."), user("x"), tools=())
    positions = Positions(SALT, MainShape.of(bare))
    assert positions.place(bare).background == ""
    assert positions.place(talk(system("You write titles."), user("x"), tools=())).background == "title"
    asks = talk(system("You are an agent."), user("x"), tools=(), schema={"type": "object"})
    assert positions.place(asks).background == "structured"
    assert positions.place(talk(system("You are an agent."), user("x"))).background == "other", "it has tools now"


def test_a_second_try_by_the_same_schema_is_a_main_call_with_a_note_in_the_system_text_too():
    """Pydantic AI puts one between the reply that did not fit and its question; another schema is another call."""
    schema = {"type": "object", "properties": {"answer": {"type": "string"}}}
    asked = talk(user("mkqrst1q go"), tools=(), schema=schema)
    positions = Positions(SALT, MainShape.of(asked))
    positions.begin(1, MARKERS[1])
    again = (*asked.messages, Message("assistant", "{}"), system("A note."), user("It does not fit: title is missing."))
    place = positions.place(talk(*again, tools=(), schema=schema))
    assert (place.background, place.turn, place.step) == ("", 1, 1)
    other = {"type": "object", "properties": {"title": {"type": "string"}}}
    assert positions.place(talk(*again, tools=(), schema=other)).background == "title"
    named = (system("You judge."), *again)
    assert positions.place(talk(*named, tools=(), schema=schema)).background == "title"


@pytest.mark.parametrize(
    ("control", "later"),
    [
        ("2026-06-01T12:00:00Z You are an agent.", "2027-11-30T09:59:59.125Z You are an agent."),
        ("[09:05] You are an agent.", "[23:59] You are an agent."),
        ("Session 4f0a2b91 of run 7. You are an agent.", "Session 99 of run 12. You are an agent."),
    ],
)
def test_a_system_text_that_begins_with_the_time_is_still_the_agents(control: str, later: str):
    """Dates, times and ids in the system text do not count; its words do."""
    positions = Positions(SALT, MainShape.of(talk(system(control), user("x"), tools=())))
    assert positions.place(talk(system(later), user("x"), tools=())).background == ""
    other = later.replace("You are an agent", "You write a title")
    assert positions.place(talk(system(other), user("x"), tools=())).background == "title"


def test_a_system_text_that_differs_in_every_call_tells_nothing():
    """A shape without one is compared by its other fields."""
    positions = Positions(SALT, MainShape())
    assert positions.place(talk(system("Mood: sunny."), user("x"), tools=())).background == ""
    assert positions.place(talk(system("Mood: rainy."), user("x"), tools=())).background == ""
    assert positions.place(talk(system("x"), user("x"), tools=(), schema={"type": "object"})).background
    assert positions.place(talk(system("x"), user("x"))).background == "other"


def test_a_call_that_carries_our_results_is_main_whatever_it_looks_like():
    """An agent that offers no tools with its last step still continues the conversation."""
    positions = Positions(SALT, MAIN)
    positions.begin(1, MARKERS[1])
    told = talk(user("mkqrst1q go"), *rounds(positions, 1, 1), tools=())
    place = positions.place(told)
    assert (place.background, place.step) == ("", 2)


@pytest.mark.parametrize(
    ("last", "background"),
    [
        ("You are at your limit. Answer now.", ""),
        ("Maximum number of tool iterations reached. Provide a final response that summarizes your work.", ""),
        ("Summarize the conversation for another model that goes on with it.", "summary"),
        ("Sum up this conversation in a few sentences. Keep names and results.", "summary"),
        ("Condense what was said before.", "summary"),
        ("Give a recap of the dialogue for another model.", "summary"),
        ("You are at your limit of steps. Sum up what you have done.", ""),
        ("Sum up the talk in at most 5 words.", "title"),
        ("Is this a loop? Say yes or no.", "loop"),
    ],
)
@pytest.mark.parametrize("as_text", [False, True])
def test_a_last_question_without_tools_is_a_main_call(last: str, background: str, as_text: bool):
    """An agent at its limit keeps its system text and the turn's results; so does a compaction, whose words tell."""
    positions = Positions(SALT, MAIN)
    positions.begin(1, MARKERS[1])
    round_ = [user(f"Observation: {positions.tokens.token(1, 1, 1)}")] if as_text else rounds(positions, 1, 1)
    told = [system("You are an agent."), user("mkqrst1q go"), *round_, user(last)]
    place = positions.place(talk(*told, tools=()))
    assert (place.background, place.step) == (background, 2)
    stranger = talk(system("You judge."), *told[1:], tools=())
    assert positions.place(stranger).background


@pytest.mark.parametrize(
    ("own_system", "last", "aside", "main"),
    [
        (True, "Please answer the user now.", False, True),
        (True, "", False, True),
        (True, "Give this chat a title.", False, False),
        (False, "Please answer the user now.", False, False),
        (True, "Please answer the user now.", True, False),
    ],
)
def test_a_last_try_without_tools_after_a_main_call_is_a_main_call(
    own_system: bool, last: str, aside: bool, main: bool
):
    """Its first replies were empty. Of an agent that makes calls beside the conversation it may be one of these."""
    positions = Positions(SALT, MAIN, never_aside=not aside)
    positions.begin(1, MARKERS[1])
    told = [system("You are an agent."), user("mkqrst1q go")]
    more = [user(last)] if last else []
    asked = talk(*(told if own_system else [system("You judge."), told[1]]), *more, tools=())
    assert positions.place(asked).background, "no main call came before"
    positions.place(talk(*told))
    place = positions.place(asked)
    assert (not place.background, place.attempt) == (main, 2 if main else 1)


def test_background_calls_are_no_attempts_and_move_no_step():
    """A title between two attempts leaves the second one the second."""
    positions = Positions(SALT, MAIN)
    positions.begin(1, MARKERS[1])
    main, title = talk(system("You are an agent."), user("mkqrst1q go")), talk(user("a title: mkqrst1q"), tools=())
    placed = [positions.place(it) for it in (main, title, main)]
    assert [(place.attempt, place.background) for place in placed] == [(1, ""), (1, "title"), (2, "")]
    summary = talk(user("summarize: mkqrst1q"), *rounds(positions, 1, 3), user("summary please"), tools=())
    assert positions.place(summary).background == "summary"
    assert positions.place(main).step == 1


def test_what_the_agent_tells_the_model_counts_before_a_word_in_its_long_system_text():
    """An agent's instructions speak of titles; its last message asks for a summary, whose words replace the results."""
    shape = MainShape(frozenset({"bash", "read"}))
    positions = Positions(SALT, shape)
    positions.begin(1, MARKERS[1])
    told = system("You are an agent. Keep titles short.")
    said = [told, user("mkqrst1q go"), *rounds(positions, 1, 2)]
    positions.place(talk(*said[:-2]))
    asks = talk(*said, user("Create a handoff summary for another model, with all context."), tools=())
    assert (positions.place(asks).background, positions.place(asks).step) == ("summary", 3)
    after = talk(told, user("mkqrst1q go"), user("Here is the summary: all is well"))
    assert positions.place(after).step == 3, "its results stand in the summary"


def test_what_the_user_asks_for_is_not_what_a_title_call_asks_for():
    """A title call quotes the user, who asks for a summary."""
    positions = Positions(SALT, MainShape(frozenset({"bash"})))
    positions.begin(1, MARKERS[1])
    asks = talk(system("You write titles."), user("mkqrst1q Write a summary of the log."), tools=())
    assert positions.place(asks).background == "title"


def test_without_a_shape_every_call_is_main():
    """The control run is where the shape is found."""
    assert Positions(SALT).place(talk(user("Write a title"), tools=())).background == ""


# ---- the turn of a background call


SUMMARY = talk(user("Summarize: mkqrst1q go"), *rounds(Positions(SALT), 1, 3), user("summary please"), tools=())


@pytest.fixture
def of_two_turns() -> Positions:
    """The first turn is over, the second is under way."""
    positions = Positions(SALT, MAIN)
    positions.begin(1, MARKERS[1])
    positions.end(1)
    positions.begin(2, MARKERS[2])
    return positions


def test_a_background_call_belongs_to_the_turn_under_way_when_it_arrives(of_two_turns: Positions):
    """A summary made at the start of a turn quotes the turn before, and is made for this one."""
    place = of_two_turns.place(SUMMARY)
    assert (place.background, place.turn, place.step, place.turns_seen) == ("summary", 2, 1, (1,))


def test_of_two_turns_at_once_a_background_call_belongs_to_the_one_that_it_quotes(of_two_turns: Positions):
    """Where it quotes neither, it belongs to the one that began last."""
    of_two_turns.begin(11, MARKERS[11])
    assert of_two_turns.place(talk(user("a title: mkqrst2q"), tools=())).turn == 2
    assert of_two_turns.place(talk(user("a title"), tools=())).turn == 11


def test_while_no_turn_is_under_way_a_background_call_belongs_to_the_one_that_it_quotes(of_two_turns: Positions):
    """A title that comes after the answer; one that quotes no turn belongs to none."""
    of_two_turns.end()
    assert of_two_turns.place(SUMMARY).turn == 1
    assert of_two_turns.place(talk(user("a title"), tools=())).turn == 0


# ---- sessions


def two_sessions() -> Positions:
    """Turn 1 of session A and turn 2 of session B are under way."""
    found = Positions(SALT, MainShape(frozenset({"bash", "read"})))
    found.begin(1, MARKERS[1], session="A")
    found.begin(2, MARKERS[2], session="B")
    return found


def test_turns_of_two_sessions_have_steps_of_their_own():
    """By the marker; a request without one, such as after a compaction, belongs to the turn of its results."""
    found = two_sessions()
    first = found.place(talk(user(f"{MARKERS[1]} Go"), *rounds(found, 1, 2)))
    second = found.place(talk(user(f"{MARKERS[2]} Go")))
    assert [(it.turn, it.step, it.attempt) for it in (first, second)] == [(1, 3, 1), (2, 1, 1)]
    unmarked = found.place(talk(user("A summary of all"), *rounds(found, 1, 1)))
    assert (unmarked.turn, unmarked.step) == (1, 3)


def test_a_title_of_an_ended_turn_stays_in_its_session():
    """It does not belong to the turn of the other session, which goes on."""
    found = two_sessions()
    found.end(1)
    title = talk(system("Write a title"), user(f"{MARKERS[1]} Go"), tools=())
    assert found.place(title).turn == 1
    found.begin(11, MARKERS[11], session="A")
    assert found.place(title).turn == 11


@pytest.mark.parametrize("reminder", ["mkqrst1q List the files", "Remember the task: mkqrst1q List the files"])
def test_a_task_that_is_repeated_behind_each_round_of_tools_is_no_new_beginning(positions: Positions, reminder: str):
    """Some agents remind their model of it, and keep that."""
    told = [user("mkqrst1q List the files")]
    for step in (1, 2):
        told += [*rounds(positions, 1, step)[-2:], user(reminder)]
        assert positions.place(talk(*told)).step == step + 1
