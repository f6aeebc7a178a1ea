"""The numbers that the gate and `compare` look at, each with its floor and its margin."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from wedgehog.reports.played_cells import PlayedCell
from wedgehog.reports.words import count, money, seconds

OfCell = Callable[[PlayedCell], Sequence[float]]
WAITS_COUNT = 2.0
"""A machine with waits is slower in other ways too, so this many times the waits are taken off."""

OTHER_TURNS_FLOOR = 0.5
"""Above that of other times: most of these turns are short, and on a busy machine all of them took 0.5 s instead of
0.05 s, more than their waits explain. For the same reason they are not added up over all scenarios."""


@dataclass(frozen=True)
class Quantity:
    """A number that is compared. A difference below the floor never counts.

    Where repeats are too few for the test, only a difference beyond the margin counts: every repeat of one side is
    `times` as large as every repeat of the other, and more by `margin`. Below three repeats, both sides may be one odd
    run, and `few_times` and `few_margin` count.
    """

    name: str
    of: OfCell
    least: OfCell
    """The values without the part that is not the agent's: they must differ by the floor or the margin too."""
    words: Callable[[float], str]
    floor: float
    margin: float
    times: float
    few_margin: float
    few_times: float
    floor_share: float = 0.1
    waits: OfCell = lambda it: ()
    """The waits for a processor in the values; empty if there are none or they are not known."""
    slowed: bool = False
    """It is higher on a busy machine."""
    together: bool = False
    """It hardly depends on the scenario: the scenarios of an agent are compared as one, by the mean of each repeat."""
    pooled: bool = True
    """All scenarios of an agent are compared together too."""

    def floor_above(self, low: float) -> float:
        """By how much another value must be above this one to count."""
        return max(self.floor, self.floor_share * low)


def _calls(name: str, calls: OfCell) -> Quantity:
    return Quantity(name, calls, calls, _counted, floor=1, margin=2, times=1.5, few_margin=10, few_times=4.0)


def _messages(name: str, messages: OfCell) -> Quantity:
    return Quantity(name, messages, messages, _counted, floor=1, margin=2, times=1.0, few_margin=3, few_times=1.0)


def _counted(number: float) -> str:
    return count(number) if number == round(number) else f"{number:,.1f}"


def _cost(name: str, usd: OfCell) -> Quantity:
    return Quantity(name, usd, usd, money, floor=0.001, margin=0.02, times=1.5, few_margin=0.1, few_times=4.0)


def _without_waits(times: Sequence[float], least: Sequence[float]) -> Sequence[float]:
    """The times less `WAITS_COUNT` times the waits for a processor, where these are known."""
    if not least:
        return times
    return [max(0.0, long - WAITS_COUNT * (long - short)) for long, short in zip(times, least, strict=True)]


def _waits(times: Sequence[float], least: Sequence[float]) -> Sequence[float]:
    return [long - short for long, short in zip(times, least, strict=True)] if least else ()


def _time(
    name: str, times: OfCell, least: OfCell, *, floor: float = 0.2, together: bool = False, pooled: bool = True
) -> Quantity:
    """A time; `least` is the same without the waits for a processor, empty if these are not known."""
    return Quantity(
        name,
        times,
        lambda it: _without_waits(times(it), least(it)),
        seconds,
        floor=floor,
        margin=2.0,
        times=2.0,
        few_margin=5.0,
        few_times=4.0,
        waits=lambda it: _waits(times(it), least(it)),
        slowed=True,
        together=together,
        pooled=pooled,
    )


QUANTITIES: Mapping[str, Quantity] = {
    "unanswered": _messages("messages without an answer", lambda it: it.unanswered),
    "paid_calls": _calls("paid calls", lambda it: it.paid_calls),
    "usd": _cost("simulated cost", lambda it: it.usd),
    "recovery_calls": _calls("recovery calls", lambda it: it.recovery_calls),
    "recovery_usd": _cost("simulated recovery cost", lambda it: it.recovery_usd),
    "start_s": _time("start", lambda it: it.start_s, lambda it: it.start_least_s, together=True),
    "turn_s": _time("longest turn", lambda it: it.turn_s, lambda it: it.turn_least_s),
    "other_turns_s": _time(
        "other turns",
        lambda it: it.other_turns_s,
        lambda it: it.other_turns_least_s,
        floor=OTHER_TURNS_FLOOR,
        pooled=False,
    ),
}
"""The numbers that are compared, by their keys in a baseline."""
