"""Faults of the OAuth token endpoint."""

from wedgehog.fake_llm.reply import HOUR_S, TokenHarm
from wedgehog.harness.faults.reply_fault import ReplyFault
from wedgehog.harness.faults.token_fault import TokenFault
from wedgehog.harness.inject.link_faults import LinkFaults


class TokenFaults:
    """Asked by the token endpoint before it answers."""

    def __init__(self, run: LinkFaults) -> None:
        self._run = run

    @property
    def expires_in(self) -> int:
        """What the endpoint says in `expires_in`: the plan's own number, else an hour."""
        faults = (state.planned.fault for state in self._run.states)
        named = (it.token_lasts_s for it in faults if isinstance(it, ReplyFault))
        return next((seconds for seconds in named if seconds is not None), HOUR_S)

    def asked(self) -> TokenHarm:
        """A token request has come: how the plan's faults harm its answer."""
        harm = TokenHarm()
        for state in self._run.of_turn(self._run.turn):
            fault = state.planned.fault
            if isinstance(fault, TokenFault) and not state.healed.is_set() and state.meets_one_more():
                harm = fault.on_token(harm)
                self._run.fired(state, "the token endpoint answered so")
        return harm
