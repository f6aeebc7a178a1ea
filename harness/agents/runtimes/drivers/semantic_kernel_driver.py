"""Send one message to a Semantic Kernel agent: `driver.py HISTORY LLM_URL KEY MESSAGE`; an error keeps the history."""

import asyncio
import sys
from pathlib import Path

from openai import AsyncOpenAI
from semantic_kernel.agents import ChatCompletionAgent, ChatHistoryAgentThread
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.contents import ChatHistory
from semantic_kernel.functions import kernel_function

sys.path.insert(0, str(Path(__file__).parent))
import shell_tool  # in this folder


class Shell:
    """The plugin with the shell tool."""

    @kernel_function(name="bash")
    def bash(self, command: str) -> str:
        """Run a shell command and return its output."""
        return shell_tool.bash(command)


def stored(path: Path) -> ChatHistory:
    """The history that earlier messages left."""
    return ChatHistory.load_chat_history_from_file(str(path)) if path.exists() else ChatHistory()


async def main(path: Path, url: str, key: str, message: str) -> int:
    """Print the answer to stdout, or an error to stderr with exit code 1."""
    service = OpenAIChatCompletion("gpt-4o", async_client=AsyncOpenAI(base_url=f"{url}/v1", api_key=key))
    agent = ChatCompletionAgent(service=service, name="assistant", plugins=[Shell()])
    history = stored(path)
    try:
        answer = await agent.get_response(message, thread=ChatHistoryAgentThread(history))
        print(answer.message.content)
    except Exception as wrong:
        print(f"{type(wrong).__name__}: {wrong}", file=sys.stderr)
        return 1
    finally:
        history.store_chat_history_to_file(str(path))
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:])))
