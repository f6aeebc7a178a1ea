"""Send one message to an ADK agent: `driver.py DATABASE MESSAGE`; the address and the key are in the environment."""

import asyncio
import sys
from pathlib import Path

from google.adk.agents import Agent
from google.adk.runners import Runner
from google.adk.sessions import DatabaseSessionService
from google.genai.types import Content, Part

sys.path.insert(0, str(Path(__file__).parent))
from shell_tool import bash  # in this folder

NAMES = {"app_name": "app", "user_id": "user"}


async def main(database: str, message: str) -> int:
    """Print the final answer to stdout, or an error to stderr with exit code 1."""
    agent = Agent(name="assistant", model="gemini-2.5-flash", tools=[bash])
    sessions = DatabaseSessionService(f"sqlite+aiosqlite:///{database}")
    runner = Runner(app_name="app", agent=agent, session_service=sessions)
    failed = False
    try:
        if await sessions.get_session(**NAMES, session_id="one") is None:
            await sessions.create_session(**NAMES, session_id="one")
        words = Content(role="user", parts=[Part(text=message)])
        async for event in runner.run_async(user_id="user", session_id="one", new_message=words):
            if event.error_code or event.error_message:
                print(f"error: {event.error_code} {event.error_message or ''}", file=sys.stderr)
                failed = True
            elif event.is_final_response() and event.content and event.content.parts:
                print("".join(part.text or "" for part in event.content.parts if not part.thought))
    except Exception as wrong:
        print(f"{type(wrong).__name__}: {wrong}", file=sys.stderr)
        return 1
    return int(failed)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
