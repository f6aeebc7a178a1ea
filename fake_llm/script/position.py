"""A request's position in a scenario, read only from its conversation.

*Turn*: the highest marker in the last user message that holds one, else the turn under way. A background call that
quotes an ended turn belongs to the turn under way, if there is one.
*Step*: 1 + the highest tool round of this turn whose results were seen. It does not decrease where an agent trims or
summarises its history. Only a conversation that equals an earlier one of its turn gets that one's step again, and the
turn goes on from there: the agent has dropped what came after it. *Main or background*: see `MainShape`.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from wedgehog.fake_llm.conversation import Conversation, Message
from wedgehog.fake_llm.script.call_tokens import CallTokens
from wedgehog.fake_llm.script.main_call import AT_LIMIT, COMPACT, COMPACTING, MainShape, asks_aside, purpose_of
from wedgehog.fake_llm.script.openings import lasting, system_mark
from wedgehog.fake_llm.script.results_in_text import ResultsInText
from wedgehog.fake_llm.script.side_conversations import SideConversation, SideConversations, Traces
from wedgehog.fake_llm.script.side_summaries import SIDE_TURNS, SideSummaries
from wedgehog.fake_llm.script.turn_markers import TurnMarkers


@dataclass(frozen=True, slots=True)
class CallPosition:
    """A request's position; `background` is the purpose of a background call, empty for a main call.

    `side` is the conversation beside the main one to which a background call belongs, if any; step and attempt then
    count there.
    """

    turn: int
    step: int
    attempt: int
    background: str = ""
    turns_seen: tuple[int, ...] = ()
    side: SideConversation | None = None
    turns_doubled: tuple[int, ...] = ()
    """Turns whose message stands in two equal messages of the user."""
    turns_repeated: tuple[int, ...] = ()
    """Those of them whose two messages stand one right behind the other."""


@dataclass
class Positions:
    """Finds each request's position in one run."""

    salt: str
    shape: MainShape | None = None
    """None: every call is a main call (in the control run, which finds the shape)."""
    named: Callable[[Conversation], str] = lambda conversation: ""
    """The name of the declared conversation to which a request belongs, else empty."""
    results_in_text: ResultsInText | None = None
    """None: results of tools are the wire's own."""
    results_as_words: bool = False
    """Whether the agent sends results as words of a message, as its control run showed."""
    never_aside: bool = False
    """Whether the agent made no call beside the conversation in its control run."""
    turns: TurnMarkers = field(default_factory=TurnMarkers)
    _rounds: dict[int, int] = field(default_factory=dict)
    _attempts: dict[tuple[int, int], int] = field(default_factory=dict)
    _asked: dict[tuple[int, int, str], int] = field(default_factory=dict)
    """The round in which each conversation was first asked, by turn, the round that it shows, and digest."""

    def __post_init__(self) -> None:
        self.tokens = CallTokens(self.salt)
        shape = self.shape or MainShape()
        self.sides = SideConversations(self.salt, shape.asides, shape.marked)
        self.side_summaries = SideSummaries(self.salt)

    @property
    def under_way(self) -> int:
        """The last turn begun that has not ended, else 0."""
        return self.turns.under_way

    def is_open(self, turn: int) -> bool:
        """Whether this turn is under way."""
        return self.turns.is_open(turn)

    def begin(self, turn: int, marker: str, words: str = "", session: str = "") -> None:
        """Begin a turn of a session, whose stimulus has this marker, and these words after it."""
        self.turns.begin(turn, marker, words, session)

    def end(self, turn: int | None = None) -> None:
        """End this turn, or all turns."""
        self.turns.end(turn)

    def rounds(self, turn: int) -> int:
        """How many rounds of tool calls the conversation of this turn has shown."""
        return self._rounds.get(turn, 0)

    def token_at(self, place: CallPosition, call: int) -> str:
        """The token of a tool call of the reply at this place; in a side conversation the turn's number is higher."""
        above = SIDE_TURNS * place.side.serial if place.side is not None else 0
        return self.tokens.token(place.turn + above, place.step, call)

    def place(self, conversation: Conversation) -> CallPosition:
        """The position of one request; each call of this method counts as one attempt."""
        conversation = self.read(conversation)
        turn = self._turn(conversation)
        own = self.turns.since(conversation, turn)
        results = self._results(turn, conversation)
        traces = self._traces(turn, conversation, bool(results), self._asks_to_compact(own))
        side = self._side(conversation, traces)
        if side is not None:
            return self._beside(side, turn, conversation)
        background = self._background(conversation, own, traces)
        if background and self.turns.under_way_with(turn) and not self.is_open(turn):
            turn, own = self.turns.under_way_with(turn), ()  # It quotes an ended turn, and belongs to this one.
            results = self._results(turn, conversation)
        shown = _round(own, results, renamed=not self._has_known(own))
        round_ = max(self._rounds.get(turn, 0), shown)
        if background:
            if background in COMPACTING:
                self._rounds[turn] = round_  # Its words take the place of these results.
            return CallPosition(turn, round_ + 1, 1, background, self.turns.seen(conversation))
        self.sides.main(conversation, traces, map(self.tokens.full, results))
        self._rounds[turn] = round_ = self._asked.setdefault((turn, shown, _digest(conversation)), round_)
        step = round_ + 1
        self._attempts[turn, step] = attempt = self._attempts.get((turn, step), 0) + 1
        seen, doubled = self.turns.seen(conversation), self.turns.doubled(conversation)
        repeated = self.turns.repeated(conversation) if doubled else ()
        return CallPosition(turn, step, attempt, "", seen, turns_doubled=doubled, turns_repeated=repeated)

    def summed_up(self, call: int, purpose: str, conversation: Conversation) -> None:
        """A background call gets its words, which may take the place of a side conversation's messages."""
        if purpose in COMPACTING and not self.turns.seen(conversation):
            side = self.side_summaries.of(conversation) or self.sides.told_in(conversation)
            if side is not None:
                self.side_summaries.got(call, side, self._tokens(conversation))

    def _side(self, conversation: Conversation, traces: Traces) -> SideConversation | None:
        own = self.sides.marked and traces.asked is None and not (traces.results or traces.compacts)
        if own and conversation.tools and (side := self.side_summaries.of(conversation)):
            return side
        conversation = self.sides.with_task(conversation, traces)
        if name := self.named(conversation):
            return self.sides.named(name, conversation, traces.turn)
        return self.sides.find(conversation, traces) if self.shape is not None else None

    def _beside(self, side: SideConversation, turn: int, conversation: Conversation) -> CallPosition:
        """The position in a side conversation; it belongs to an open turn if there is one."""
        if not self.is_open(turn):
            turn = self.turns.under_way_with(turn or side.turn) or turn or side.turn
        results = (result for message in conversation.messages for result in message.tool_results)
        self.sides.returned(self.tokens.full(token) for token in map(self.tokens.of, results) if token)
        step = self.side_summaries.step(side, conversation, self._tokens(conversation))
        attempt = self.sides.attempt(side, step)
        return CallPosition(turn, step, attempt, side.name, self.turns.seen(conversation), side)

    def _traces(self, turn: int, conversation: Conversation, results: bool, compacts: bool) -> Traces:
        """What the request shows of the main conversation."""
        asked = self.turns.quoted_in(conversation, turn)
        fits = self.shape is None or self.shape.fits(conversation)
        return Traces(turn, asked, results, fits, compacts, under_way=self.is_open(turn))

    def read(self, conversation: Conversation) -> Conversation:
        """The request with the results of tools that stand in its text; that of a fork without its parent's part."""
        if self.results_in_text is None:
            return self.sides.unforked(conversation)
        return self.results_in_text.read(conversation, self.tokens.full, self.turns.is_of_user)

    def tokens_in_text(self, conversation: Conversation) -> tuple[str, ...]:
        """`turn.step.call` of each result in the messages' texts: what a command printed, not the command itself."""
        return self.tokens.printed_in(conversation.text)

    def answered_in_text(self, conversation: Conversation) -> tuple[str, ...]:
        """`turn.step.call` of each tool call that a message of the model quotes, with other words behind it.

        Only of an agent that sends results as words: those of a command that was killed, or stopped at a time limit,
        hold nothing that it printed.
        """
        messages = conversation.messages if self.results_as_words else ()
        last = max((n for n, message in enumerate(messages) if message.role in ("user", "tool")), default=0)
        said = "\n".join(message.text for message in messages[:last] if message.role == "assistant")
        return self.tokens.calls_in(said)

    def _turn(self, conversation: Conversation) -> int:
        return self.turns.last_in(conversation) or self._turn_of_results(conversation) or self.under_way

    def _turn_of_results(self, conversation: Conversation) -> int:
        """Where turns of several sessions are open, the last one whose results a request without a marker has."""
        if not self.turns.in_several_sessions:
            return 0
        tokens = self._tokens(conversation)
        return max((turn for turn in (int(token.split(".")[0]) for token in tokens) if self.is_open(turn)), default=0)

    def _results(self, turn: int, conversation: Conversation) -> list[str]:
        """`turn.step.call` of the results of a turn that a request carries, also before a reminder of its message."""
        tokens = [*self._tokens(conversation), *self.answered_in_text(conversation)]
        return [token for token in tokens if token.startswith(f"{turn}.")]

    def _tokens(self, conversation: Conversation) -> list[str]:
        """`turn.step.call` of the results that a request carries, of any turn."""
        results = [result for message in conversation.messages for result in message.tool_results]
        return [*filter(None, map(self.tokens.of, results)), *self.tokens_in_text(conversation)]

    def _has_known(self, own: tuple[Message, ...]) -> bool:
        """Whether messages carry a result that is known, of any turn."""
        return any(self.tokens.of(result) for message in own for result in message.tool_results)

    def _background(self, conversation: Conversation, own: tuple[Message, ...], traces: Traces) -> str:
        if self.shape is None:
            return ""
        if traces.fits:
            return "compact" if traces.compacts else ""
        last = conversation.messages[-1] if conversation.messages else None
        if last is not None and last.tool_results and own and any(self.tokens.of(r) for r in last.tool_results):
            return ""
        if self._last_words(conversation, own) or self._last_try(conversation, own, traces):
            return ""
        return purpose_of(conversation, self._told(own))

    def _told(self, own: tuple[Message, ...]) -> str:
        """The last message, if the agent tells it to the model: it is of the user and holds no marker."""
        last = own[-1] if own else None
        return last.text if last is not None and last.role == "user" and not self.turns.is_of_user(last) else ""

    def _asks_to_compact(self, own: tuple[Message, ...]) -> bool:
        """Whether a call with the main shape tells the model to sum up the conversation, in its last message.

        The message is of the agent: it holds no marker, or tells so before the first one, in a text that quotes it all.
        """
        last = own[-1] if own else None
        if last is None or last.role != "user":
            return False
        text = last.text.lower()
        marked_at = self.turns.first_place(text)
        asks = text[:marked_at]
        alone = len(own) < 2 and marked_at is None
        return not alone and COMPACT.search(asks) is not None and AT_LIMIT.search(asks) is None

    def is_at_limit(self, conversation: Conversation) -> bool:
        """Whether an agent tells the model, in a message of its own, that it may do no more."""
        told = self._told(conversation.messages)
        alone = sum(message.role == "user" for message in conversation.messages) < 2
        return not alone and AT_LIMIT.search(told) is not None and self.tokens.first_in(told) is None

    def _last_words(self, conversation: Conversation, own: tuple[Message, ...]) -> bool:
        """Whether an agent at its limit asks without tools: the system text and the turn's results are still there."""
        system = system_mark(conversation)
        if conversation.tools or conversation.schema is not None or self.shape is None or self.shape.system != system:
            return False
        texts = Conversation("", "", False, own)
        return (self._has_known(own) or bool(self.tokens_in_text(texts))) and not asks_aside(
            own[-1].text if own else ""
        )

    def _last_try(self, conversation: Conversation, own: tuple[Message, ...], traces: Traces) -> bool:
        """Whether an agent whose request with tools got no useful reply asks once more without them.

        Only of an agent that asks nothing beside the conversation: the system text and the user's message are the same.
        """
        if not self.never_aside or traces.asked is None or (traces.turn, 1) not in self._attempts:
            return False
        same = self.shape is not None and bool(self.shape.system) and self.shape.system == system_mark(conversation)
        aside = conversation.tools or conversation.schema is not None or asks_aside(own[-1].text if own else "")
        return same and not aside


def _round(own: tuple[Message, ...], results: Sequence[str], *, renamed: bool) -> int:
    """The highest tool round whose results (turn.step.call) a turn's messages carry.

    Where an agent rewrote the ids and its tool printed no token (`renamed`), rounds are counted. Without the turn's
    message, as after a summary that lost it, known results are of earlier turns, and no rounds of this one.
    """
    if results or not renamed or not any(message.tool_results for message in own):
        return max((int(token.split(".")[1]) for token in results), default=0)
    return sum(1 for message in own if message.role == "assistant" and message.tool_calls)


def _digest(conversation: Conversation) -> str:
    """What two requests that ask the same share: the lasting system text, the other messages, the tools' names."""
    said = [
        (lasting(message.text),) if message.role == "system" else repr(message) for message in conversation.messages
    ]
    asked = repr((said, sorted(tool.name for tool in conversation.tools)))
    return hashlib.sha256(asked.encode(errors="surrogatepass")).hexdigest()
