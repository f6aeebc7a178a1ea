"""What a run cost: a pure fold of its history into calls, tokens, bytes and money.

*Billed* is what the provider charges: input tokens of every accepted request, output tokens as far as they were
generated. *Delivered* is what crossed the link to the agent. Prices are those of the day on which the run was made, by
the pinned `genai-prices` table; a model it does not know is priced as the run's `price_as`; what has no price costs
*unknown* (None), never 0.
"""

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import TypeVar

from wedgehog.harness.record.history import Call, History

MINUTE_S = 60.0
Usd = Decimal | None
"""Dollars, or None where a price is unknown."""
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Tally:
    """Sums over some calls; adding one of unknown price makes the price unknown."""

    accepted: int = 0
    refused: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    tokens_delivered: int = 0
    bytes_delivered: int = 0
    usd: Usd = Decimal(0)

    @property
    def tokens_billed(self) -> int:
        """Input and output."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Tally") -> "Tally":
        """Both together."""
        return Tally(
            self.accepted + other.accepted,
            self.refused + other.refused,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.tokens_delivered + other.tokens_delivered,
            self.bytes_delivered + other.bytes_delivered,
            None if self.usd is None or other.usd is None else self.usd + other.usd,
        )


@dataclass(frozen=True)
class Ledger:
    """A run's books. Turn 0 holds the calls that came while no stimulus was under way."""

    total: Tally = field(default_factory=Tally)
    calls: dict[int, Tally] = field(default_factory=dict)
    """By the call's number."""
    turns: dict[int, Tally] = field(default_factory=dict)
    steps: dict[tuple[int, int], Tally] = field(default_factory=dict)
    """Main calls by (turn, step)."""
    models: dict[str, Tally] = field(default_factory=dict)
    priced_as: dict[str, str | None] = field(default_factory=dict)
    """Which price each model got: its own, or `price_as`'s, or None."""
    peak_calls_per_min: int = 0
    """The most paid calls in any 60 s; of a run shorter than that, what fell in it."""
    peak_usd_per_min: float | None = 0.0
    calls_per_min: float | None = None
    """Paid calls per minute from the first to the last; None where there are fewer than two."""

    @property
    def paid_calls(self) -> int:
        """Requests that the provider accepted."""
        return self.total.accepted

    @property
    def refused_calls(self) -> int:
        """Requests that it answered with a status of 400 or more."""
        return self.total.refused

    @property
    def tokens_billed(self) -> int:
        """Input and output."""
        return self.total.tokens_billed

    @property
    def tokens_delivered(self) -> int:
        """Output tokens that crossed the link."""
        return self.total.tokens_delivered

    @property
    def cost_usd(self) -> float | None:
        """What the run cost; None where a price is unknown."""
        return None if self.total.usd is None else float(self.total.usd)

    def call(self, number: int) -> Tally:
        """One call's sums (zeros for one that is not known)."""
        return self.calls.get(number, Tally())


def ledger_of(history: History) -> Ledger:
    """The books of a sealed history."""
    calls = history.calls
    tallies = {call.number: _tally(call, history) for call in calls}
    paid = [call for call in calls if call.paid]
    return Ledger(
        sum(tallies.values(), Tally()),
        tallies,
        _by((call.arrived.turn, tallies[call.number]) for call in calls),
        _by(((call.arrived.turn, call.arrived.step), tallies[call.number]) for call in calls if call.main),
        _by((call.arrived.model, tallies[call.number]) for call in calls),
        {model: priced_as(model, history.run.price_as) for model in sorted({call.arrived.model for call in paid})},
        max((len(window) for window in _windows(paid)), default=0),
        _peak_usd([[tallies[call.number].usd for call in window] for window in _windows(paid)]),
        _rate(paid),
    )


def _tally(call: Call, history: History) -> Tally:
    return Tally(
        int(call.paid),
        int(call.refused is not None and not call.paid),
        call.input_tokens,
        call.output_tokens,
        call.tokens_delivered,
        call.ended.bytes_delivered if call.ended else 0,
        _usd(call, history) if call.paid else Decimal(0),
    )


def _usd(call: Call, history: History) -> Usd:
    run = history.run
    at = _aware(run.started) + timedelta(seconds=max(0.0, call.at_s))
    chosen = priced_as(call.arrived.model, run.price_as)
    return None if chosen is None else price(chosen, call.input_tokens, call.output_tokens, at)


def _aware(started: str) -> datetime:
    moment = datetime.fromisoformat(started)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _by(pairs: Iterable[tuple[K, Tally]]) -> dict[K, Tally]:
    sums: dict[K, Tally] = {}
    for key, tally in pairs:
        sums[key] = sums.get(key, Tally()) + tally
    return sums


def _windows(calls: Sequence[Call]) -> Iterator[Sequence[Call]]:
    """For each call those that came before 60 s had passed since it, itself included."""
    end = 0
    for start, first in enumerate(calls):
        while end < len(calls) and calls[end].at_s < first.at_s + MINUTE_S:
            end += 1
        yield calls[start:end]


def _peak_usd(windows: Iterable[Sequence[Usd]]) -> float | None:
    peak = Decimal(0)
    for window in windows:
        known = [usd for usd in window if usd is not None]
        if len(known) < len(window):
            return None
        peak = max(peak, sum(known, Decimal(0)))
    return float(peak)


def _rate(paid: Sequence[Call]) -> float | None:
    span_s = paid[-1].at_s - paid[0].at_s if paid else 0.0
    return (len(paid) - 1) / span_s * MINUTE_S if span_s > 0 else None


# ---- prices


@cache
def priced_as(model: str, price_as: str) -> str | None:
    """The model by whose price `model` is billed: itself, else `price_as`, else None.

    A model that the table knows without a price (a free tier, say) stays without one.
    """
    for candidate in (model, price_as):
        try:
            return candidate if _priced(candidate) else None
        except LookupError:
            continue
    return None


def _priced(model: str) -> bool:
    from genai_prices.data_snapshot import get_snapshot

    prices = get_snapshot().find_provider_model(model, None, None, None)[1].prices
    every = [it.prices for it in prices] if isinstance(prices, list) else [prices]
    return any(it.input_mtok is not None or it.output_mtok is not None for it in every)


def price(model: str, input_tokens: int, output_tokens: int, at: datetime) -> Usd:
    """Dollars for one call of a known model at a given time, tiers and all; None where that day has no price.

    Raises:
        LookupError: the table does not know the model.
    """
    from genai_prices import Usage, calc_price

    usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    bill = calc_price(usage, model, genai_request_timestamp=at)
    unpriced = bill.model_price.input_mtok is None and bill.model_price.output_mtok is None
    return None if unpriced else bill.total_price


@cache
def price_table_date() -> date | None:
    """The newest day on which the pinned table's authors say they checked a price; None if they say none.

    The table has no date of its own, and its start dates include announced ones that lie in the future.
    """
    from genai_prices.data import providers

    comments = [it.price_comments for it in providers]
    comments += [model.price_comments for it in providers for model in it.models]
    days = [day for comment in comments if comment for day in _CHECKED.findall(comment)]
    return date.fromisoformat(max(days)) if days else None


_CHECKED = re.compile(r"(?:checked|verified|as of)[^.;]{0,80}?\b(20\d\d-\d\d-\d\d)\b")
