"""
agent ── POST /oauth/token ──▶ token 1
agent ── model call, token 1 ─▶ 200
                                           ◀── the trigger: tokens up to 1 have expired
agent ── model call, token 1 ─▶ 401
agent ── POST /oauth/token ──▶ token 2
agent ── model call, token 2 ─▶ 200
"""

from typing import Annotated, ClassVar

from pydantic import Field

from wedgehog.fake_llm.reply import EXPIRED, Answer, Failure
from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.reply_fault import Context, ReplyFault


@fault("token_expired", family="reply")
class TokenExpired(ReplyFault):
    """The OAuth access tokens issued so far expire at the trigger: model calls with them get 401 from then on.

    The words are the provider's own. Nothing heals it, but a new token from `{token_url}` is accepted. The endpoint
    says `expires_in` seconds for every token, so an hour, the default, means a token that ends before its time.
    """

    expires_in: Annotated[int, Field(ge=1)] = 3600
    message: str | None = None
    lasts: ClassVar[bool] = True
    searched: ClassVar[bool] = False
    needs = ("tokens",)
    unmet: ClassVar[str] = "no request carried an expired token: the agent had got a new one before"

    @property
    def token_lasts_s(self) -> int:
        """The parameter `expires_in`."""
        return self.expires_in

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """A refusal, if the request carries a token that was issued before the trigger."""
        expired = int(context.kept.setdefault("issued", str(context.tokens)))
        dead = 0 < context.token <= expired
        return Failure(401, message=self.message, kind=EXPIRED) if dead else answer
