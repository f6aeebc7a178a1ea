"""Where in a reply a trigger lies."""

from dataclasses import replace
from typing import Any

import pytest

from wedgehog.fake_llm.observer import Point
from wedgehog.harness.scenario.trigger import AtReply

CONN: Any = None
STREAMED = Point(1, CONN, 0, 100, frame_ends=(50, 90, 130, 170, 200), body=205, at=-1, stream=True)
WHOLE = replace(STREAMED, frame_ends=(), body=300, stream=False)


@pytest.mark.parametrize(
    ("at", "streamed", "whole"),
    [
        ({}, -1, -1),
        ({"phase": "body"}, 0, 0),
        ({"phase": "middle"}, 130, 150),
        ({"phase": "terminal"}, 185, 299),
        ({"phase": "linger"}, 200, None),
        ({"event": 2}, 90, 150),
        ({"event": 9}, None, 150),
        ({"byte": 204}, 204, 204),
        ({"byte": 205}, None, 205),
    ],
    ids=str,
)
def test_each_place_of_a_reply_is_where_it_says(at: Any, streamed: int | None, whole: int | None):
    """In bytes of its body; a place that it has not is none. An event of a reply in one piece is its middle."""
    assert (AtReply(**at).byte_in(STREAMED), AtReply(**at).byte_in(WHOLE)) == (streamed, whole)


@pytest.mark.parametrize("ends", [(10,), (10, 20), (10, 20, 30)])
def test_the_middle_is_behind_something_and_before_something_where_it_can_be(ends: tuple[int, ...]):
    """Of two events, between them; of one there is no other place than its end."""
    assert AtReply(phase="middle").byte_in(replace(STREAMED, frame_ends=ends)) == ends[(len(ends) - 1) // 2]
