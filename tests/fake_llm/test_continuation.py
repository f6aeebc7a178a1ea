"""A client sends the beginning of a reply back as the last message, and the model goes on behind it: on every wire."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fake_llm.test_limit import said_in
from wedgehog.fake_llm.continuation import continued
from wedgehog.fake_llm.conversation import Conversation, Message, ToolCallSeen
from wedgehog.fake_llm.observer import WriteEnded
from wedgehog.fake_llm.reply import Reply, Text, Thinking, ToolCall, Usage

STORY = "A hedgehog is a small animal that rolls itself up when it is worried."
BEGINNING, REST = STORY[:20], STORY[20:]


def after(provider: Any, said: str) -> dict[str, Any]:
    """A request's messages, the last of which is the assistant's."""
    user = {"role": "user", "content": "Hi"}
    if provider.wire == "gemini":
        asked = {"role": "user", "parts": [{"text": "Hi"}]}
        return {"contents": [asked, {"role": "model", "parts": [{"text": said}]}]}
    messages = [user, {"role": "assistant", "content": said}]
    return {"input" if provider.wire == "openai-responses" else "messages": messages}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_model_goes_on_behind_the_beginning_that_the_client_sends_back(
    open_llm: Any, ask: Any, provider: Any, recorder: Any, stream: bool
) -> None:
    """The rest comes, and the rest is what is billed; another beginning gets the whole reply."""
    llm = await open_llm(Reply((Text(STORY),)))
    rest = await ask(llm, provider, stream=stream, **after(provider, BEGINNING))
    other = await ask(llm, provider, stream=stream, **after(provider, "A fox is"))
    assert (said_in(provider, rest), said_in(provider, other)) == (REST, STORY)
    first, second = await recorder.wait_for(WriteEnded, 2)
    assert first.output_tokens == -(-len(REST) // 4) < second.output_tokens


async def test_a_reply_that_is_sent_back_whole_is_followed_by_nothing(open_llm: Any, ask: Any, provider: Any) -> None:
    """The provider answers properly, without text."""
    llm = await open_llm(Reply((Text(STORY),)))
    received = await ask(llm, provider, stream=True, **after(provider, STORY))
    assert received.status == 200
    assert said_in(provider, received) == ""


def rest_of(reply: Reply, *messages: Message) -> Reply:
    """The reply to a conversation with these messages."""
    return continued(reply, Conversation("any", "m", False, messages))


def test_a_beginning_may_reach_over_several_texts():
    """Thinking before it does not come again, what stands behind it does; scripted input tokens stay."""
    call = ToolCall("shell")
    reply = Reply((Thinking("hm"), Text("One. "), Text("Two, three."), call), Usage(7, 50))
    rest = rest_of(reply, Message("assistant", "One. \nTwo,"))
    assert rest == Reply((Text(" three."), call), Usage(7, None))


@pytest.mark.parametrize(
    "last",
    [
        Message("user", BEGINNING),
        Message("assistant", ""),
        Message("assistant", BEGINNING, (ToolCallSeen("1", "shell", "{}"),)),
        Message("assistant", STORY + " And more."),
    ],
    ids=["the user's", "empty", "with a tool call", "longer than the reply"],
)
def test_another_last_message_leaves_the_reply_as_it_is(last: Message):
    """Only the assistant's own beginning is one."""
    reply = Reply((Text(STORY),))
    assert rest_of(reply, last) is reply
