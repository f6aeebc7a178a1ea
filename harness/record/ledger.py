"""The cost of a run: calls, tokens, bytes and money, computed from its history.

A rate is per minute of real time: the 60 s with the most calls. If all calls took less, it is their sum over that time,
or over 10 s, because a shorter time says little about a minute.

*Billed* is what the provider charges: input tokens of each accepted request, output tokens that were generated.
*Delivered* is what reached the agent. Prices are those of the day of the run in the pinned `genai-prices` table. An
unknown model has the price of the run's `price_as`. A model without a price costs *unknown* (None), never 0.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from wedgehog.harness.record.history import History
from wedgehog.harness.record.views import Call

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice

MILLION = 1_000_000
MINUTE_S = 60.0
LEAST_S = 10.0
"""The shortest time over which a rate is computed."""
Usd = Decimal | None
"""Dollars, or None if a price is unknown."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Sums over some calls; one unknown price makes the sum unknown."""

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

    @property
    def cost_usd(self) -> float | None:
        """Dollars; None if a price is unknown."""
        return None if self.usd is None else float(self.usd)

    def __add__(self, other: "Tally") -> "Tally":
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
    """The cost of a run. Turn 0 holds the calls without an open turn."""

    total: Tally = field(default_factory=Tally)
    calls: dict[int, Tally] = field(default_factory=dict)
    """By the call's number."""
    turns: dict[int, Tally] = field(default_factory=dict)
    priced_as: dict[str, str | None] = field(default_factory=dict)
    """Model → the model whose price it has: itself, `price_as`, or None."""
    calls_s: float | None = None
    """From the first paid call to the end of the last one; None without one."""
    peak_calls_per_min: float | None = None
    """None for fewer than two paid calls."""
    peak_usd_per_min: float | None = None
    scripted: int = 0
    """Paid calls whose tokens the script sets (`usage`)."""

    @property
    def paid_calls(self) -> int:
        """Requests that the provider accepted."""
        return self.total.accepted

    @property
    def cost_usd(self) -> float | None:
        """The cost of the run; None if a price is unknown."""
        return self.total.cost_usd

    def call(self, number: int) -> Tally:
        """The sums of one call; zeros for an unknown number."""
        return self.calls.get(number, Tally())


def played_ledger(history: History) -> Ledger:
    """The cost of the scenario: all calls without those of the recovery message."""
    return history.once("played_ledger", lambda: ledger_of(history, history.played_calls))


def ledger_of(history: History, calls: Sequence[Call] | None = None) -> Ledger:
    """The cost of a sealed history, or of some of its calls."""
    calls = history.calls if calls is None else calls
    every = history.once("tallies", lambda: _tallies(history))
    tallies = {call.number: every[call.number] for call in calls}
    paid = [call for call in calls if call.paid]
    turns: dict[int, Tally] = {}
    for call in calls:
        turns[call.arrived.turn] = turns.get(call.arrived.turn, Tally()) + tallies[call.number]
    return Ledger(
        sum(tallies.values(), Tally()),
        tallies,
        turns,
        {model: priced_as(model, history.run.price_as) for model in sorted({call.arrived.model for call in paid})},
        _lasted_s(paid),
        _peak(paid, [Decimal(1)] * len(paid)),
        _peak(paid, [tallies[call.number].usd for call in paid]),
        sum(call.started is not None and call.started.scripted for call in paid),
    )


def _tallies(history: History) -> dict[int, Tally]:
    run = history.run
    began = _aware(run.started)
    return {call.number: _tally(call, began, run.price_as) for call in history.calls}


def _tally(call: Call, began: datetime, price_as: str) -> Tally:
    return Tally(
        int(call.paid),
        int(call.refused is not None and not call.paid),
        call.input_tokens,
        call.output_tokens,
        call.tokens_delivered,
        call.ended.bytes_delivered if call.ended else 0,
        _usd(call, began, price_as) if call.paid else Decimal(0),
    )


def _usd(call: Call, began: datetime, price_as: str) -> Usd:
    at = began + timedelta(seconds=max(0.0, call.at_s))
    chosen = priced_as(call.arrived.model, price_as)
    return None if chosen is None else price(chosen, call.input_tokens, call.output_tokens, at)


def _aware(started: str) -> datetime:
    moment = datetime.fromisoformat(started)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _windows(calls: Sequence[Call]) -> Iterator[slice]:
    """For each call the calls within 60 s after it, itself included."""
    end = 0
    for start, first in enumerate(calls):
        while end < len(calls) and calls[end].at_s < first.at_s + MINUTE_S:
            end += 1
        yield slice(start, end)


def _lasted_s(paid: Sequence[Call]) -> float | None:
    if not paid:
        return None
    ends = [call.ended.at_s for call in paid if call.failed_at_s is None and call.ended is not None]
    ends += [call.failed_at_s for call in paid if call.failed_at_s is not None]
    return max(0.0, max([paid[-1].at_s, *ends]) - paid[0].at_s)


def _peak(paid: Sequence[Call], values: Sequence[Usd]) -> float | None:
    """The highest rate per minute; None for fewer than two paid calls, or if one has no price."""
    known, lasted_s = [value for value in values if value is not None], _lasted_s(paid)
    if lasted_s is None or len(paid) < 2 or len(known) < len(paid):
        return None
    if lasted_s >= MINUTE_S:
        return float(max(sum(known[window], Decimal(0)) for window in _windows(paid)))
    return float(sum(known, Decimal(0))) * MINUTE_S / max(lasted_s, LEAST_S)


# ---- prices


@cache
def priced_as(model: str, price_as: str) -> str | None:
    """The model whose price `model` has: itself, else `price_as`; None if it is listed without one (a free tier)."""
    for candidate in (model, price_as):
        try:
            return candidate if _priced(candidate) else None
        except LookupError:
            continue
    return None


def _priced(model: str) -> bool:
    return any(it.input_mtok is not None or it.output_mtok is not None for it in _every_price(model))


@cache
def _every_price(model: str) -> "tuple[ModelPrice, ...]":
    """All prices of a model, whatever the day or the hour."""
    prices = _listed(model).prices
    return tuple(it.prices for it in prices) if isinstance(prices, list) else (prices,)


@cache
def _listed(model: str) -> "ModelInfo":
    from genai_prices.data_snapshot import get_snapshot

    return get_snapshot().find_provider_model(model, None, None, None)[1]


def price(model: str, input_tokens: int, output_tokens: int, at: datetime) -> Usd:
    """Dollars for one call at a given time, price tiers included; None without a price. LookupError: unknown model."""
    now = _listed(model).get_prices(at)
    number = next(number for number, prices in enumerate(_every_price(model)) if prices is now)
    rates = _rates(model, number)
    if rates is None:
        return _bill(model, number, input_tokens, output_tokens)
    return rates[0] * input_tokens + rates[1] * output_tokens


@cache
def _rates(model: str, number: int) -> tuple[Decimal, Decimal] | None:
    """Dollars for one token of input and of output; None if the price is not the same for every token."""
    prices = _every_price(model)[number]
    parts = {name: value for name, value in vars(prices).items() if value is not None}
    in_usd, out_usd = _bill(model, number, MILLION, 0), _bill(model, number, 0, MILLION)
    flat = "requests_kcount" not in parts and all(isinstance(it, Decimal) for it in parts.values())
    if in_usd is None or out_usd is None or not flat:
        return None
    return in_usd / MILLION, out_usd / MILLION


@lru_cache(maxsize=4096)
def _bill(model: str, number: int, input_tokens: int, output_tokens: int) -> Usd:
    """What the price table's own arithmetic says; it takes a millisecond."""
    from genai_prices import Usage

    prices = _every_price(model)[number]
    if prices.input_mtok is None and prices.output_mtok is None:
        return None
    return prices.calc_price(Usage(input_tokens=input_tokens, output_tokens=output_tokens))["total_price"]


@cache
def price_table_date() -> date | None:
    """The latest date of a price check in the comments of the pinned table, its only dates of the past; or None."""
    from genai_prices.data import providers

    comments = [it.price_comments for it in providers]
    comments += [model.price_comments for it in providers for model in it.models]
    days = [day for comment in comments if comment for day in _CHECKED.findall(comment)]
    return date.fromisoformat(max(days)) if days else None


_CHECKED = re.compile(r"(?:checked|verified|as of)[^.;]{0,80}?\b(20\d\d-\d\d-\d\d)\b")
