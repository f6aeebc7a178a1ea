"""What a reply fault works with: the answer that the script gave, and where in the conversation it was given."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar

from wedgehog.fake_llm.reply import Answer, Edit, Reply, ToolCall
from wedgehog.harness.faults.base import Aim, Fault


@dataclass(frozen=True, slots=True)
class Context:
    """The call that is being answered.

    `event` is the trigger's event (None where it names none), `request_bytes` the size of the request's body, `now` the
    date for headers, `tools` the names the agent advertised, `last_tool_call` the latest call in the conversation.
    `lead` is what we ourselves put before the first shell command of the answer: no character of the story.
    """

    event: int | None
    request_bytes: int
    now: datetime
    tools: tuple[str, ...] = ()
    step: int = 1
    attempt: int = 1
    last_tool_call: ToolCall | None = None
    lead: str = ""


class ReplyFault(Fault):
    """What the model says instead: a pure function from the scripted answer to another one."""

    __slots__ = ()
    # Whether it changes what the script says (roles, templates), before names, ids and templates are filled in.
    on_script: ClassVar[bool] = False

    # Whether it goes on in every later step of its turn.
    repeats_on_later_steps: ClassVar[bool] = False

    @property
    def breaks_arguments(self) -> bool:
        """Whether a tool call's arguments become text that is no JSON object."""
        return False

    @property
    def aim(self) -> Aim:
        """On the link to the model."""
        return Aim(("llm",), "is something the model says")

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """The harmed answer."""
        raise NotImplementedError


def edited(answer: Answer, edit: Edit) -> Answer:
    """The answer with one more edit of its stream; a failure has no stream to edit."""
    return replace(answer, edits=(*answer.edits, edit)) if isinstance(answer, Reply) else answer
