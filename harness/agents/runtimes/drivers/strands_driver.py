"""Send one message to a Strands agent: `driver.py SESSIONS LLM_URL KEY MESSAGE`."""

import sys
from pathlib import Path

from strands import Agent, tool
from strands.models.openai import OpenAIModel
from strands.session.file_session_manager import FileSessionManager

sys.path.insert(0, str(Path(__file__).parent))
from shell_tool import bash  # in this folder


def main(sessions: str, url: str, key: str, message: str) -> int:
    """Print the answer to stdout, or an error to stderr with exit code 1."""
    model = OpenAIModel(client_args={"base_url": f"{url}/v1", "api_key": key}, model_id="gpt-4o")
    session = FileSessionManager(session_id="one", storage_dir=sessions)
    agent = Agent(model=model, tools=[tool(bash)], session_manager=session, agent_id="assistant", callback_handler=None)
    try:
        print(agent(message))
    except Exception as wrong:
        print(f"{type(wrong).__name__}: {wrong}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
