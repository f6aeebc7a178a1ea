"""The part of the page that compares agents: the bound of time for all, the totals, and where they differ."""

from wedgehog.reports.campaign_folder import StoredCampaign
from wedgehog.reports.markup import Markup, tag
from wedgehog.reports.totals import OVER_OWN_LIMITS, bounds, over_own_limits, side_by_side

SHOWN = 60
"""So many lines of the comparison are in the page; summary.md holds all."""


def agents_section(campaign: StoredCampaign) -> Markup | None:
    """Agents side by side; None if there is nothing to compare and no common bound."""
    held, compared = list(bounds(campaign)), list(side_by_side(campaign))
    if not held and not compared:
        return None
    lines = [tag("li", line, class_="beside" if depth else None) for depth, line in compared[:SHOWN]]
    more = f"{len(compared) - SHOWN:,} more lines are in summary.md." if len(compared) > SHOWN else ""
    return tag(
        "section",
        tag("h2", "Side by side"),
        [tag("p", line) for line in held],
        tag("ul", lines, class_="facts") if lines else None,
        tag("p", more, class_="soft") if more else None,
        _over(campaign),
    )


def _over(campaign: StoredCampaign) -> list[Markup] | None:
    lines = list(over_own_limits(campaign))
    if not lines:
        return None
    return [tag("h3", OVER_OWN_LIMITS), tag("ul", [tag("li", line) for line in lines[:SHOWN]], class_="facts")]
