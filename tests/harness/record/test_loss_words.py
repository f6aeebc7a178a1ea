"""Which lines say that messages were left out."""

import pytest

from wedgehog.harness.record.loss_words import lines_of_left_out


@pytest.mark.parametrize(
    "line",
    [
        "Earlier messages had to be left out.",
        "[12 messages were truncated]",
        "There is no summary of what was said before.",
        "Summary generation failed.",
        "Предыдущие сообщения удалены",
    ],
)
def test_a_line_that_says_that_something_is_missing(line: str):
    """Or a line of another script, which may say so."""
    assert list(lines_of_left_out(f"Hello\n{line}\nGoodbye")) == [line]


@pytest.mark.parametrize(
    "line",
    [
        "> build · m",
        "┌── thinking … 🤔",
        "10000[… 24,088 characters are left out]00001249",
        "The following is a summary of the conversation between you and the user:",
        "The conversation history before this point was compacted into the following summary:",
    ],
)
def test_signs_of_a_terminal_our_own_mark_and_the_head_of_a_summary_say_nothing(line: str):
    assert list(lines_of_left_out(line)) == []
