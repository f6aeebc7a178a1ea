"""A table in the page that scrolls by itself; `kind` of a column is its CSS class."""

from collections.abc import Iterable, Sequence

from wedgehog.reports.markup import Markup, tag


def html_table(heads: Sequence[tuple[str, str]], body: Iterable[Markup], tall: bool = False) -> Markup:
    """A table of lines under heads (name, kind); a tall one gets a window of its own."""
    head = [tag("th", name, class_=kind or None, scope="col") for name, kind in heads]
    table = tag("table", tag("thead", tag("tr", head)), tag("tbody", body))
    return tag("div", table, class_="scroll tall" if tall else "scroll", tabindex="0")


def line(heads: Sequence[tuple[str, str]], cells: Sequence[object], class_: str | None = None) -> Markup:
    """One line of a sheet with these heads."""
    pairs = zip(cells, heads, strict=True)
    return tag("tr", [tag("td", cell, class_=kind or None) for cell, (_, kind) in pairs], class_=class_)
