"""Stop sequences: the text of a reply ends before the first of them, on each wire that has them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fake_llm.test_limit import said_in
from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.reply import Reply, Text, Thinking, ToolCall, Usage
from wedgehog.fake_llm.stop_sequences import before_stop

LOOKS = Reply((Text("Action: look\nObservation: nothing\nFinal Answer: nothing"),))


def stopping(provider: Any, *stops: str) -> dict[str, Any]:
    """What a client of each provider writes into its request."""
    if provider.wire == "gemini":
        return {"generationConfig": {"stopSequences": [*stops]}}
    if provider.wire == "ollama":
        return {"options": {"stop": [*stops]}}
    return {"stop_sequences" if provider.wire == "anthropic" else "stop": [*stops]}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_reply_ends_before_a_stop_sequence(open_llm: Any, ask: Any, provider: Any, stream: bool) -> None:
    """The sequence itself does not come. OpenAI's Responses have none."""
    llm = await open_llm(LOOKS)
    received = await ask(llm, provider, stream=stream, **stopping(provider, "END", "\nObservation:"))
    responses = provider.wire == "openai-responses"
    assert said_in(provider, received) == (LOOKS.items[0].text if responses else "Action: look")


async def test_anthropic_names_the_sequence(open_llm: Any, ask: Any, anthropic: Any) -> None:
    """Its stop reason is another one than at the model's own end."""
    llm = await open_llm(LOOKS)
    stopped = await ask(llm, anthropic, stop_sequences=["Observation:"])
    assert (stopped.json["stop_reason"], stopped.json["stop_sequence"]) == ("stop_sequence", "Observation:")
    whole = await ask(llm, anthropic, stop_sequences=["END"])
    assert (whole.json["stop_reason"], whole.json["stop_sequence"]) == ("end_turn", None)


async def test_one_sequence_may_be_a_text(open_llm: Any, ask: Any, openai: Any) -> None:
    """Not only a list."""
    received = await ask(await open_llm(LOOKS), openai, stop="\nObservation:")
    assert said_in(openai, received) == "Action: look"


def test_what_follows_is_gone_and_thoughts_do_not_count():
    """The first sequence in the text counts; a call behind it never comes, and the tokens are counted anew."""
    asked = Conversation("anthropic", "m", False, (), stops=("b", "ab"))
    reply = Reply((Thinking("ab"), Text("xab"), ToolCall("shell")), usage=Usage(7, 9), stop="tool")
    cut = before_stop(reply, asked)
    assert cut.items == (Thinking("ab"), Text("x")) and cut.stop_reason == "end"
    assert (cut.usage, cut.stop_sequence) == (Usage(7), "ab")


def test_words_in_a_form_end_with_it():
    """The harness still knows which part is what the model says."""
    asked = Conversation("anthropic", "m", False, (), stops=("</",))
    (text,) = before_stop(Reply((Text("<a>Hi</a>", span=(3, 5)),)), asked).items
    assert isinstance(text, Text) and (text.text, text.words) == ("<a>Hi", "Hi")
    assert before_stop(Reply((Text("</a>"),)), asked).items == ()
