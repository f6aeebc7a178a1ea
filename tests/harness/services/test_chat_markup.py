"""Markup of a chat message: what its user reads, and what Telegram refuses, in its words."""

import pytest

from wedgehog.harness.services.chat.markup import MarkupError, shown


@pytest.mark.parametrize(
    ("mode", "text", "words"),
    [
        ("", "2 * 3_000 \\.", "2 * 3_000 \\."),
        ("HTML", '<b>a</b> &lt; <a href="http://x.y">c</a>', "a < c"),
        ("html", "<pre>x = 1\n</pre><tg-spoiler>y</tg-spoiler> 3 > 2", "x = 1\ny 3 > 2"),
        (
            "MarkdownV2",
            r"*Error*: HTTP status 503 \(the server says \"no\_way\"\)\.",
            'Error: HTTP status 503 (the server says "no_way").',
        ),
        ("MarkdownV2", r"||a|| _b_ ~c~ [d\.e](http://x.y/\)) 1 \> 0", "a b c d.e 1 > 0"),
        ("MarkdownV2", "```python\na_b = 'c\\`'\n``` and `x_y*z`", "a_b = 'c`'\n and x_y*z"),
        ("MarkdownV2", "*a _b __c___*", "a b c"),
        ("MarkdownV2", "> quoted\n![x](tg://emoji?id=1)", " quoted\nx"),
        ("Markdown", r"*a* \_b\_ [c](http://x.y) d\.e `f_g`", r"a _b_ c d\.e f_g"),
        ("Markdown", "```py\nx_y\n``` [z]", "x_y\n z"),
    ],
)
def test_its_user_reads_the_words_without_marks(mode: str, text: str, words: str):
    """Of all three modes; without one, a text stays as it is."""
    assert shown(text, mode) == words


@pytest.mark.parametrize(
    ("mode", "text", "why"),
    [
        ("Markdown", "grün snake_case", "Can't find end of the entity starting at byte offset 11"),
        ("Markdown", "2 * 3", "Can't find end of the entity starting at byte offset 2"),
        ("Markdown", "```x``", "Can't find end of the entity starting at byte offset 0"),
        ("Markdown", "see [1", "Can't find end of the entity starting at byte offset 4"),
        ("MarkdownV2", "That's it.", "Character '.' is reserved and must be escaped with the preceding '\\'"),
        ("MarkdownV2", "a > b", "Character '>' is reserved and must be escaped with the preceding '\\'"),
        ("MarkdownV2", "a | b", "Character '|' is reserved and must be escaped with the preceding '\\'"),
        ("MarkdownV2", "wow!", "Character '!' is reserved and must be escaped with the preceding '\\'"),
        ("MarkdownV2", "*open", "Can't find end of Bold entity at byte offset 0"),
        ("MarkdownV2", "a _b", "Can't find end of Italic entity at byte offset 2"),
        ("MarkdownV2", "[a](http://x", "Can't find end of a URL at byte offset 4"),
        ("HTML", "a < b", 'Unsupported start tag "" at byte offset 2'),
        ("HTML", "a <br> b", 'Unsupported start tag "br" at byte offset 2'),
        ("HTML", "<b", "Unclosed start tag at byte offset 0"),
        ("HTML", "<b>x", 'Can\'t find end tag corresponding to start tag "b"'),
        ("HTML", "<b>x</i>", 'Unmatched end tag at byte offset 4, expected "</b>", found "</i>"'),
        ("HTML", "x</b>", "Unexpected end tag at byte offset 1"),
        ("HTML", "<b>x</b", "Unclosed end tag at byte offset 4"),
    ],
)
def test_broken_markup_is_refused_in_telegrams_words(mode: str, text: str, why: str):
    """Agents look for these words; offsets count bytes of UTF-8."""
    with pytest.raises(MarkupError) as refused:
        shown(text, mode)
    assert str(refused.value) == why
