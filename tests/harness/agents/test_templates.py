"""Templates are replaced once, from known names; all other braces are text."""

import pytest

from wedgehog.harness.agents.templates import UnknownTemplateError, expand, expand_all, names_in


def test_a_message_that_holds_braces_is_not_filled_in_again():
    """A user's message is text, also if it looks like a template."""
    assert expand("say {message} to {home}", {"message": "{home} {key}", "home": "/h"}) == "say {home} {key} to /h"


def test_json_can_be_written_as_it_is():
    """Only a lower-case word in braces is a template."""
    text = '{"a": {"url": "{llm_url}", "n": {}}, "shell": "${HOME} {1}"}'
    assert expand(text, {"llm_url": "U"}) == '{"a": {"url": "U", "n": {}}, "shell": "${HOME} {1}"}'


def test_doubled_braces_write_a_template_as_text():
    """For the agent's own placeholders."""
    assert expand("{{message}} {message}", {"message": "hi"}) == "{message} hi"
    assert list(names_in("{{message}} {key}")) == ["key"]


def test_an_unknown_name_gets_a_suggestion():
    """The message also shows how to write it as text."""
    with pytest.raises(
        UnknownTemplateError, match=r"'\{llm_ur\}' \(did you mean '\{llm_url\}'\?\); as text .*\{\{llm_ur\}\}"
    ):
        expand("{llm_ur}", {})


def test_a_body_is_filled_in_at_every_depth_and_keeps_its_types():
    """Numbers stay numbers; keys stay as written."""
    body = {"text": "{message}", "n": 3, "list": ["{key}", None], "{key}": True}
    assert expand_all(body, {"message": "m", "key": "k"}) == {"text": "m", "n": 3, "list": ["k", None], "{key}": True}
