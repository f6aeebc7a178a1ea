"""HTML and SVG as values. Text is escaped unless it is Markup already, so that forgetting to escape is not possible.

tag("td", said_by_the_model, class_="says")     # -> <td class="says">&lt;script&gt;…</td>
"""

from collections.abc import Iterable
from html import escape

from wedgehog.reports.words import clean

VOID = frozenset({"meta", "br", "hr"})


class Markup(str):
    """Text that is safe as it stands: only this file makes it."""

    __slots__ = ()


def text(content: object) -> Markup:
    """Anything as markup: Markup as it is, None as nothing, lists joined, all else cleaned and escaped."""
    if isinstance(content, Markup):
        return content
    if content is None:
        return Markup("")
    if isinstance(content, Iterable) and not isinstance(content, str):
        return Markup("".join(text(part) for part in content))
    return Markup(escape(clean(str(content)), quote=True))


def tag(name: str, /, *content: object, **attributes: object) -> Markup:
    """One element. `class_` is the attribute `class`, other underscores are hyphens; None and False leave it out."""
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}"
        + ("" if value is True else f'="{escape(clean(str(value)), quote=True)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    inner = text(content)
    return Markup(f"<{name}{written}>" if name in VOID and not inner else f"<{name}{written}>{inner}</{name}>")


def document(title: str, style: str, policy: str, *body: object) -> str:
    """A whole page, one file, that loads nothing and runs nothing. `style` is our own CSS, written as it is."""
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
