"""Messages of the user that stand in a request twice."""

import pytest

from wedgehog.fake_llm.conversation import Conversation, Message
from wedgehog.fake_llm.script.position import Positions

FIRST, SECOND = Message("user", "mkqrst1q List the files"), Message("user", "mkqrst2q And now?")
FILES, REMINDER = Message("user", "They are in /tmp."), Message("user", "Your task is: mkqrst1q List the files")
SAID = Message("assistant", "There are none.")


@pytest.mark.parametrize(
    ("messages", "doubled", "repeated"),
    [
        ((FIRST, SAID, SECOND), (), ()),
        ((FIRST, FIRST, SAID, SECOND), (1,), (1,)),
        ((FIRST, SAID, SECOND, SECOND), (2,), (2,)),
        ((FIRST, FILES, FIRST), (1,), ()),
        ((FIRST, SAID, FIRST, SAID, SECOND), (1,), ()),
        ((FIRST, REMINDER, SAID, REMINDER, SAID, SECOND), (), ()),
    ],
)
def test_a_copy_is_an_equal_message_and_no_reminder_that_quotes_it(
    messages: tuple[Message, ...], doubled: tuple[int, ...], repeated: tuple[int, ...]
):
    """Two equal reminders are no copies of the message; whether a copy stands right behind it is told apart."""
    positions = Positions("wbcdf")
    for turn in (1, 2):
        positions.begin(turn, f"mkqrst{turn}q")
    place = positions.place(Conversation("anthropic", "m", True, messages))
    assert (place.turns_doubled, place.turns_repeated) == (doubled, repeated)
