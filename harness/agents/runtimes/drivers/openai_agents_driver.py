"""Send one message to an openai-agents agent: `driver.py SESSION_DB LLM_URL KEY MESSAGE`."""

import asyncio
import sys
from pathlib import Path

from agents import Agent, OpenAIChatCompletionsModel, Runner, SQLiteSession, function_tool
from openai import AsyncOpenAI

sys.path.insert(0, str(Path(__file__).parent))
from shell_tool import bash  # in this folder


async def main(database: str, url: str, key: str, message: str) -> int:
    """Print the answer to stdout, or an error to stderr with exit code 1."""
    model = OpenAIChatCompletionsModel("gpt-4o", AsyncOpenAI(base_url=f"{url}/v1", api_key=key))
    agent = Agent(name="assistant", model=model, tools=[function_tool(bash)])
    try:
        run = Runner.run_streamed(agent, message, session=SQLiteSession("one", database))
        async for _ in run.stream_events():
            pass
        print(run.final_output)
    except Exception as wrong:
        print(f"{type(wrong).__name__}: {wrong}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
