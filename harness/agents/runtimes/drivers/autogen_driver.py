"""Send one message to an AutoGen agent: `driver.py STATE LLM_URL KEY MESSAGE`; an error keeps the state."""

import asyncio
import json
import sys
from pathlib import Path

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient

sys.path.insert(0, str(Path(__file__).parent))
from shell_tool import bash  # in this folder


def stored(state: Path) -> dict[str, object] | None:
    """The state that an earlier message left."""
    return json.loads(state.read_text()) if state.exists() else None


def store(state: Path, value: dict[str, object]) -> None:
    """Keep the state; a kill leaves the old one or the new one."""
    new = state.with_suffix(".new")
    new.write_text(json.dumps(value))
    new.replace(state)


async def main(state: Path, url: str, key: str, message: str) -> int:
    """Print the answer to stdout, or an error to stderr with exit code 1."""
    client = OpenAIChatCompletionClient(model="gpt-4o", base_url=f"{url}/v1", api_key=key)
    agent = AssistantAgent("assistant", client, tools=[bash], max_tool_iterations=20, model_client_stream=True)
    try:
        if (earlier := stored(state)) is not None:
            await agent.load_state(earlier)
        print((await agent.run(task=message)).messages[-1].to_text())
    except Exception as wrong:
        print(f"{type(wrong).__name__}: {wrong}", file=sys.stderr)
        return 1
    finally:
        store(state, dict(await agent.save_state()))
        await client.close()
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:])))
