"""The results of tool calls that a model wrote in its text: what an agent put behind each of these calls.

A call is known by its scripted command, which the agent sends back with the model's text. The result follows the call,
in the same text or in the messages after the model's ("Observation: …").
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile

from wedgehog.fake_llm.conversation import Conversation, Message, ToolCallSeen, ToolResultSeen

COMMAND_BEGINS = re.compile(r"printf '(\d+\.\d+\.\d+) started")
"""How most scripted commands begin, in a line of text or of JSON, with the number of their call (`turn.step.call`)."""
_COMMAND_ENDS = re.compile(r"\(exit (?:\$wedgehog_status|0)\)")


@dataclass(frozen=True, slots=True)
class _Echo:
    """A call in the text of a message: its number, its command, and what stands behind it."""

    number: str
    command: str
    behind: str


@dataclass(frozen=True, slots=True)
class ResultFrame:
    """What an agent writes around each result: `Observation:` before it, or a tag at both ends."""

    before: str = ""
    behind: str = ""

    @classmethod
    def around(cls, output: re.Pattern[str], result: str) -> "ResultFrame | None":
        """The frame of a result that has this output; None if it has not, or if the frame is long."""
        found = output.search(result)
        if found is None:
            return None
        before, behind = result[: found.start()].strip(), result[found.end() :].strip()
        return cls(before, behind) if max(len(before), len(behind)) <= _LONGEST_FRAME else None

    def without(self, result: str) -> str:
        """What stands inside the frame."""
        return result.strip().removeprefix(self.before).removesuffix(self.behind).strip()


_LONGEST_FRAME = 200


@dataclass(frozen=True)
class ResultsInText:
    """Finds these results in a request. `tails` are what the templates have behind their last argument."""

    tails: tuple[str, ...]
    heads: tuple[str, ...]
    """What they have before their first argument, behind the model's words."""
    frame: ResultFrame = ResultFrame()

    @classmethod
    def of(cls, templates: Mapping[str, str], frame: ResultFrame | None = None) -> "ResultsInText":
        """The finder for calls that are written in this way, and for results in this frame."""
        parts = [re.split(r"\{\w+\}", template) for template in templates.values()]
        tails = tuple(last for *_, last in parts if last.strip())
        heads = tuple(before for *_, before, _ in parts if before.strip())
        return cls(tails, heads, frame or ResultFrame())

    def read(
        self, conversation: Conversation, token: Callable[[str], str], is_of_user: Callable[[Message], bool]
    ) -> Conversation:
        """The request with a call and its result behind each message that holds them in its text.

        `token` gives the token of a call's number (`turn.step.call`); `is_of_user` is true of a message that the agent
        got from its user: it is no result.
        """
        if conversation.tools or not any(map(COMMAND_BEGINS.search, (it.text for it in conversation.messages))):
            return conversation
        messages: list[Message] = []
        for index, message in enumerate(conversation.messages):
            messages.append(message)
            echoes = [*self._echoes(message)]
            for echo in echoes:
                last = echo is echoes[-1]
                told = _until_the_model_speaks(conversation.messages[index + 1 :], is_of_user) if last else ""
                if (behind := echo.behind + told).strip():
                    messages += _round(echo, self.frame.without(behind), token(echo.number))
        return replace(conversation, messages=tuple(messages))

    def _echoes(self, message: Message) -> Iterator[_Echo]:
        """The scripted calls in a text, in order; each has the text up to the next one behind it."""
        begins = [*COMMAND_BEGINS.finditer(message.text)]
        for index, found in enumerate(begins):
            following = begins[index + 1] if index + 1 < len(begins) else None
            until = following.start() if following else len(message.text)
            ended = _COMMAND_ENDS.search(message.text, found.end(), until)
            end = ended.end() if ended else until
            behind = self._without_template(message.text[end:until], followed=following is not None)
            yield _Echo(found[1], message.text[found.start() : end], behind)

    def _without_template(self, text: str, *, followed: bool) -> str:
        """What stands between two calls, without the ends of their templates."""
        bare = text.lstrip()
        for tail in self.tails:
            if bare.startswith(tail.strip()):
                bare = bare[len(tail.strip()) :]
                break
        if followed:
            bare = next(
                (bare.rstrip().removesuffix(it.strip()).rstrip() for it in self.heads if it.strip() in bare), bare
            )
        return bare


def _until_the_model_speaks(messages: tuple[Message, ...], is_of_user: Callable[[Message], bool]) -> str:
    told = takewhile(lambda message: message.role != "assistant" and not is_of_user(message), messages)
    return "\n".join(message.text for message in told)


def _round(echo: _Echo, result: str, token: str) -> list[Message]:
    call = ToolCallSeen(f"{token}a1", "", json.dumps({"command": echo.command}))
    return [
        Message("assistant", tool_calls=(call,)),
        Message("tool", tool_results=(ToolResultSeen(call.id, result),)),
    ]
