"""The words by which tool calls, prompts and short notes of the fake model are recognized in a request.

A tool call carries a token `<salt><turn>x<step>x<call>` in its id, and its scripted command prints it, so that a result
is found also if an agent rewrites ids, or sends it as text. A history has the token as `turn.step.call`.
"""

import re

from wedgehog.fake_llm.conversation import ToolResultSeen
from wedgehog.fake_llm.value import value

_PRINTED = r"(?!\d|a\d|\\?['\"]?; ?\(exit)"
"""Behind a token that a command printed: not the rest of a call's id, and not the rest of the command (the beacon)."""
_IN_AN_ID = r"a\d"


@value
class CallTokens:
    """The tokens of the tool calls of one run; `salt` is a word that no other run has.

    >>> tokens = CallTokens("wbcdf")
    >>> tokens.token(1, 2, 1), tokens.full("1.2.1"), tokens.of(ToolResultSeen("toolu_wbcdf1x2x1a1", "ok"))
    ('wbcdf1x2x1', 'wbcdf1x2x1', '1.2.1')
    """

    salt: str

    def token(self, turn: int, step: int, call: int) -> str:
        """The token that identifies a tool call: part of its id, and printed by its command."""
        return f"{self.salt}{turn}x{step}x{call}"

    def full(self, token: str) -> str:
        """The token that is written `turn.step.call` in a history."""
        return f"{self.salt}{token.replace('.', 'x')}"

    def of(self, result: ToolResultSeen) -> str:
        """`turn.step.call` of a result's call, by its id, the command's output or its place; else empty."""
        return self.first_in(result.call_id) or self.first_in(result.traces) or ""

    def first_in(self, text: str) -> str | None:
        """The first token in a text, as `turn.step.call`."""
        found = re.search(self._pattern(), text, re.IGNORECASE)
        return ".".join(found.groups()) if found else None

    def printed_in(self, text: str) -> tuple[str, ...]:
        """Each token that a command printed."""
        return self._all(_PRINTED, text)

    def calls_in(self, text: str) -> tuple[str, ...]:
        """The token in each id of a call."""
        return self._all(_IN_AN_ID, text)

    def _all(self, then: str, text: str) -> tuple[str, ...]:
        found = re.finditer(self._pattern() + then, text, re.IGNORECASE)
        return tuple(dict.fromkeys(".".join(token.groups()) for token in found))

    def _pattern(self) -> str:
        return rf"{re.escape(self.salt)}(\d+)x(\d+)x(\d+)"


def prompt_mark(token: str) -> str:
    """The word in the prompt of a scripted subagent that names the tool call; it is no result of it."""
    return f"{token}a0"


def note(salt: str, call: int) -> str:
    """The word in the reply to a background call by which the reply is recognized."""
    return f"{salt}n{call}e"


def notes_in(salt: str, text: str) -> set[int]:
    """The background calls whose replies a text quotes."""
    return {int(call) for call in re.findall(rf"{re.escape(salt)}n(\d+)e", text, re.IGNORECASE)}
