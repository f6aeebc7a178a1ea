"""Send one message to a pydantic-ai agent: `driver.py HISTORY LLM_URL KEY MESSAGE`; an error keeps the history."""

import sys
from pathlib import Path

from pydantic_ai import Agent, ModelMessagesTypeAdapter, capture_run_messages
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

sys.path.insert(0, str(Path(__file__).parent))
from shell_tool import bash  # in this folder


def main(history: Path, url: str, key: str, message: str) -> int:
    """Print the answer to stdout, or an error to stderr with exit code 1."""
    earlier = ModelMessagesTypeAdapter.validate_json(history.read_bytes()) if history.exists() else []
    model = OpenAIChatModel("gpt-4o", provider=OpenAIProvider(base_url=f"{url}/v1", api_key=key))
    agent = Agent(model, tools=[bash])
    with capture_run_messages() as messages:
        try:
            print(agent.run_sync(message, message_history=earlier).output)
        except Exception as wrong:
            print(f"{type(wrong).__name__}: {wrong}", file=sys.stderr)
            return 1
        finally:
            history.write_bytes(ModelMessagesTypeAdapter.dump_json(messages or earlier))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
