"""The model's thoughts come back as the provider wants them."""

import re
from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import calls_of, stray_calls
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, nothing

_OF_THOUGHTS = re.compile(
    r"Expected `thinking`|`thinking` or `redacted_thinking` blocks .* cannot be modified"
    r"|Invalid `signature` in `thinking`|thinking\.(signature|thinking): Field required"
    r"|missing a thought_signature"
    r"|of type 'reasoning' was provided without its required following item|without its required 'reasoning' item"
    r"|Item with id 'rs_\w+' not found"
)
"""What Anthropic, Google and OpenAI say of a request whose thoughts are missing, changed, or at a wrong place."""


@invariant("thoughts_kept")
def thoughts_kept(history: History) -> Iterator[Verdict]:
    """No request is refused because thoughts of the model are missing in it, were changed, or stand at a wrong place.

    Anthropic wants the thinking block that led to a tool call in front of it, with its signature. OpenAI's Responses
    API wants a reasoning item together with the item behind it; where nothing is stored (`store: false`), with its
    `encrypted_content`. Gemini wants, from version 3 on, the `thoughtSignature` of the first function call of each
    step, in the part where it came. What is refused once is refused with each try, and with each later message that
    carries it. Judged on the words of our validator; a fault's refusal does not count.

    Fix: Store a reply as it came, thinking blocks, signatures and reasoning items too, and send it back unchanged and
    in its order, at least until the turn is over. Leave out thoughts and what follows from them together, and half a
    thought of a reply that broke off.
    """
    calls = [call for turn in history.turns for call in calls_of(turn)] + list(stray_calls(history))
    for call in calls:
        refused = call.refused
        if refused is not None and not refused.scripted and _OF_THOUGHTS.search(refused.message):
            says = f"request {call.number} (turn {call.arrived.turn}) was refused: {refused.message}"
            yield fail(says, (call.arrived, refused))
    yield nothing("no request was refused for its thoughts")
