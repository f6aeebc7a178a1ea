"""The fake provider with the replies of the benchmark: `python serve_ours.py PORT`."""

import asyncio
import sys

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.reply import Answer, Reply, Text
from wedgehog.fake_llm.server import FakeLLM

WORDS = "abcd" * 50
REPLIES = {
    "plain": Reply((Text("Hello there, how are you?"),)),
    "stream": Reply((Text(WORDS),)),
    "hold": Reply((Text(WORDS, pace_ms=600_000),)),
}


class Script:
    """Says what the last word of the request names."""

    def answer(self, call: int, conversation: Conversation) -> Answer:
        """Look the reply up."""
        return REPLIES[conversation.messages[-1].text]


async def serve(port: int) -> None:
    """Serve until the process is ended."""
    async with FakeLLM(Script(), port=port):
        await asyncio.Event().wait()


asyncio.run(serve(int(sys.argv[1])))
