"""The messages of a run, and the words by which messages, answers and results are recognized."""

import random
from dataclasses import dataclass, replace

from wedgehog.fake_llm.reply import Reply, Text, ToolCall
from wedgehog.fake_llm.script.subagent_results import OF_SUBAGENTS
from wedgehog.fake_llm.script.turns import ScriptedTurn
from wedgehog.harness.record.events.turn import MAIN_SESSION, ChosenModel, Permission, StimulusKind
from wedgehog.harness.run.recovery import recovery_turn
from wedgehog.harness.scenario.model import Scenario

RECOVERY_TEXT = "Are you all right? Please answer."


class RunTokens:
    """Words drawn from a run's seed: the same for the same seed, scenario and agent."""

    def __init__(self, seed: int | str) -> None:
        """`seed` differs between runs, so that each run has words of its own."""
        draw = random.Random(seed)  # noqa: S311  they must be repeatable, not secret
        letters = "bcdfghjkmnpqrstvwz"
        self.salt = "w" + "".join(draw.choices(letters, k=4))
        self._root = "".join(draw.choices(letters, k=6))
        self.session = f"s{self.salt}{self._root}"
        self._seed = seed

    def marker(self, turn: int) -> str:
        """One alphanumeric word of at most 12 characters."""
        return f"mk{self._root[:4]}{turn}q"

    def nonce(self, turn: int) -> str:
        """A word that cannot be derived from the marker."""
        draw = random.Random(f"{self._seed} nonce {turn}")  # noqa: S311  likewise
        return "".join(draw.choices("bcdfghjkmnpqrstvwz23456789", k=12))


@dataclass(frozen=True, slots=True)
class UserMessage:
    """One message, with its marker and the nonce of its answer."""

    number: int
    kind: StimulusKind
    text: str
    marker: str
    nonce: str
    permission: Permission = "allow"
    session: str = MAIN_SESSION
    opens: bool = False
    """Whether it is the first message of its session."""
    chosen_model: ChosenModel | None = None
    """The model that its user chooses before it; None: the one that was chosen last."""
    loads_again: bool = False
    """Whether its user loads the page again before it."""
    next_at_once: bool = False
    """Whether the message after it follows at once on its stop."""
    again_s: float | None = None
    """Real seconds after which its front end delivers it again."""
    as_other_event: bool = False
    """It comes then as an event of another kind."""

    @property
    def words(self) -> str:
        """The message as the agent gets it."""
        return f"{self.marker} {self.text}"


@dataclass(frozen=True, slots=True)
class RunMessages:
    """The messages of a scenario and of its recovery, and the replies to them."""

    scenario: Scenario
    tokens: RunTokens
    time_scale: float
    recovery_calls: tuple[ToolCall, ...] = ()

    def replies(self) -> dict[int, ScriptedTurn]:
        """The model's replies by turn, those of two recovery turns for each session included."""
        scripted = [tuple(faster(reply, self.time_scale) for reply in turn.replies) for turn in self.scenario.turns]
        turns = {
            n: ScriptedTurn(replies, self.tokens.nonce(n), only_offered=any(map(_is_of_a_begun_subagent, replies)))
            for n, replies in enumerate(scripted, start=1)
        }
        last = len(scripted)
        after = range(last + 1, last + 1 + 2 * len(self.scenario.sessions))
        return turns | {n: recovery_turn(self.recovery_calls, self.tokens.nonce(n)) for n in after}

    def conversations(self) -> dict[str, tuple[Reply, ...]]:
        """The replies of the declared conversations, by name."""
        return {
            it.name: tuple(faster(reply, self.time_scale) for reply in it.replies())
            for it in self.scenario.conversations
        }

    def message(self, number: int) -> UserMessage:
        """The message of a turn."""
        turn, tokens = self.scenario.turns[number - 1], self.tokens
        return UserMessage(
            number,
            turn.stimulus,
            turn.text,
            tokens.marker(number),
            tokens.nonce(number),
            turn.permission,
            turn.session,
            self.scenario.opens(number),
            turn.chosen_model,
            turn.loads_again,
            any(it.at_once for it in self.scenario.turns[number : number + 1]),
            None if turn.again_s is None else turn.again_s / self.time_scale,
            turn.again_as == "other_event",
        )

    def recovery(self, number: int, session: str) -> UserMessage:
        """A message of this session after the scenario's last turn."""
        marker, nonce = self.tokens.marker(number), self.tokens.nonce(number)
        return UserMessage(number, "recovery", RECOVERY_TEXT, marker, nonce, session=session)

    def during(self, number: int) -> dict[int, UserMessage]:
        """The messages that are given during this turn, and those that are given during such a message."""
        turns = enumerate(self.scenario.turns, start=1)
        direct = [n for n, turn in turns if turn.during is not None and turn.during.turn == number]
        return {n: self.message(n) for n in direct} | {m: it for n in direct for m, it in self.during(n).items()}


def _is_of_a_begun_subagent(reply: Reply) -> bool:
    """Whether the model asks for the result of a subagent or stops it, for which its agent may offer no tool."""
    return any(isinstance(item, ToolCall) and item.name in OF_SUBAGENTS for item in reply.items)


def faster(reply: Reply, time_scale: float) -> Reply:
    """The same reply with its delay and its pace divided by `time_scale`."""
    items = tuple(
        replace(item, pace_ms=item.pace_ms / time_scale) if isinstance(item, Text | ToolCall) else item
        for item in reply.items
    )
    return replace(reply, items=items, delay_s=reply.delay_s / time_scale)
