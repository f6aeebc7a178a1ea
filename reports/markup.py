"""HTML and SVG as values. All text is escaped unless it is `Markup` already.

tag("td", text_of_the_model, class_="says")     # -> <td class="says">&lt;script&gt;…</td>
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from html import escape

from wedgehog.reports.words import clean

VOID = frozenset({"meta", "br", "hr", "img"})
SHORT = 80
"""Texts of so many characters are kept escaped."""


class Markup(str):
    """Text that is escaped already. Only this file makes it."""

    __slots__ = ()


def text(content: object) -> Markup:
    """`content` as markup: Markup unchanged, None as nothing, lists joined, all else cleaned and escaped."""
    if isinstance(content, Markup):
        return content
    if isinstance(content, str):
        return Markup(_escaped(content))
    if content is None:
        return Markup()
    if isinstance(content, (tuple, list, Iterable)):
        return Markup("".join([text(part) for part in content]))
    return Markup(_escaped(str(content)))


def _escaped(words: str) -> str:
    """`words` cleaned and escaped; short ones come again and again, so they are kept."""
    return _short_escaped(words) if len(words) <= SHORT else escape(clean(words), quote=True)


@lru_cache(maxsize=8192)
def _short_escaped(words: str) -> str:
    return escape(clean(words), quote=True)


def tag(name: str, /, *content: object, **attributes: object) -> Markup:
    """One element. `class_` means `class`; other underscores become hyphens; None or False omits the attribute."""
    written = "".join(
        [
            _attribute(key) if value is True else f'{_attribute(key)}="{_escaped(str(value))}"'
            for key, value in attributes.items()
            if value is not None and value is not False
        ]
    )
    inner = text(content)
    return Markup(f"<{name}{written}>" if name in VOID and not inner else f"<{name}{written}>{inner}</{name}>")


@lru_cache(maxsize=256)
def _attribute(key: str) -> str:
    """The name of an attribute, after a space."""
    return f" {key.rstrip('_').replace('_', '-')}"


def document(title: str, style: str, policy: str, *body: object) -> str:
    """A complete page that loads nothing and runs no script. `style` is CSS and is not escaped."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        Markup(f"<style>{style}</style>"),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', *body), lang='en')}\n"


def html_table(
    heads: Sequence[tuple[str, str]], body: Iterable[Markup], tall: bool = False, class_: str | None = None
) -> Markup:
    """A table under heads (name, CSS class); `tall` limits its height; `stacked`: rows become blocks on a phone."""
    return scrolled([tag("th", name, class_=kind or None, scope="col") for name, kind in heads], body, class_, tall)


def scrolled(head: Iterable[Markup], body: Iterable[object], class_: str | None = None, tall: bool = False) -> Markup:
    """A table that scrolls by itself."""
    table = tag("table", tag("thead", tag("tr", head)), tag("tbody", body), class_=class_)
    return tag("div", table, class_="scroll tall" if tall else "scroll", tabindex="0")


def line(
    heads: Sequence[tuple[str, str]], cells: Sequence[object], class_: str | None = None, id_: str | None = None
) -> Markup:
    """One row of a table with these heads."""
    pairs = zip(cells, heads, strict=True)
    return tag("tr", [tag("td", cell, class_=kind or None) for cell, (_, kind) in pairs], class_=class_, id=id_)
