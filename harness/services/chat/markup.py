"""What Telegram makes of a text with a `parse_mode`: the words that its user reads, or why it refuses the text.

The rules are those of https://core.telegram.org/bots/api#formatting-options, and the words of a refusal are those of
its server (https://github.com/tdlib/td, MessageEntity.cpp). Offsets count bytes of UTF-8.

>>> shown("*Hi* there\\\\!", "MarkdownV2")
'Hi there!'
>>> shown("snake_case", "Markdown")
Traceback (most recent call last):
    ...
wedgehog.harness.services.chat.markup.MarkupError: Can't find end of the entity starting at byte offset 5
"""

import html
import re

RESERVED = "_*[]()~`>#+-=|{}.!"
"""What MarkdownV2 takes for markup, unless a backslash stands before it."""
NAMES = {"*": "Bold", "_": "Italic", "__": "Underline", "~": "Strikethrough", "||": "Spoiler", "`": "Code"}
NAMES |= {"```": "Pre", "[": "TextUrl", "![": "CustomEmoji"}
TAGS = frozenset(
    (
        *("a", "b", "blockquote", "code", "del", "em", "i", "ins", "pre", "s", "span", "strike", "strong", "u"),
        *("tg-emoji", "tg-spoiler", "tg-time"),
    )
)


class MarkupError(ValueError):
    """Telegram refuses the text; the message says why."""


def shown(text: str, parse_mode: str) -> str:
    """The words without their markup. Errors: MarkupError."""
    parse = {"markdown": _markdown, "markdownv2": _markdown_v2, "html": _html}.get(parse_mode.lower())
    return parse(text) if parse is not None else text


def _markdown(text: str) -> str:
    """The legacy mode: entities do not nest, and only a backslash before `_*`[` outside of them is one."""
    words: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char == "\\" and text[at + 1 : at + 2] in tuple("_*`["):
            words.append(text[at + 1])
            at += 2
        elif char in "_*`[":
            inside, at = _entity(text, at)
            words.append(inside)
        else:
            words.append(char)
            at += 1
    return "".join(words)


def _entity(text: str, begin: int) -> tuple[str, int]:
    """What stands in an entity of the legacy mode, and where it ends."""
    mark = "```" if text.startswith("```", begin) else text[begin]
    end_mark = "]" if mark == "[" else mark
    end = text.find(end_mark, begin + len(mark))
    if end < 0:
        raise MarkupError(f"Can't find end of the entity starting at byte offset {_offset(text, begin)}")
    inside, after = text[begin + len(mark) : end], end + len(end_mark)
    if mark == "[" and text[after : after + 1] == "(":
        closed = text.find(")", after)
        after = len(text) if closed < 0 else closed + 1
    return (inside[_after_language(inside, 0) :] if mark == "```" else inside), after


def _markdown_v2(text: str) -> str:
    words: list[str] = []
    open_marks: list[tuple[str, int]] = []
    at = 0
    while at < len(text):
        mark = open_marks[-1][0] if open_marks else ""
        if text[at] == "\\" and text[at + 1 : at + 2].isascii() and at + 1 < len(text):
            words.append(text[at + 1])
            at += 2
        elif text[at] not in ("`" if mark in ("`", "```") else RESERVED):
            words.append(text[at])
            at += 1
        elif ended := _ended(text, at, mark):
            open_marks.pop()
            at = ended
        else:
            begun = _begun(text, at)
            if begun != ">":
                open_marks.append((begun, at))
            at += len(begun)
            if begun == "```":
                at = _after_language(text, at)
    if open_marks:
        mark, begin = open_marks[-1]
        raise MarkupError(f"Can't find end of {NAMES[mark]} entity at byte offset {_offset(text, begin)}")
    return "".join(words)


def _ended(text: str, at: int, mark: str) -> int:
    """Where the text goes on, if the innermost entity ends here; else 0."""
    if mark in ("[", "!["):
        return _after_link(text, at) if text[at] == "]" else 0
    if mark == "_" and text.startswith("__", at) and not text.startswith("___", at):
        return 0
    return at + len(mark) if mark and text.startswith(mark, at) else 0


def _after_link(text: str, at: int) -> int:
    """Behind the address of a link whose words end here."""
    if text[at + 1 : at + 2] != "(":
        return at + 1
    if (closed := re.compile(r"(?:\\.|[^)\\])*\)", re.DOTALL).match(text, at + 2)) is None:
        raise MarkupError(f"Can't find end of a URL at byte offset {_offset(text, at + 2)}")
    return closed.end()


def _begun(text: str, at: int) -> str:
    """The mark of the entity that begins here."""
    for mark in ("```", "__", "||", "![", "_", "*", "~", "`", "["):
        if text.startswith(mark, at):
            return mark
    if text[at] == ">" and (at == 0 or text[at - 1] == "\n"):
        return ">"
    raise MarkupError(f"Character '{text[at]}' is reserved and must be escaped with the preceding '\\'")


def _html(text: str) -> str:
    words: list[str] = []
    open_tags: list[str] = []
    at = 0
    while (begin := text.find("<", at)) >= 0:
        words.append(html.unescape(text[at:begin]))
        closes = text.startswith("/", begin + 1)
        (_close if closes else _open)(text, begin, open_tags)
        at = text.find(">", begin) + 1
        if not at:
            raise MarkupError(f"Unclosed {'end' if closes else 'start'} tag at byte offset {_offset(text, begin)}")
    if open_tags:
        raise MarkupError(f'Can\'t find end tag corresponding to start tag "{open_tags[-1]}"')
    return "".join((*words, html.unescape(text[at:])))


def _open(text: str, begin: int, open_tags: list[str]) -> None:
    name = re.split(r"[\s>]", text[begin + 1 :], maxsplit=1)[0].lower()
    if name not in TAGS:
        raise MarkupError(f'Unsupported start tag "{name}" at byte offset {_offset(text, begin)}')
    open_tags.append(name)


def _close(text: str, begin: int, open_tags: list[str]) -> None:
    name, offset = re.split(r"[\s>]", text[begin + 2 :], maxsplit=1)[0].lower(), _offset(text, begin)
    if not open_tags:
        raise MarkupError(f"Unexpected end tag at byte offset {offset}")
    if name not in ("", opened := open_tags.pop()):
        raise MarkupError(f'Unmatched end tag at byte offset {offset}, expected "</{opened}>", found "</{name}>"')


def _after_language(text: str, at: int) -> int:
    """Behind the name of a language, if it stands alone on the first line of a block of code."""
    named = re.compile(r"\w*\n").match(text, at)
    return named.end() if named else at


def _offset(text: str, at: int) -> int:
    return len(text[:at].encode())
