"""Base of reply faults: they change the scripted answer to one call."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.reply import Answer, ToolCall
from wedgehog.harness.faults.base import Aim, Fault, registered

NOTHING_SAID = Conversation("", "", False, ())


@dataclass(frozen=True, slots=True)
class Context:
    """The call that is being answered.

    `event` is the trigger's event; None where it names none. `request_bytes` is the size of the request's body, and
    `now` the date for headers. `tools` are the names that the agent advertised.
    `lead` is the text that the harness puts before the first shell command of the answer; the script does not hold it.
    """

    event: int | None
    request_bytes: int
    now: datetime
    tools: tuple[str, ...] = ()
    step: int = 1
    attempt: int = 1
    last_tool_call: ToolCall | None = None
    lead: str = ""
    conversation: Conversation = NOTHING_SAID
    """The request that is being answered."""
    token: int = 0
    """The number of the token of our token endpoint that the request carries, from 1; 0: another key."""
    tokens: int = 0
    """How many tokens have been issued."""
    kept: dict[str, str] = field(default_factory=dict)
    """What this planned fault has written down at an earlier request of the run (of the session, in `serve`)."""


class ReplyFault(Fault):
    """What the model says: a pure function from the scripted answer to another one."""

    __slots__ = ()
    aim = Aim(("llm",), "is something the model says")
    on_script: ClassVar[bool] = False
    """It changes the script's own answer, before names, ids and templates are filled in."""
    repeats_on_later_steps: ClassVar[bool] = False
    """It applies to every later step of its turn too."""
    says_nothing: ClassVar[bool] = False
    """The reply is complete and has no words."""
    lasts: ClassVar[bool] = False
    """Nothing heals it: it applies to every later request, in later turns too."""
    may_not_fire: ClassVar[bool] = False
    """The run is judged although it did not fire: it fires only on a mistake of the agent."""
    needs_call: ClassVar[bool] = False
    """It changes only a reply that calls a tool."""
    beside_the_main: ClassVar[bool] = False
    """It fits only calls beside the conversation: a script has no reply to what would follow in the conversation."""
    ends_body: ClassVar[bool] = False
    """The body ends properly before the reply does: by its end alone the reply seems complete."""
    leaves_words: ClassVar[bool] = False
    """The words and tool calls of the reply are as they would be without it."""

    misnumbers: ClassVar[bool] = False
    """The tool calls of the reply are as they would be without it, and their numbers are wrong."""

    counts_events: ClassVar[bool] = False
    """It changes one event of a stream, which its trigger names; `phase: middle` is the one behind half of them."""

    @property
    def breaks_arguments(self) -> bool:
        """Whether a tool call's arguments become text that is no JSON object."""
        return False

    @property
    def token_lasts_s(self) -> int | None:
        """What the token endpoint says in `expires_in`; None: the fault does not change it."""
        return None

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """The faulty answer."""
        raise NotImplementedError


def end_the_body(edits: Iterable[str]) -> bool:
    """Whether one of these edits of a stream, each named as its fault, ends the body before the reply."""
    return any(getattr(registered("reply").get(name), "ends_body", False) for name in edits)


def leave_the_words(edits: Iterable[str]) -> bool:
    """Whether each of these edits leaves the words and tool calls of the reply as they were."""
    return all(getattr(registered("reply").get(name), "leaves_words", False) for name in edits)


def leave_the_calls(names: Iterable[str]) -> bool:
    """Whether each of these faults leaves the tool calls of the reply as they were, but perhaps their numbers."""
    return all(leave_the_words([name]) or misnumber([name]) for name in names)


def misnumber(names: Iterable[str]) -> bool:
    """Whether one of these faults gives the tool calls of the reply wrong numbers."""
    return any(getattr(registered("reply").get(name), "misnumbers", False) for name in names)
