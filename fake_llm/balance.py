"""A prepaid balance: billed tokens are subtracted; when nothing is left, every request is refused.

balance: {usd: 0.05}                                                  # by the price of the model that is asked
balance: {usd: 0.05, input_usd_per_mtok: 3, output_usd_per_mtok: 15}  # by these prices
balance: {tokens: 10000}                                              # input and output
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Final, Self, TypeAlias

from pydantic import Field, NonNegativeInt, model_validator

from wedgehog.fake_llm.script.items import ConfigModel

Price: TypeAlias = Callable[[str, int, int], Decimal | None]
"""Dollars for (model, input tokens, output tokens), or None where a model has no price."""

Dollars: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]

_MILLION: Final = 1_000_000


class BalanceConfig(ConfigModel):
    """`{usd: 0.05}` or `{tokens: 10000}`: what each session may spend; a model without a price costs as `price_as`."""

    usd: Dollars | None = None
    tokens: NonNegativeInt | None = None
    input_usd_per_mtok: Dollars | None = None
    output_usd_per_mtok: Dollars | None = None
    price_as: str = "claude-sonnet-4-6"

    @model_validator(mode="after")
    def _one_unit(self) -> Self:
        if (self.usd is None) == (self.tokens is None):
            raise ValueError("expected either `usd` or `tokens`")
        if (self.input_usd_per_mtok is None) != (self.output_usd_per_mtok is None):
            raise ValueError("expected both prices, `input_usd_per_mtok` and `output_usd_per_mtok`, or none")
        return self

    def balance(self, price: Price | None = None) -> "Balance":
        """Return a full balance; raise ValueError if it is in dollars and `price_as` has no price."""
        given = self.input_usd_per_mtok is not None or self.tokens is not None
        if not given and (price is None or price(self.price_as, 1, 1) is None):
            raise ValueError(f"no price is known for {self.price_as!r}: write `input_usd_per_mtok` and its like")
        return Balance(self, price)

    def cost(self, model: str, input_tokens: int, output_tokens: int, price: Price | None) -> Decimal:
        """Return the cost of these tokens in the balance's unit."""
        if self.tokens is not None:
            return Decimal(input_tokens + output_tokens)
        if self.input_usd_per_mtok is not None and self.output_usd_per_mtok is not None:
            per_input, per_output = Decimal(str(self.input_usd_per_mtok)), Decimal(str(self.output_usd_per_mtok))
            return (input_tokens * per_input + output_tokens * per_output) / _MILLION
        known = (price(one, input_tokens, output_tokens) for one in (model, self.price_as) if price)
        return next((usd for usd in known if usd is not None), Decimal(0))


class Balance:
    """A prepaid balance's rest; as at the providers, the call that uses it up is still answered.

    >>> balance = BalanceConfig(tokens=10).balance()
    >>> balance.spend("any", 8, 4)
    >>> balance.is_spent, balance.as_json()
    (True, {'unit': 'tokens', 'prepaid': 10.0, 'left': -2.0})
    """

    def __init__(self, words: BalanceConfig, price: Price | None) -> None:
        self._words, self._price = words, price
        self._prepaid = Decimal(str(words.usd if words.tokens is None else words.tokens))
        self.left = self._prepaid

    @property
    def is_spent(self) -> bool:
        """True if nothing is left."""
        return self.left <= 0

    def spend(self, model: str, input_tokens: int, output_tokens: int) -> None:
        """Subtract the cost of billed tokens."""
        self.left -= self._words.cost(model, input_tokens, output_tokens, self._price)

    def as_json(self) -> dict[str, Any]:
        """Return the balance as plain data."""
        unit = "usd" if self._words.tokens is None else "tokens"
        return {"unit": unit, "prepaid": float(self._prepaid), "left": float(self.left)}
