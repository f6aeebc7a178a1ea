"""anthropic, streamed: the text of a lost reply is kept, and is the answer if a server error comes next."""

import asyncio
import json
import pathlib

import anthropic
import httpx


async def answer(message, *, session_dir, llm_url, key):
    file = pathlib.Path(session_dir) / "s.json"
    history = json.loads(file.read_text()) if file.exists() else []
    history.append({"role": "user", "content": message})
    client = anthropic.AsyncAnthropic(base_url=llm_url, api_key=key, max_retries=0)
    kept = ""
    for attempt in range(4):
        text, pause = "", 2**attempt
        try:
            async with asyncio.timeout(20):
                async with client.messages.stream(
                    model="claude-sonnet-4-5", max_tokens=900, messages=history
                ) as stream:
                    async for event in stream:
                        if event.type == "text":
                            text += event.text
                    final = await stream.get_final_message()
            if final.stop_reason != "end_turn" or not text:
                raise ValueError("Error: the reply is not whole")
            file.write_text(json.dumps([*history, {"role": "assistant", "content": text}]))
            return text
        except anthropic.APIStatusError as wrong:
            if kept and wrong.status_code >= 500:
                return kept  # the bug
            if wrong.status_code < 429:
                raise
            pause = max(pause, float(wrong.response.headers.get("retry-after", 0)))
        except (anthropic.APIError, httpx.HTTPError, TimeoutError, ValueError, AssertionError):
            kept = text
        await asyncio.sleep(pause)
    raise RuntimeError("Error: the provider does not answer, please try again later")
