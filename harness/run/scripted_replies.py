"""The scenario's script as the fake provider plays it: replies by position, changed by the plan's reply faults."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from wedgehog.fake_llm.continuation import continued
from wedgehog.fake_llm.conversation import Conversation, ToolResultSeen
from wedgehog.fake_llm.reply import CUT_STOPS, Answer, Reply, ToolCall, UnscriptedError
from wedgehog.fake_llm.script.main_call import MainShape
from wedgehog.fake_llm.script.position import CallPosition
from wedgehog.fake_llm.script.roles import find_shell
from wedgehog.fake_llm.script.turns import CLOSING, HEARD, TurnScript, expand, offers, spoken, text_of, within_tools
from wedgehog.fake_llm.stop_sequences import before_stop
from wedgehog.fake_llm.token_endpoint import TokenEndpoint
from wedgehog.fake_llm.usage import output_tokens, within_limit
from wedgehog.harness.faults.reply_fault import Context
from wedgehog.harness.inject.injector import Injector
from wedgehog.harness.record.clock import Clock
from wedgehog.harness.record.error_words import FIRST_WORDS, plain
from wedgehog.harness.run.recording.placing import SentReply
from wedgehog.harness.services.beacon import dotted


class PlainTexts:
    """Texts as `plain` writes them. Each request carries the texts of the one before again, so they are kept."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, texts: Sequence[str]) -> list[str]:
        """Each of them; only they are kept for the next time."""
        self._known = {text: self._known[text] if text in self._known else plain(text) for text in texts}
        return [self._known[text] for text in texts]


@dataclass
class ScriptedReplies:
    """A `Script` for the fake provider and the `Placing` of the recorder, for one run."""

    script: TurnScript
    injector: Injector
    clock: Clock
    offered: Callable[[ToolCall], None] = lambda call: None
    """Called with every tool call that the model makes."""
    tokens: TokenEndpoint = field(default_factory=TokenEndpoint)
    shapes: dict[int, MainShape] = field(default_factory=dict)
    """The shape of each call, by its number: what the control run chooses the main shape from."""
    tools_seen: dict[int, Conversation] = field(default_factory=dict)
    replies: dict[int, SentReply] = field(default_factory=dict)
    most_messages: dict[int, int] = field(default_factory=dict)
    """By turn, the messages of its longest main request so far."""
    _plain_shown: PlainTexts = field(default_factory=PlainTexts)
    _plain_replies: PlainTexts = field(default_factory=PlainTexts)

    def place(self, call: int, conversation: Conversation) -> CallPosition:
        """The place of a request."""
        known = call in self.shapes
        place = self.script.place(call, conversation)
        if not known:
            self.shapes[call] = MainShape.of(conversation)
            self.tools_seen[call] = conversation
            self.injector.arrived(call, place, conversation.model)
        return place

    def read(self, conversation: Conversation) -> Conversation:
        """A request with the results of tools that stand in its text."""
        return self.script.positions.read(conversation)

    def token_of_result(self, call_id: str, text: str) -> str:
        """turn.step.call of the tool call that a result answers, or empty."""
        return self.script.positions.tokens.of(ToolResultSeen(call_id, text))

    def tokens_in_text(self, conversation: Conversation) -> Sequence[str]:
        """turn.step.call of each tool call whose result is in a message's text."""
        return self.script.positions.tokens_in_text(conversation)

    def answered_in_text(self, conversation: Conversation) -> Sequence[str]:
        """turn.step.call of each quoted tool call with other words behind it, of an agent that sends results so."""
        return self.script.positions.answered_in_text(conversation)

    def quotes(self, conversation: Conversation) -> tuple[int, ...]:
        """The calls of side conversations whose replies stand in the messages, also as results of tools."""
        return self.script.positions.sides.quoted(conversation)

    def replies_in(self, conversation: Conversation) -> tuple[int, ...]:
        """The calls whose reply's whole text stands in the messages, in any case and with any punctuation."""
        said = {call: text for call, it in self.replies.items() if (text := it.words.strip())}
        shown = self._shown(conversation) if said else []
        whole = "\n".join(shown)
        found = {call for call, text in said.items() if text in whole}
        if len(found) < len(said):
            bare, replies = "".join(self._plain_shown.of(shown)), self._plain_replies.of([*said.values()])
            found |= {call for call, text in zip(said, replies, strict=True) if text in bare}
        return tuple(call for call in said if call in found)

    def replies_begun(self, conversation: Conversation) -> tuple[int, ...]:
        """The calls whose reply's first words stand in the messages; the calls whose words are few are left out."""
        replies = self._plain_replies.of([it.words for it in self.replies.values()])
        begins = {call: text[:FIRST_WORDS] for call, text in zip(self.replies, replies, strict=True)}
        said = "".join(self._plain_shown.of(self._shown(conversation))) if begins else ""
        return tuple(call for call, text in begins.items() if len(text) == FIRST_WORDS and text in said)

    def _shown(self, conversation: Conversation) -> list[str]:
        """The texts of the messages; with the arguments of tool calls, if such a call carries the model's answer."""
        texts = [message.text for message in conversation.messages]
        if any(it.last_words for it in self.replies.values()):
            texts += [call.arguments for message in conversation.messages for call in message.tool_calls]
        return texts

    def replies_twice(self, conversation: Conversation) -> tuple[int, ...]:
        """The calls whose reply came once, and is the text of two messages of the model."""
        said = Counter(message.text.strip() for message in conversation.messages if message.role == "assistant")
        if not any(text and count > 1 for text, count in said.items()):
            return ()
        given = {call: text_of(it.reply).strip() for call, it in self.replies.items()}
        came = Counter(given.values())
        return tuple(call for call, text in given.items() if text and said[text] > 1 and came[text] == 1)

    def sent(self, call: int) -> SentReply | None:
        """The scripted reply to a request; None if it got another answer."""
        return self.replies.get(call)

    def answer(self, call: int, conversation: Conversation) -> Answer:
        """What the model says here, after the plan's reply faults. Errors: UnscriptedError if no line matches."""
        place = self.place(call, conversation)
        context = self._context(call, place, conversation)
        if place.side is None and (place.background or place.turn not in self.script.turns):
            note = self.script.aside(call, conversation)
            altered = self.injector.alter(call, note, context, on_script=True)
            said = self.injector.alter(call, altered, context, on_script=False)
            if place.turn and isinstance(said, Reply):
                self.replies[call] = SentReply(said)
                if not spoken(said).strip():
                    self.script.positions.sides.said_nothing(place.background)
            return said
        words = self._counted(self._words(place, conversation), place, conversation)
        altered = self.injector.alter(call, words or Reply(), context, on_script=True)
        if words is None and altered == Reply():
            where, scripted = f"turn {place.turn} step {place.step}", len(self.script.turns[place.turn].replies)
            raise UnscriptedError(f"{where}: the script has {scripted} replies for this turn")
        ready = self.script.direct(altered, call, conversation) if isinstance(altered, Reply) else altered
        answer = self.injector.alter(call, ready, context, on_script=False)
        if isinstance(answer, Reply):
            written = self.script.written(answer, conversation)
            in_text = () if _calls(written) else tuple(_calls(answer))
            answer = before_stop(written, conversation)
            rest = continued(answer, conversation)
            said = within_limit(rest, conversation)  # as the fake provider sends it
            needed = 0 if said is rest or answer.stop in CUT_STOPS else output_tokens(rest.items)
            ends = isinstance(altered, Reply) and not _calls(altered) and bool(_calls(said))
            if ends and isinstance(altered, Reply):  # the call is the answer, and no work of a tool
                last = expand(spoken(altered), {"nonce": self.script.nonce_of(call)})
                self.replies[call] = SentReply(said, (), needed, last)
                return answer
            offered = in_text or _calls(said)
            self.replies[call] = SentReply(
                said, _offers(offered, whole=not in_text or said is rest), needed, calls_in_text=in_text
            )
            for item in offered:
                self._offer(item, place, conversation)
        return answer

    def _offer(self, item: ToolCall, place: CallPosition, conversation: Conversation) -> None:
        """Tell the services of a tool call, and the positions of one that may delegate: a shell's command does not."""
        self.offered(item)
        shell = find_shell(self.script.tools(conversation))
        if shell is None or item.name != shell.name:
            self.script.positions.sides.offered(item.id.rpartition("a")[0], place.turn, item.args)

    def _counted(self, words: Reply | None, place: CallPosition, conversation: Conversation) -> Reply | None:
        """The reply, with the script's count of tokens until the agent has made its conversation shorter.

        A summary shows that, and so do fewer messages than before in this turn: the summary may have been refused, or
        was empty.
        """
        shorter = self.script.positions.sides.quotes_a_summary(conversation)
        if place.side is None:
            most, now = self.most_messages.get(place.turn, 0), len(conversation.messages)
            self.most_messages[place.turn] = max(most, now)
            shorter = shorter or now < most
        return replace(words, usage=None) if words is not None and shorter else words

    def _words(self, place: CallPosition, conversation: Conversation) -> Reply | None:
        """The script's reply; beyond it a closing text, if it ends with tool calls or the turn is over; else None."""
        if place.side is not None:
            return self.script.beside(place, conversation)
        turn = self.script.turns[place.turn]
        replies = turn.replies
        if place.step == len(replies) and self._goes_on_after(turn.nonce, conversation):
            return Reply((HEARD,))
        if place.step <= len(replies):
            reply = replies[place.step - 1]
            tools = self.script.tools(conversation)
            gone = turn.only_offered and not offers(tools, reply, conversation)
            return within_tools(replies[-1] if gone else reply, tools)
        by_call = self.script.finish is not None and bool(self.script.finish.tool or self.script.finish.arg)
        open_end = by_call or (bool(replies) and bool(_calls(replies[-1])))
        if open_end or not self.script.positions.is_open(place.turn):
            return Reply((CLOSING,))
        return None

    def _goes_on_after(self, nonce: str, conversation: Conversation) -> bool:
        """Whether the model has given the turn's answer already, and a message follows that is no result."""
        last = conversation.messages[-1] if conversation.messages else None
        if last is None or last.role not in ("user", "system") or last.tool_results:
            return False
        return any(message.role == "assistant" and nonce in message.text for message in conversation.messages)

    def _context(self, call: int, place: CallPosition, conversation: Conversation) -> Context:
        turn = self.script.turns.get(place.turn)
        replies = turn.replies if turn else ()
        if place.side is not None:
            replies = self.script.conversations.get(place.side.name, ())
        earlier = replies[: place.step]
        calls = [item for reply in earlier for item in reply.items if isinstance(item, ToolCall)]
        return Context(
            event=None,
            request_bytes=_size(conversation),
            now=self.clock.wall(),
            tools=tuple(tool.name for tool in self.script.tools(conversation)),
            step=place.step,
            attempt=place.attempt,
            last_tool_call=calls[-1] if calls else None,
            lead=self._lead(place),
            conversation=conversation,
            token=self.tokens.number_of(call),
            tokens=self.tokens.issued,
        )

    def _lead(self, place: CallPosition) -> str:
        """The beacon's part before the command of this step's first tool call."""
        if place.turn not in self.script.turns and place.side is None:
            return ""
        token = self.script.positions.token_at(place, 1)
        return self.script.beacon("\0", token).partition("\0")[0]


def _size(conversation: Conversation) -> int:
    """Characters of the messages, tool results included."""
    results = (result for message in conversation.messages for result in message.tool_results)
    return sum(len(message.text) for message in conversation.messages) + sum(len(result.text) for result in results)


def _calls(reply: Reply) -> list[ToolCall]:
    return [item for item in reply.items if isinstance(item, ToolCall)]


def _offers(calls: Sequence[ToolCall], *, whole: bool) -> Sequence[tuple[str, str, bool]]:
    """(turn.step.call, name, whole) of tool calls; arguments cut by max_tokens are not whole."""
    return [(dotted(it.id.rpartition("a")[0]), it.name, whole and it.raw_args is None) for it in calls]
