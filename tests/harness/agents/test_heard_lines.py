"""When a turn of an agent with lines on its stdout ends."""

import asyncio

import pytest

from wedgehog.harness.agents.lines import HeardLines


async def _ends(heard: HeardLines, sign: str = "^> $") -> bool:
    try:
        await asyncio.wait_for(heard.until(sign), 0.01)
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize(
    ("shown", "error", "ends"),
    [
        (b"A small animal.\n> ", b"", True),
        (b"A small animal tha> ", b"", False),
        (b"A small animal tha> ", b"\nerror: Connection error.\n", True),
        (b"A small animal tha> ", b"slow", False),
        (b"A small animal tha", b"\nerror: Connection error.\n", False),
    ],
)
async def test_a_prompt_behind_a_broken_answer_ends_the_turn_after_an_error(shown: bytes, error: bytes, ends: bool):
    """On a terminal the error begins a new line; on two pipes the prompt stands behind the words."""
    heard = HeardLines()
    heard.feed(shown)
    if error:
        heard.feed_error(error)
    assert await _ends(heard) is ends


async def test_an_error_of_the_turn_before_is_none_of_this_one():
    """The model's own words may end as the prompt does."""
    heard = HeardLines()
    heard.feed_error(b"error: Connection error.\n")
    heard.forget()
    heard.feed(b"Is 2 > ")
    assert not await _ends(heard)
