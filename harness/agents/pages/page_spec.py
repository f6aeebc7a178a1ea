"""The keys of an agent whose user sits in front of a page."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from wedgehog.harness.agents.spec_part import Argv, PositiveSeconds, SpecPart

Selector = Annotated[str, Field(min_length=1)]
"""Which elements of a page are meant: a CSS selector, or another one that Playwright knows."""
Selectors = Annotated[
    tuple[Selector, ...], BeforeValidator(lambda given: (given,) if isinstance(given, str) else given)
]
"""One, or several in the order in which they are pressed."""
INPUT = 'textarea, [contenteditable="true"], input[type="text"], input:not([type])'
"""The elements in which most pages take a message."""


class PageAgent(SpecPart):
    """An agent with a page: a browser opens it, types each message, and reads what it shows."""

    start: Argv
    url: Annotated[str, Field(pattern="^/")] = "/"
    """The path of the page, where a new conversation begins."""
    input: Selector = INPUT
    """Where a message is typed: the first of these elements that can be seen."""
    send: Selector | None = None
    """The button that sends a message; without it, the key Enter does."""
    answer: Selector | None = None
    """The elements that hold what the agent says, one for each message; default: all that is new on the page."""
    error: Selector | None = None
    """The elements that hold an error; default: an alert, or what is new on the page and no answer."""
    busy: Selector | None = None
    """What can be seen only while it works: a spinner, a disabled button; default: the button of `stop`."""
    stop: Selector | None = None
    """The button that stops a turn; without it, its user closes the page."""
    new_chat: Selectors = ()
    """The button that begins another conversation, and what its user must press then, such as a confirmation."""
    chats: Selector | None = None
    """The entries of the list of conversations; without it a conversation is found by its address."""
    quiet_s: PositiveSeconds = 1
    """A turn is over when the page has shown something, is not busy, and stands still for this time; real seconds."""
