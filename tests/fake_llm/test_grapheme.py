"""Text is split between visible characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wedgehog.fake_llm.grapheme import graphemes, pieces


@pytest.mark.parametrize("cluster", ["👩‍🚀", "🇫🇷", "👍🏽", "é", "e\u0301", "1️⃣", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "\r\n", "각", "❤️‍🔥"])
def test_what_a_reader_takes_for_one_character_is_one(cluster: str) -> None:
    """Joined emoji, flags, skin tones, accents, keycaps and jamo stay whole among others."""
    assert list(graphemes(f"a{cluster}{cluster}b")) == ["a", cluster, cluster, "b"]


@given(st.text())
def test_pieces_join_to_the_text(text: str) -> None:
    """Nothing is lost, doubled or empty."""
    assert "".join(pieces(text)) == text
    assert all(pieces(text))


def test_short_texts_still_come_in_several_pieces() -> None:
    """A few words are a few pieces of a token's size."""
    assert pieces("Let me look.") == ["Let ", "me l", "ook."]


@pytest.mark.parametrize("text", ["x" * 1_000_000, "ü" * 100_000])
def test_a_huge_text_has_a_bounded_number_of_pieces(text: str) -> None:
    """Pieces grow before there are more than 512."""
    assert 256 < len(pieces(text)) <= 512
