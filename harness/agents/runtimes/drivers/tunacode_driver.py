"""Send one message to TunaCode as its terminal application does: `driver.py SESSION LLM_URL KEY TIMEOUT_S MESSAGE`."""

import asyncio
import os
import sys
from typing import Any

from tunacode.core.agents.main import process_request
from tunacode.core.session import StateManager

MODEL = "openai:gpt-4o"


async def main(session_id: str, url: str, key: str, timeout_s: float, message: str) -> int:
    """Print the answer to stdout, or an error to stderr with exit code 1."""
    state = StateManager()
    await state.load_session(session_id)
    session = state.session
    session.session_id, session.project_id, session.current_model = session_id, "wedgehog", MODEL
    session.user_config["env"].update({"OPENAI_API_KEY": key, "OPENAI_BASE_URL": f"{url}/v1"})
    session.user_config["settings"]["global_request_timeout"] = timeout_s
    try:
        await process_request(message=message, model=MODEL, state_manager=state, streaming_callback=_nothing)
    except Exception as wrong:
        print(f"{type(wrong).__name__}: {wrong}", file=sys.stderr)
        return 1
    finally:
        await state.save_session()
    print(answer(session.conversation.messages))
    return 0


async def _nothing(_: str) -> None:
    """Ignore streamed text: the answer is printed at the end."""


def answer(messages: list[Any]) -> str:
    """The text of the last reply, as the application shows it."""
    for message in reversed(messages):
        parts = [getattr(item, "text", None) for item in getattr(message, "content", None) or ()]
        if type(message).__name__ == "AssistantMessage":
            return " ".join(part for part in parts if part)
    return ""


if __name__ == "__main__":
    session, url, key, timeout_s, message = sys.argv[1:]
    loop = asyncio.new_event_loop()
    code = loop.run_until_complete(main(session, url, key, float(timeout_s), message))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(
        code
    )  # the application does not wait for a thread that still reads a reply, so this driver must not either
