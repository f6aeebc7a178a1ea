"""Base of faults of the OAuth token endpoint: they change its answer to a token request."""

from typing import ClassVar

from wedgehog.fake_llm.reply import TokenHarm
from wedgehog.harness.faults.base import Aim, Fault


class TokenFault(Fault):
    """A pure function from the harm of a token request's answer to a greater one."""

    __slots__ = ()
    aim = Aim(("llm",), "is something the token endpoint does", (None,), "fires at token requests: leave `phase` out")
    needs = ("tokens",)
    searched: ClassVar[bool] = False

    def on_token(self, harm: TokenHarm) -> TokenHarm:
        """The harm with this fault."""
        raise NotImplementedError
