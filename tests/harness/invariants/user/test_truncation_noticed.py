"""Half a reply is no answer."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import CUT_TEXT


def test_a_cut_text_as_answer_fails():
    """Exit code 0 and half a sentence look like success."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1), CUT_TEXT)
    assert check("truncation_noticed", tell.end(f"{CUT_TEXT}").seal()).status == "fail"


def test_a_text_stopped_at_max_tokens_fails_alike():
    """The provider said that there was more."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), CUT_TEXT, stop="max_tokens")
    assert check("truncation_noticed", tell.end(CUT_TEXT).seal()).status == "fail"


@pytest.mark.parametrize(
    "note",
    ["", "(The reply was filtered.)", "[blocked for safety reasons]", "The model refused to go on.", "(cut off)"],
)
def test_a_text_that_a_filter_has_cut_fails_unless_its_user_reads_that(note: str):
    """Many words are clear enough beside it."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), CUT_TEXT, stop="filter")
    shown = f"{CUT_TEXT} {note}"
    assert check("truncation_noticed", tell.end(shown).seal()).status == ("pass" if note else "fail")


@pytest.mark.parametrize(
    "note", ["", "[cut: too long]", "(token limit reached)", "*[shortened]*", "-- stopped: length", "(not finished)"]
)
def test_a_text_that_ends_at_the_token_limit_fails_unless_its_user_reads_that(note: str):
    """The model's own words are no such note."""
    tell = HistoryBuilder()
    tell.message()
    said = f"The speed limit is cut in two. {CUT_TEXT}"
    tell.reply(tell.ask(1), said, stop="max_tokens")
    assert check("truncation_noticed", tell.end(f"{said}\n{note}").seal()).status == ("pass" if note else "fail")


def test_a_note_of_a_limit_says_nothing_where_the_connection_ended():
    """It may be a line of a log."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1), CUT_TEXT)
    assert check("truncation_noticed", tell.end(f"{CUT_TEXT}\n(token limit: 4096)").seal()).status == "fail"


def test_words_of_a_filter_are_no_error_where_none_has_cut_a_reply():
    """The same words may be part of an answer, or of an apology after another failure."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1))
    history = tell.end("I have blocked out some time for you.").seal()
    assert check("error_surfaced", history).status == "fail"


def test_a_client_that_raises_on_a_truncated_stream_passes_whatever_it_had_shown():
    """The user saw half a text, and the error."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1), CUT_TEXT)
    history = tell.end(CUT_TEXT, exit_code=1, stderr="RemoteProtocolError: peer closed connection").seal()
    assert check("truncation_noticed", history).status == "pass"
    assert check("error_surfaced", history).status == "pass"


def test_a_log_line_at_the_level_of_an_error_is_an_error_that_the_user_sees():
    """The half answer on stdout, the line on stderr, exit code 0: a person sees it, a script doesn't."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1), CUT_TEXT)
    history = tell.end(CUT_TEXT, error="[ERROR] Model stream ended without a finish reason.").seal()
    assert check("truncation_noticed", history).status == "pass"
    assert check("error_surfaced", history).says == "turn 1: a script cannot see this error: the exit code is 0"


def test_a_second_attempt_that_was_whole_passes():
    """The answer holds the nonce."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1), CUT_TEXT)
    tell.answer_step(1)
    assert check("truncation_noticed", tell.end().seal()).status == "pass"


def test_without_a_cut_reply_there_is_nothing_to_judge():
    """A refusal cuts nothing."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1))
    assert check("truncation_noticed", tell.fails().seal()).status == "nothing"


REPLY = "A small animal that rolls itself up, 刺猬"


def _a_faulty_turn_and_a_good_one(shown: str, *, good: str = REPLY) -> History:
    """The stream of turn 1 is faulty; turn 2 shows `good`, where its reply is REPLY."""
    tell = HistoryBuilder()
    for answer, damaged in ((shown, True), (good, False)):
        tell.message()
        call = tell.ask(1)
        if damaged:
            tell.fires("malformed_json", call)
        tell.reply(call, f"{REPLY} {tell.nonce}", damaged=damaged)
        tell.end(f"{answer} {tell.nonce}")
    return tell.seal()


def test_an_answer_with_a_hole_fails():
    """An event was left out; the rest looks like all of it."""
    found = check("truncation_noticed", _a_faulty_turn_and_a_good_one("A small animal itself up, 刺猬"))
    assert (found.status, found.says) == ("fail", "turn 1: its answer lacks words of the reply: that, rolls")


@pytest.mark.parametrize(
    ("code", "error", "status"),
    [(1, "Error: a line of the stream is not JSON", "nothing"), (0, "[ERROR] bad event", "nothing"), (0, "", "fail")],
)
def test_an_answer_with_a_hole_passes_if_its_user_reads_that_something_broke(code: int, error: str, status: str):
    """The text was shown as it came, and then the error."""
    tell = HistoryBuilder()
    for shown in ("A small animal {nonce}", f"{REPLY} {{nonce}}"):
        tell.message()
        call = tell.ask(1)
        if tell.turn == 1:
            tell.fires("malformed_json", call)
        tell.reply(call, f"{REPLY} {tell.nonce}", damaged=tell.turn == 1)
        said = error if tell.turn == 1 else ""
        tell.end(shown.format(nonce=tell.nonce), exit_code=code if said else 0, stderr=said, error=said)
    assert check("truncation_noticed", tell.seal()).status == status


@pytest.mark.parametrize(("error", "status"), [("", "fail"), ("The connection was lost", "nothing")])
def test_a_page_that_lost_its_connection_shows_no_answer_with_a_hole_unless_it_says_so(error: str, status: str):
    """It connected again, and got only what came then."""
    tell = HistoryBuilder()
    for answer in ("A small animal {nonce}", f"{REPLY} {{nonce}}"):
        tell.message()
        call = tell.ask(1)
        if tell.turn == 1:
            tell.fires("down", call, "channel")
        tell.reply(call, f"{REPLY} {tell.nonce}")
        tell.end(answer.format(nonce=tell.nonce), error=error if tell.turn == 1 else "")
    assert check("truncation_noticed", tell.seal()).status == status


def test_an_answer_with_broken_letters_fails():
    """A letter of several bytes was decoded by half."""
    assert check("truncation_noticed", _a_faulty_turn_and_a_good_one(REPLY.replace("刺", "�"))).status == "fail"


def test_an_answer_that_is_only_laid_out_otherwise_passes():
    """Colours, wrapped lines and frames lose no word; a faulty stream that a client repairs is none."""
    laid_out = REPLY.upper().replace(" ", "\n│ ").replace("ROLLS", "\x1b[1mROLLS\x1b[0m")
    assert check("truncation_noticed", _a_faulty_turn_and_a_good_one(laid_out)).status == "nothing"


def test_an_agent_that_prints_its_last_line_only_is_not_judged_by_the_words_before():
    """No turn of the run shows a reply whole."""
    assert check("truncation_noticed", _a_faulty_turn_and_a_good_one("", good="")).status == "nothing"


@pytest.mark.parametrize("shown", ["A small", "> A  small", "asking the model …\nA small", "> A sm A small"])
def test_a_short_part_that_is_all_that_came_fails_too(shown: str):
    """It is no apology: no pattern for `errors:` is asked for."""
    tell = HistoryBuilder()
    tell.message()
    for text in ("A sm", "A small"):
        tell.cut(tell.ask(1), text)
    history = tell.end(shown).seal()
    found = check("truncation_noticed", history)
    assert found.status == "fail" and found.says.startswith("turn 1: the answer is part of a cut reply: ")
    assert check("error_surfaced", history).status != "fail"


@pytest.mark.parametrize("shown", ["A small problem came up", "Something small broke", "It is odd: A small"])
def test_words_that_only_have_the_short_part_in_them_are_no_cut_reply(shown: str):
    """They may be an apology that begins or ends alike."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1), "A small")
    history = tell.end(shown).seal()
    found = check("truncation_noticed", history)
    assert (found.status, found.because) == (
        "pass",
        "turn 1: a reply was cut, and what came of it is not shown as the whole answer",
    )
    assert check("error_surfaced", history).status == "fail"


@pytest.mark.parametrize(
    ("answered", "because"),
    [(True, "the turn has a whole answer"), (False, "no 12 characters of it in a row are shown as the answer")],
)
def test_a_pass_says_how_much_of_a_cut_reply_could_be_shown(answered: bool, because: str):
    """Parts are not looked for in other words, so the reason does not claim that nothing is shown."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1), "A small animal with spines")
    if answered:
        tell.answer_step(1)
    found = check("truncation_noticed", (tell.end() if answered else tell.fails("Error: it broke")).seal())
    assert (found.status, found.because) == ("pass", f"turn 1: a reply was cut, and {because}")


def test_what_the_model_said_after_the_turn_is_no_part_of_its_answer():
    """A subagent was refused, and the agent tells the model of that between two messages."""
    tell = HistoryBuilder()
    for turn in (1, 2):
        tell.message()
        tell.answer_step(1)
        if turn == 2:
            tell.fires("status", tell.ask(1, side="subagent 1"))
        tell.end()
    tell.reply(tell.ask(2, turn=2), f"Something else was heard {tell.nonce}")
    assert check("truncation_noticed", tell.seal()).status == "nothing"


LONG = " ".join(f"word{number}" for number in range(600))


def _long(shown: str) -> Verdict:
    """The agent shows a part of a long reply that came whole."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), f"{LONG} {tell.nonce}")
    return check("truncation_noticed", tell.end(shown).seal())


@pytest.mark.parametrize("size", [1500, 3000, len(LONG)])
def test_the_begin_of_a_long_whole_reply_is_not_shown_as_all_of_it(size: int):
    """As a front end does that takes 4,000 characters: its user cannot know that there is more."""
    found = _long(LONG[:size])
    assert found.status == "fail" and "goes on behind what is shown" in found.says


@pytest.mark.parametrize(
    "mark", [" ...", "… [1,400 more]", "\n(cut)", "\nThe answer is too long for this chat.", " (1/2)"]
)
def test_a_mark_behind_it_tells_that_there_is_more(mark: str):
    """In any form."""
    assert _long(LONG[:3000] + mark).status == "nothing"


@pytest.mark.parametrize("shown", ["A summary of it.", LONG[2000:3000], "word0 word1 word2"])
def test_other_words_are_no_begin_of_a_long_reply(shown: str):
    """A screen that shows the last lines, for example."""
    assert _long(shown).status == "nothing"
