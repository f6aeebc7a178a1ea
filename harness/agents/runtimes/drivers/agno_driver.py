"""Send one message to an Agno agent: `driver.py DATABASE LLM_URL KEY MESSAGE`."""

import sys
from pathlib import Path

from agno.agent import Agent
from agno.db.sqlite import SqliteDb
from agno.models.openai import OpenAIChat
from agno.run.base import RunStatus

sys.path.insert(0, str(Path(__file__).parent))
from shell_tool import bash  # in this folder


def main(database: str, url: str, key: str, message: str) -> int:
    """Print the answer to stdout; where the run did not complete, its words to stderr with exit code 1."""
    agent = Agent(
        model=OpenAIChat(id="gpt-4o", base_url=f"{url}/v1", api_key=key),
        tools=[bash],
        db=SqliteDb(db_file=database),
        session_id="one",
        add_history_to_context=True,
        telemetry=False,
    )
    try:
        run = agent.run(message)
    except Exception as wrong:
        print(f"{type(wrong).__name__}: {wrong}", file=sys.stderr)
        return 1
    failed = run.status != RunStatus.completed
    print(run.content, file=sys.stderr if failed else sys.stdout)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
