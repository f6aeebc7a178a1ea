"""
agent ── POST /oauth/token ──▶ fake provider     refresh_refused   400 {"error": "invalid_grant"}
                                                 token_late        s seconds, then the answer; or never
"""

from dataclasses import replace
from typing import Literal

from wedgehog.fake_llm.reply import TokenHarm
from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.parameters import Forever, Seconds
from wedgehog.harness.faults.token_fault import TokenFault


@fault("refresh_refused", family="actor")
class RefreshRefused(TokenFault):
    """The OAuth token endpoint refuses to issue a token, with `error` of RFC 6749.

    `invalid_grant` is status 400, `invalid_client` 401, `server_error` 500, `temporarily_unavailable` 503.
    """

    error: Literal["invalid_grant", "invalid_client", "server_error", "temporarily_unavailable"] = "invalid_grant"

    def on_token(self, harm: TokenHarm) -> TokenHarm:
        """The refusal in place of a token."""
        return replace(harm, error=self.error)


@fault("token_late", family="actor")
class TokenLate(TokenFault):
    """The OAuth token endpoint answers `s` seconds later than it would, or never (`forever`)."""

    s: Seconds | Forever

    def on_token(self, harm: TokenHarm) -> TokenHarm:
        """The same answer, later."""
        if isinstance(self.s, str) or harm.late_s is None:
            return replace(harm, late_s=None)
        return replace(harm, late_s=harm.late_s + self.s)
