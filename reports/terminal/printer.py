"""What each part of the report in a terminal prints with: one line, a sentence, a heading, a verdict."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from wedgehog.reports.campaign_folder import StoredCampaign
from wedgehog.reports.result_category import SIGNS
from wedgehog.reports.rows import RunRow
from wedgehog.reports.words import clean, speakable

STYLES = {
    "passed": "green",
    "failed": "bold red",
    "inconclusive": "yellow",
    "error": "magenta",
    "skipped": "dim",
    "known": "yellow",
    "shown": "dim",
}


@dataclass(frozen=True)
class Printer:
    """Prints about a campaign on a console."""

    campaign: StoredCampaign
    rows: Sequence[RunRow]
    console: Console
    verbose: bool

    def heading(self, words: str) -> None:
        """Begin a section."""
        self.console.print()
        self.say(words, "bold")

    def say(self, words: str | Text, style: str = "", indent: int = 0) -> None:
        """Print a line or a sentence, which may wrap."""
        text = words if isinstance(words, Text) else self.text(words, style)
        for line in text.wrap(self.console, max(1, self.console.width - indent)):
            line.rstrip()
            self.console.print(Text(" " * indent) + line, soft_wrap=True)

    def whole(self, words: str, style: str = "") -> None:
        """One line to copy: only the terminal may wrap it."""
        self.console.print(self.text(words, style), soft_wrap=True)

    def text(self, words: str, style: str = "") -> Text:
        """Text of any origin without control codes and markup, in characters that this terminal can write."""
        line = clean(words).replace("\n", " ").replace("\t", " ")
        return Text(speakable(line, self.console.encoding), style=style)

    def verdict(self, row: RunRow) -> Text:
        """Its sign and its word."""
        return self.text(f"{SIGNS[row.standing]} {row.reads}", STYLES[row.standing])
