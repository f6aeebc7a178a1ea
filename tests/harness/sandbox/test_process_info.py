"""How a process is described from outside."""

from wedgehog.harness.sandbox.process_info import WORD_CHARS, shown_words


def test_a_title_in_the_place_of_the_command_line_has_no_empty_words_behind_it() -> None:
    """A program that sets its title overwrites its words; what they do not fill is read as empty words."""
    assert shown_words(["my-agent", "", "", ""]) == ("my-agent",)
    assert shown_words(["", ""]) == ()


def test_an_empty_argument_between_others_is_shown() -> None:
    assert shown_words(["agent", "", "--message", "hi"]) == ("agent", "", "--message", "hi")


def test_a_long_word_is_cut() -> None:
    assert shown_words(["agent", "x" * 1000]) == ("agent", "x" * WORD_CHARS)
