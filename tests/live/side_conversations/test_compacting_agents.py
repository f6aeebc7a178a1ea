"""Agents that shorten a long conversation, in virtual time: six correct designs pass, and each bug is named."""

from pathlib import Path
from typing import Any

import pytest

from tests.live.together import entry

AGENTS = Path(__file__).with_name("compacting_agents.py")
ON_CHAT = (
    "summarizes_on_chat",
    "drops_outputs",
    "goes_on_after_an_answer",
    "goes_on_for_ever",
    "knows_one_wording",
    "drops_the_system_text",
    "knows_the_rules",
    "forgets_the_rules",
    "becomes_another_agent",
    "trims",
    "keeps_a_result_without_its_call",
    "sums_up_for_one_request",
    "compares",
    "counts_its_system_text_too",
)
SOUND = (
    "goes_on_after_an_answer",
    "summarizes",
    "summarizes_on_chat",
    "keeps_the_end",
    "drops_outputs",
    "before_the_message",
    "knows_the_rules",
    "compares",
)
WORKS, WORDS, WINDOW = "compaction-works", "prompt-too-long-in-other-words", "window-reached"
RULES = "rules-outlive-a-summary"
LONG = "message-longer-than-the-window"
EMPTY, FAILS, CALLS = "compaction-is-empty", "compaction-fails", "compaction-calls-a-tool"
GROWS = "session-grows-to-a-megabyte"
NO_ROOM = "summary-makes-no-room"
EACH = "compaction-fails-with-each-message"
TRIMS = "trims"
"""Correct too, and does not know a refusal for length."""
WORKING, WITHOUT_SUMMARY = (WORKS, RULES), (EMPTY, FAILS, CALLS)
LEAVE_OUT = ("summarizes", "keeps_the_end", "before_the_message")
"""What they could not sum up."""
GIVES_UP = "keeps_all"
"""Correct too, where no request is refused for its length."""
BUGS = {
    "goes_on_for_ever": (NO_ROOM,),
    "keeps_the_old_count": (WORKS, NO_ROOM),
    "drops_the_summary": (WORKS,),
    "drops_the_system_text": (WORKS,),
    "starts_anew": (WORKS,),
    "cuts_between_call_and_result": (WORKS,),
    "knows_one_wording": (WORDS,),
    "asks_the_same_again": (WINDOW,),
    "shortens_until_it_fits": (LONG,),
    "asks_until_it_has_words": (EMPTY,),
    "asks_with_each_message": (EACH, FAILS),
    "keeps_the_reply_of_a_compaction": (CALLS,),
    "forgets_the_rules": (*WORKING, WINDOW),
    "becomes_another_agent": WORKING,
    "keeps_a_result_without_its_call": (GROWS,),
    "sums_up_for_one_request": (GROWS,),
    "counts_its_system_text_too": (WINDOW,),
    "believes_an_empty_summary": (WORKS, *WITHOUT_SUMMARY),
    "believes_an_empty_summary_and_keeps_the_end": (WORKS, *WITHOUT_SUMMARY),
}
"""By agent, the scenarios that it plays."""
ALL = (WORKS, RULES, WORDS, WINDOW, LONG, EMPTY, FAILS, CALLS, GROWS, NO_ROOM)
PLAYED = {**dict.fromkeys(SOUND, ALL), **dict.fromkeys(LEAVE_OUT, (*ALL, EACH)), TRIMS: (GROWS,), **BUGS}
PLAYED[GIVES_UP] = (WORKS, FAILS, EACH)
Result = tuple[str, set[str], set[str]]


@pytest.fixture(scope="module")
def found(simulate: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Result]:
    """The verdict, and what is violated at each level, by scenario and agent; all played once."""
    out, entries = tmp_path_factory.mktemp("compacting"), []
    for name, scenarios in PLAYED.items():
        wire = "openai-chat" if name in ON_CHAT else "anthropic"
        spec = f"name: {name}\nwire: {wire}\ncallable: '{AGENTS}:{name}'\nrecover_s: 0\n"
        (out / f"{name}.yaml").write_text(spec)
        entries += [entry(scenario, out / f"{name}.yaml") for scenario in scenarios]
    judged = simulate(entries, out / "runs").items()
    return {pair: ("skipped" if it.skipped else it.verdict, set(it.violated), set(it.strict)) for pair, it in judged}


@pytest.mark.parametrize("agent", SOUND)
@pytest.mark.parametrize("scenario", [WORKS, RULES, WORDS, WINDOW, EMPTY, FAILS, CALLS, GROWS, NO_ROOM])
def test_a_correct_agent_passes_at_both_levels(found: dict[tuple[str, str], Result], scenario: str, agent: str):
    """One that asks no model for a summary is skipped where that fails."""
    skipped = scenario in WITHOUT_SUMMARY and agent == "drops_outputs"
    assert found[scenario, agent] == ("skipped" if skipped else "pass", set(), set())


def test_a_summary_that_is_asked_for_until_it_has_words_has_no_end(found: dict[tuple[str, str], Result]):
    """Each request is accepted and paid for."""
    assert "paid_call_bound" in found[EMPTY, "asks_until_it_has_words"][1]


@pytest.mark.parametrize("agent", ["goes_on_for_ever", "keeps_the_old_count"])
def test_summaries_that_make_no_room_must_end(found: dict[tuple[str, str], Result], agent: str):
    """The system text fills the window: an agent may sum up and go on a few times, and must then stop."""
    assert "paid_call_bound" in found[NO_ROOM, agent][1]


def test_a_summary_that_fails_with_each_message_is_not_asked_for_each_time(found: dict[tuple[str, str], Result]):
    """One failure, and two, may be a bad moment."""
    assert found[EACH, "asks_with_each_message"] == ("pass", set(), {"failed_summary_bound"})
    assert found[FAILS, "asks_with_each_message"] == ("pass", set(), set())


@pytest.mark.parametrize("agent", LEAVE_OUT)
def test_an_agent_that_leaves_out_what_it_could_not_sum_up_passes(found: dict[tuple[str, str], Result], agent: str):
    """It has less to sum up then."""
    assert found[EACH, agent] == ("pass", set(), set())


@pytest.mark.parametrize("scenario", PLAYED[GIVES_UP])
def test_an_agent_that_asks_for_none_after_three_passes(found: dict[tuple[str, str], Result], scenario: str):
    assert found[scenario, GIVES_UP] == ("pass", set(), set())


def test_a_tool_call_in_place_of_a_summary_must_not_join_the_conversation(found: dict[tuple[str, str], Result]):
    """It has no result, so the next request is refused."""
    assert "tool_call_pairing" in found[CALLS, "keeps_the_reply_of_a_compaction"][1]


def test_a_compaction_that_is_judged_by_the_old_count_has_no_end(found: dict[tuple[str, str], Result]):
    """It asks for one summary after the other. In virtual time nothing but a count ends that."""
    assert found[WORKS, "keeps_the_old_count"][0] == "fail"
    assert "paid_call_bound" in found[WORKS, "keeps_the_old_count"][1]


def test_a_cut_between_a_call_and_its_result_is_red(found: dict[tuple[str, str], Result]):
    assert "tool_call_pairing" in found[WORKS, "cuts_between_call_and_result"][1]


@pytest.mark.parametrize("agent", ["drops_the_summary", "starts_anew"])
def test_a_summary_that_is_left_out_loses_the_conversation(found: dict[tuple[str, str], Result], agent: str):
    """In the middle of a turn, and before the next message."""
    assert found[WORKS, agent] == ("pass", set(), {"history_kept"})


def test_a_summary_takes_the_place_of_the_messages_and_not_of_the_system_text(found: dict[tuple[str, str], Result]):
    """The model works on as if it had never been told anything."""
    assert found[WORKS, "drops_the_system_text"] == ("fail", {"system_kept"}, set())


def test_a_summary_takes_the_place_of_the_messages_and_not_of_the_rules(found: dict[tuple[str, str], Result]):
    """They were a message like any other. Where there are no rules, nothing is missed."""
    for scenario in (RULES, WINDOW):
        assert found[scenario, "forgets_the_rules"] == ("pass", set(), {"instructions_kept"})
    assert found[WORKS, "forgets_the_rules"] == ("pass", set(), set())


@pytest.mark.parametrize("scenario", WORKING)
def test_a_session_does_not_become_that_of_another_agent(found: dict[tuple[str, str], Result], scenario: str):
    """Behind a summary the system text is the one of a general helper."""
    assert found[scenario, "becomes_another_agent"] == ("pass", set(), {"instructions_kept"})


def test_an_agent_that_knows_one_wording_of_a_full_window_does_not_answer(found: dict[tuple[str, str], Result]):
    assert found[WORDS, "knows_one_wording"] == ("pass", set(), {"turn_answered"})


def test_a_summary_that_does_not_fit_is_not_asked_for_five_times(found: dict[tuple[str, str], Result]):
    assert found[WINDOW, "asks_the_same_again"] == ("fail", {"retry_discipline"}, set())


def test_a_message_that_no_summary_makes_short_enough_ends_in_an_error(found: dict[tuple[str, str], Result]):
    """Its user reads so, and the next message is answered. What drops outputs finds none, and must not try again."""
    summing = set(SOUND) - {"drops_outputs"}
    assert [found[LONG, agent] for agent in summing] == [("pass", set(), set())] * len(summing)
    assert found[LONG, "drops_outputs"] == ("fail", {"retry_discipline"}, set())
    assert found[LONG, "shortens_until_it_fits"] == ("fail", {"retry_discipline", "side_call_bound"}, set())


def test_a_session_that_is_cut_at_a_number_of_tokens_begins_with_no_result(found: dict[tuple[str, str], Result]):
    """Of two calls of one reply the first result goes, and the second one stays without its call."""
    assert found[GROWS, TRIMS] == ("pass", set(), set())
    assert found[GROWS, "keeps_a_result_without_its_call"][:2] == ("fail", {"tool_call_pairing"})


def test_a_summary_that_is_used_for_one_request_is_made_again_for_the_next(found: dict[tuple[str, str], Result]):
    """Each request costs two; the longer one is the summary."""
    assert found[GROWS, "sums_up_for_one_request"] == ("pass", set(), {"summed_up_once"})


def test_a_summary_that_is_always_thrown_away_ends_the_session(found: dict[tuple[str, str], Result]):
    """It is compared with the messages alone, and counts with the system text."""
    assert found[WINDOW, "counts_its_system_text_too"] == ("pass", set(), {"session_goes_on"})


@pytest.mark.parametrize("scenario", WITHOUT_SUMMARY)
@pytest.mark.parametrize("agent", ["believes_an_empty_summary", "believes_an_empty_summary_and_keeps_the_end"])
def test_an_empty_summary_does_not_stand_for_the_conversation(
    found: dict[tuple[str, str], Result], agent: str, scenario: str
):
    """All that was said is gone, and neither user nor model is told. A correct agent writes so in its place."""
    assert found[scenario, agent] == ("pass", set(), {"kept_without_summary"})
    assert found[WORKS, agent] == ("pass", set(), set())
