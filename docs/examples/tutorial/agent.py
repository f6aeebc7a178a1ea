"""A chat agent in thirty lines: one message per process, the conversation in a file."""

import json
import os
import sys
import urllib.request
from pathlib import Path


def ask(messages: list[dict[str, str]]) -> str:
    """One call of the model."""
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        data=json.dumps({"model": "gpt-4.1-mini", "messages": messages}).encode(),
        headers={"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"},
    )
    with urllib.request.urlopen(request) as reply:
        return str(json.load(reply)["choices"][0]["message"]["content"])


def main(folder: str, message: str) -> None:
    """Answer one message, and remember it."""
    file = Path(folder) / "conversation.json"
    messages = json.loads(file.read_text()) if file.exists() else []
    messages.append({"role": "user", "content": message})
    answer = ask(messages)
    messages.append({"role": "assistant", "content": answer})
    file.write_text(json.dumps(messages))
    print(answer)


main(*sys.argv[1:])
