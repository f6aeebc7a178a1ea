"""Send one message to a Microsoft Agent Framework agent: `driver.py SESSIONS LLM_URL KEY MESSAGE`."""

import asyncio
import sys
from pathlib import Path

from agent_framework import Agent, FileHistoryProvider
from agent_framework.openai import OpenAIChatClient

sys.path.insert(0, str(Path(__file__).parent))
from shell_tool import bash  # in this folder


async def main(sessions: str, url: str, key: str, message: str) -> int:
    """Print the answer to stdout, or an error to stderr with exit code 1."""
    client = OpenAIChatClient("gpt-4o", base_url=f"{url}/v1", api_key=key)
    history = FileHistoryProvider(sessions)
    agent = Agent(client, name="assistant", tools=[bash], context_providers=[history], default_options={"store": False})
    try:
        stream = agent.run(message, stream=True, session=agent.create_session(session_id="one"))
        print((await stream.get_final_response()).text)
    except Exception as wrong:
        print(f"{type(wrong).__name__}: {wrong}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
