"""Send one message to a langchain agent on langgraph: `driver.py CHECKPOINTS LLM_URL KEY MESSAGE`."""

import sys
from pathlib import Path

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite import SqliteSaver

sys.path.insert(0, str(Path(__file__).parent))
from shell_tool import bash  # in this folder


def main(database: str, url: str, key: str, message: str) -> int:
    """Print the answer to stdout, or an error to stderr with exit code 1."""
    model = ChatOpenAI(model="gpt-4o", base_url=f"{url}/v1", api_key=key, streaming=True)
    with SqliteSaver.from_conn_string(database) as saver:
        agent = create_agent(model, tools=[bash], checkpointer=saver)
        thread = {"configurable": {"thread_id": "one"}}
        try:
            result = agent.invoke({"messages": [{"role": "user", "content": message}]}, thread)
        except Exception as wrong:
            print(f"{type(wrong).__name__}: {wrong}", file=sys.stderr)
            return 1
    print(result["messages"][-1].text)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
