"""The report in a terminal: verdicts, reasons, cost, and how to play a run again.

Words carry the meaning and colours only repeat it, for NO_COLOR, logs and screen readers. On a narrow terminal each run
becomes three short lines. Where the encoding has no `✓`, the report says `ok`.
"""

from rich.console import Console

from wedgehog.reports.campaign_folder import StoredCampaign
from wedgehog.reports.rows import table
from wedgehog.reports.terminal.sentences import Sentences
from wedgehog.reports.terminal.tables import Tables


def print_campaign(campaign: StoredCampaign, console: Console, *, verbose: bool = False, quiet: bool = False) -> None:
    """Print the report of a campaign that was read.

    `verbose` adds each invariant's sentence; `quiet` leaves only what needs attention, and the totals.
    """
    rows = table(campaign)
    sentences = Sentences(campaign, rows, console, verbose)
    if not quiet:
        Tables(campaign, rows, console, verbose).print()
        sentences.details()
    else:
        sentences.doubts()
    sentences.summary()
