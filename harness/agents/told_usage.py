"""What an agent says itself of the tokens and the money that a turn took."""

from collections.abc import Iterable

from wedgehog.harness.agents.output_source import OutputSource
from wedgehog.harness.agents.spec_keys import UsageSources
from wedgehog.harness.record.events.turn import ToldUsage


def told_usage(places: UsageSources | None, texts: Iterable[str]) -> ToldUsage | None:
    """The numbers at these places, in the first of the texts that has one; None if it told none."""
    if places is None:
        return None
    for text in texts:
        found = {key: _number(place, text) for key, place in places.given.items()}
        if any(number is not None for number in found.values()):
            return ToldUsage(**found, of_session=places.counts == "session")
    return None


def _number(place: str, text: str) -> float | None:
    return OutputSource.parse(place).number_within(text)
