"""Numbers as text, and text made safe to show."""

from typing import Any

import pytest

from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.reports import words as w
from wedgehog.reports.calls import fault_words
from wedgehog.reports.page.plot import Bar, bars


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (w.money(None), "unknown"),
        (w.money(0.0), "$0"),
        (w.money(0.0984), "$0.098"),
        (w.money(0.000001), "<$0.0001"),
        (w.money(3.936), "$3.94"),
        (w.seconds(None), w.NONE),
        (w.seconds(0.0), "0 s"),
        (w.seconds(0.0432), "43 ms"),
        (w.seconds(2.0), "2.00 s"),
        (w.seconds(134.21), "134.2 s"),
        (w.brief(999.0), "999"),
        (w.brief(8_040), "8,040"),
        (w.brief(1_286_400), "1.29M"),
        (w.count(None), w.NONE),
        (w.many(1, "call"), "1 call"),
        (w.many(1_440, "call"), "1,440 calls"),
    ],
)
def test_numbers_read_as_a_person_says_them(shown, words):
    """With a unit; a missing number is a dash or `unknown`."""
    assert shown == words


def test_invisible_characters_become_visible():
    """Control codes, reversed text, lone surrogates and characters that XML forbids; letters of all languages stay."""
    assert w.clean("a\x1b[0m\u202e\ud800\ufffe\x00") == "a\\x1b[0m\\u202e\\ud800\\ufffe\\x00"
    assert w.clean("Grüße, 世界 👩‍💻\n\ttab\r\n") == "Grüße, 世界 👩‍💻\n\ttab\n"


def test_one_line_is_one_line_and_short():
    """A cut text ends with `…`."""
    assert w.one_line("a\n b\t c") == "a b c"
    assert w.one_line("abcdef", 4) == "abc…"


def test_bars_share_one_zero_and_the_largest_fills_the_width():
    """Half of the largest value is half as wide; 0 has no bar."""
    drawn = bars("Paid calls", [Bar("s", "buggy", 160, "160"), Bar("s", "fixed", 80, "80"), Bar("s", "none", 0, "0")])
    assert [part.split('"')[0] for part in drawn.split('width="')[1:]] == ["100.00", "50.00", "0.00"]


@pytest.mark.parametrize(
    ("fired", "said"),
    [
        ({"step": 1, "call": 1, "bytes": 7}, "cut on llm after 7 body bytes: counted"),
        ({"bytes": 1}, "cut on llm, the next request after 1 byte of it: counted"),
        ({}, "cut on llm, the next request: counted"),
        ({"link": "ipc:db", "bytes": 7}, "cut on ipc:db after 7 body bytes: counted"),
    ],
)
def test_a_fault_on_an_unknown_request_says_the_next_request(fired: dict[str, Any], said: str):
    """The history does not say which request it was."""
    told = {"fault": 0, "name": "cut", "link": "llm", "turn": 1, "step": None, "attempt": None, "call": None}
    assert fault_words(FaultFired(**(told | {"proof": "counted"} | fired))) == said


def test_bars_of_one_agent_have_the_names_of_its_scenarios_only():
    """Its name above each of them would say nothing."""
    drawn = str(bars("Paid calls", [Bar("", "stall-always", 3, "3"), Bar("", "key-refused", 0, "0")]))
    assert "stall-always" in drawn and "bar-group" not in drawn
