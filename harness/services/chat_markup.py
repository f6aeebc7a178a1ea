"""The markup of a chat message, as Telegram has it: HTML, MarkdownV2, and the older Markdown."""

import html
import re

_CODE = r"```(?:\w+\n)?((?:\\.|[^`\\])*)```|`((?:\\.|[^`\\])+)`"
_LINK = r"\[((?:\\.|[^\]\\])*)\]\((?:\\.|[^)\\])*\)"
_MARKS = {
    "markdownv2": re.compile(rf"\\([!-/:-@\[-`{{-~])|{_CODE}|{_LINK}|^>|\*\*|[*_~]|\|\|", re.DOTALL | re.MULTILINE),
    "markdown": re.compile(rf"\\([_*`\[])|{_CODE}|{_LINK}|[*_]", re.DOTALL),
}
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


def without_markup(text: str, parse_mode: str) -> str:
    """The text as its user reads it."""
    mode = parse_mode.lower()
    if mode == "html":
        return html.unescape(re.sub(r"<[^>]*>", "", text))
    return _MARKS[mode].sub(lambda mark: _inside(mark, mode), text) if mode in _MARKS else text


def _inside(mark: re.Match[str], mode: str) -> str:
    escaped, block, code, link = mark.groups()
    if escaped is not None:
        return escaped
    if (shown := block if block is not None else code) is not None:
        return _ESCAPED.sub(r"\1", shown) if mode == "markdownv2" else shown
    return without_markup(link, mode) if link is not None else ""
