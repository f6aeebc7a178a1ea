"""What is new on a page since a message was typed."""

import pytest

pytest.importorskip("playwright")

from wedgehog.harness.agents.pages.page_spec import PageAgent
from wedgehog.harness.agents.pages.page_view import News, Seen, news

MESSAGE = "mk1 What is a hedgehog?"
BEFORE = Seen(lines=["Chats", "mk0 Hi", "Hello!", "Send"], answers=["Hello!"])
PAGE = PageAgent(start=("x",), answer=".agent")


def _news(keys: PageAgent, *lines: str, answers: tuple[str, ...] = (), errors: tuple[str, ...] = ()) -> News:
    """What is new where these lines, answers and errors stand below what was there before."""
    now = Seen([*BEFORE.lines, *lines], [*BEFORE.answers, *answers], errors, signs=frozenset({"Thinking …"}))
    return news(keys, MESSAGE, BEFORE, now, errors)


def test_an_answer_stands_in_a_new_element():
    """The message, what stood there before, and a sign that the agent works are no part of it."""
    found = _news(PAGE, MESSAGE, "A small", "animal.", "Thinking …", answers=("A small\nanimal.",))
    assert found == News("A small\nanimal.")


def test_a_page_that_says_the_same_again_has_said_something_new():
    """The greeting stands there twice now."""
    assert _news(PAGE, "Hello!", answers=("Hello!",)).answer == "Hello!"


def test_without_the_place_of_answers_all_that_is_new_is_the_answer():
    """A title that holds the beginning of the message is none, nor is a sign that the agent works."""
    found = _news(PageAgent(start=("x",)), "mk1 What is a", MESSAGE, "Thinking …", "A small animal.")
    assert found == News("A small animal.")


def test_an_alert_is_an_error_and_else_what_is_new_and_no_answer():
    """It reads like one. With `error` only its elements are."""
    assert _news(PAGE, "Error: 500", errors=("Oh no",)).error == "Oh no"
    assert _news(PAGE, "Error: 500").error == "Error: 500"
    assert _news(PAGE, "12:30", "Copy").error == "", "words that name no cause are none"
    only = PageAgent(start=("x",), answer=".agent", error=".error")
    assert _news(only, "Error: 500").error == ""
    assert _news(only, "Error: 500", errors=("Error: 500",)).error == "Error: 500"
