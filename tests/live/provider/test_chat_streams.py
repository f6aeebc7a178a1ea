"""Streams of OpenAI's two APIs in the forms of other services, in virtual time."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

AGENTS = {
    "openai-chat": Path(__file__).with_name("chat_streams.py"),
    "openai-responses": Path(__file__).with_name("response_streams.py"),
}
IDS = "stream-changes-the-ids-of-its-items"
LINES, FIELDS = "stream-lines-in-another-form", "stream-with-other-fields"
TURNS, INDEX, ERROR = "stream-gives-calls-in-turns", "stream-gives-calls-one-index", "error-in-a-chunk-of-a-gateway"
OPEN = "last-event-without-an-empty-line"
EMPTY = "reply-without-choices"
READERS = {
    (FIELDS, "takes_the_last_name"): "turn_answered",
    (FIELDS, "takes_the_first_choice"): "turn_answered",
    (FIELDS, "finds_a_call_by_its_id"): "whole_call_runs",
}
OF_GATEWAYS = {
    (TURNS, "goes_on_with_the_latest_call"): "whole_call_runs",
    (ERROR, "takes_any_end"): "truncation_noticed",
}
STRICT = {(INDEX, "keeps_what_it_can_read"): "calls_kept"}
Found = dict[tuple[str, str], tuple[str, str]]


@pytest.fixture
def played(wedgehog: Any, tmp_path: Path) -> Any:
    """Plays scenarios with agents of one wire: what is violated at each level."""

    def play(scenarios: Iterable[str], names: Iterable[str], wire: str = "openai-chat") -> Found:
        words = []
        for name in names:
            spec = f"name: {name}\nwire: {wire}\ncallable: '{AGENTS[wire]}:{name}'\nrecover_s: 0\n"
            (tmp_path / f"{name}.yaml").write_text(spec)
            words += ["--agent", f"{name}.yaml"]
        wedgehog("run", *scenarios, *words, "--world", "sim")
        rows = pd.read_csv(tmp_path / "runs" / "latest" / "summary.csv", keep_default_na=False)
        return {(row.scenario, row.agent): (row.violated, row.strict) for row in rows.itertuples()}

    return play


def test_a_reader_of_one_services_chunks_is_red_and_a_correct_one_green(played: Any):
    """A name that is null, an id that is empty, a chunk without choices; other lines harm neither of them."""
    found = played((LINES, FIELDS), ("sane", *[name for _, name in READERS]))
    assert {pair: safe for pair, (safe, _) in found.items() if safe} == READERS


def test_a_reader_of_one_call_after_the_other_and_of_any_end_is_red(played: Any):
    """What a gateway numbers wrongly is red at level strict only, and only where the model does not hear of it."""
    names = ("sane", "makes_one_call_of_an_index", *[name for _, name in (*OF_GATEWAYS, *STRICT)])
    found = played((TURNS, INDEX, ERROR), names)
    assert {pair: safe for pair, (safe, _) in found.items() if safe} == OF_GATEWAYS
    assert {pair: strict for pair, (_, strict) in found.items() if "calls_kept" in strict} == STRICT


def test_a_reader_to_whom_a_reply_without_a_choice_is_an_answer_is_red(played: Any):
    """One that reads the first choice ends its turn with an error, though the next try would have worked."""
    found = played([EMPTY], ("sane", "says_nothing", "takes_the_first_choice"))
    assert found == {
        (EMPTY, "sane"): ("", ""),
        (EMPTY, "says_nothing"): ("error_surfaced;session_recovers", "turn_answered"),
        (EMPTY, "takes_the_first_choice"): ("", "history_kept;turn_answered"),
    }
    found = played([EMPTY], ["sane"], "openai-responses")
    assert found == {(EMPTY, "sane"): ("", "")}, "skipped: there are no choices"


def test_a_reader_that_knows_an_item_only_by_its_id_is_red_at_level_strict(played: Any):
    """Each event has another id, as GitHub Copilot sends them; the SDK of OpenAI refuses such a stream."""
    found = played([IDS], ("sane", "settles_twice", "shows_twice"), "openai-responses")
    assert found == {
        (IDS, "sane"): ("", ""),
        (IDS, "settles_twice"): ("", "said_once"),
        (IDS, "shows_twice"): ("", "output_once"),
    }


def test_a_last_event_without_an_empty_line_may_be_dropped_with_an_error(played: Any):
    """A reader of lines takes it; one that keeps to the standard may end in an error, and not in silence."""
    names = ("sane", "keeps_to_the_standard", "shows_what_is_whole")
    found = played([OPEN], names, "openai-responses") | {(OPEN, "chat"): played([OPEN], ["sane"])[OPEN, "sane"]}
    assert found.pop((OPEN, "shows_what_is_whole"))[0] == "error_surfaced"
    assert found == {
        (OPEN, "sane"): ("", ""),
        (OPEN, "keeps_to_the_standard"): ("", "turn_answered"),
        (OPEN, "chat"): ("", ""),
    }
