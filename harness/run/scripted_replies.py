"""The scenario's script as the fake provider plays it: the words by position, harmed as the plan says."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from wedgehog.fake_llm.conversation import Conversation, ToolResultSeen
from wedgehog.fake_llm.limit import within_limit
from wedgehog.fake_llm.reply import Answer, Reply, Text, ToolCall
from wedgehog.fake_llm.script.position import CallPosition, MainShape
from wedgehog.fake_llm.script.protocol import UnscriptedError
from wedgehog.fake_llm.script.turns import TurnScript, background_reply
from wedgehog.fake_llm.usage import output_tokens
from wedgehog.harness.faults.reply_fault import Context
from wedgehog.harness.inject import Injector
from wedgehog.harness.record.clock import Clock
from wedgehog.harness.run.recorder import Recorder
from wedgehog.harness.services.beacon import dotted


@dataclass
class ScriptedReplies:
    """A `Script` for the fake provider and the `Placing` of the recorder, for one run."""

    script: TurnScript
    nemesis: Injector
    clock: Clock
    recorder: Recorder | None = None
    shapes: dict[int, MainShape] = field(default_factory=dict)
    """The shape of each call, by its number: what the control run chooses the main shape from."""
    tools_seen: dict[int, Conversation] = field(default_factory=dict)
    offered: Callable[[ToolCall], None] = lambda call: None
    """Told of every tool call that the model makes."""

    def place(self, call: int, conversation: Conversation) -> CallPosition:
        """The place of a request (asked by the recorder, once per request)."""
        known = call in self.shapes
        place = self.script.place(call, conversation)
        if not known:
            self.shapes[call] = MainShape.of(conversation)
            self.tools_seen[call] = conversation
            self.nemesis.arrived(call, place, conversation.model)
        return place

    def token_of_result(self, call_id: str, text: str) -> str:
        """turn.step.call of the tool call that a result answers, or empty."""
        return self.script.positions.token_of(ToolResultSeen(call_id, text))

    def answer(self, call: int, conversation: Conversation) -> Answer:
        """What the model says here, after the plan's reply faults.

        Raises:
            Unscripted: a main call that no line of the script matches.
        """
        place = self.place(call, conversation)
        context = self._context(place, conversation)
        structured = self.script.nonce_per_call and conversation.schema is not None
        if place.background or structured or place.turn not in self.script.turns:
            reply = background_reply(conversation)
            return self.nemesis.alter(
                call, self.nemesis.alter(call, reply, context, on_script=True), context, on_script=False
            )
        words = self._words(place)
        altered = self.nemesis.alter(call, words or Reply(), context, on_script=True)
        if words is None and altered == Reply():
            raise UnscriptedError(_beyond(place, len(self.script.turns[place.turn].replies)))
        ready = self.script.direct(altered, call, conversation) if isinstance(altered, Reply) else altered
        answer = self.nemesis.alter(call, ready, context, on_script=False)
        if isinstance(answer, Reply) and self.recorder is not None:
            said = within_limit(answer, conversation)  # as the fake provider sends it
            needed = 0 if said is answer or answer.stop == "max_tokens" else output_tokens(answer.items)
            self.recorder.answering(call, said, _offers(said), needed)
            for item in said.items:
                if isinstance(item, ToolCall):
                    self.offered(item)
        return answer

    def _words(self, place: CallPosition) -> Reply | None:
        """The script's line; where it ends with tool calls, and when its turn is over, some last words end the loop."""
        replies = self.script.turns[place.turn].replies
        if place.step <= len(replies):
            return replies[place.step - 1]
        open_end = bool(replies) and any(isinstance(item, ToolCall) for item in replies[-1].items)
        if open_end or not self.script.positions.is_open(place.turn):
            return Reply((Text("That is all. {nonce}"),))
        return None

    def _context(self, place: CallPosition, conversation: Conversation) -> Context:
        turn = self.script.turns.get(place.turn)
        earlier = turn.replies[: place.step] if turn else ()
        calls = [item for reply in earlier for item in reply.items if isinstance(item, ToolCall)]
        return Context(
            event=None,
            request_bytes=_size(conversation),
            now=self.clock.wall(),
            tools=tuple(tool.name for tool in conversation.tools),
            step=place.step,
            attempt=place.attempt,
            last_tool_call=calls[-1] if calls else None,
            lead=self._lead(place),
        )

    def _lead(self, place: CallPosition) -> str:
        """What stands before the command of this step's first tool call, so that it leaves its trace."""
        if place.turn not in self.script.turns:
            return ""
        token = self.script.positions.token(place.turn, place.step, 1)
        return self.script.beacon("\0", token).partition("\0")[0]


def _size(conversation: Conversation) -> int:
    """What slowness grows with: characters of the messages, tool results included."""
    return sum(
        len(message.text) + sum(len(result.text) for result in message.tool_results)
        for message in conversation.messages
    )


def _offers(reply: Reply) -> Sequence[tuple[str, str, bool]]:
    """(turn.step.call, name, whole) of a reply's tool calls; arguments cut by max_tokens are not whole."""
    calls = [item for item in reply.items if isinstance(item, ToolCall)]
    return [(dotted(call.id.rpartition("a")[0]), call.name, call.raw_args is None) for call in calls]


def _beyond(place: CallPosition, written: int) -> str:
    return f"turn {place.turn} step {place.step}: the script has {written} replies for this turn"
