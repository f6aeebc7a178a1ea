"""When a chat shows that its agent types, and when that may come again."""

import pytest

from tests.harness.conftest import ManualClock
from wedgehog.harness.services.chat.typing_sign import TypingSign


def told(signs: str, lasts_s: float, later_s: float) -> TypingSign:
    """t: it types, s: it sends a message, m: its user sends one, and a second for each other sign."""
    clock, message = ManualClock(), 1
    typing = TypingSign(clock)
    for sign in signs:
        if sign == "t":
            typing.show(lasts_s, message)
        elif sign == "s":
            typing.end()
        elif sign == "m":
            message += 1
        else:
            clock.s += 1
    clock.s += later_s
    return typing


@pytest.mark.parametrize(
    ("signs", "later_s", "shown"),
    [("", 0, False), ("t", 4, True), ("t", 5, False), ("t....t", 4, True), ("t.s", 1, False)],
)
def test_it_is_shown_for_its_time_or_until_the_next_message(signs: str, later_s: float, shown: bool):
    """As a chat shows it."""
    assert told(signs, 5, later_s).is_shown == shown


@pytest.mark.parametrize(
    ("signs", "lasts_s", "later_s", "may"),
    [
        ("", 5, 0, False),
        ("t", 5, 5.9, True),
        ("t", 5, 6, False),
        ("ts", 5, 5.9, True),
        ("t", 10, 9.9, True),
        ("ts", 10, 5.9, True),
        ("ts", 10, 6, False),
        ("t.........t", 10, 10.9, True),
        ("t.........t", 10, 11, False),
        ("t...........ts", 10, 6, False),
        ("t.m.ts", 10, 6, False),
        ("t.t.m.ts", 10, 10.9, True),
        ("t", 0.5, 1.4, True),
        ("t", 0.5, 1.5, False),
    ],
)
def test_it_goes_on_for_the_time_in_which_programs_repeat_it(signs: str, lasts_s: float, later_s: float, may: bool):
    """Five seconds and a little; if this one has repeated it, the time for which it lasts."""
    assert told(signs, lasts_s, later_s).goes_on == may
