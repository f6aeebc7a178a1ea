"""The same agent, which does not wait for ever: a time-out, one more try, and an error if that fails too."""

import json
import os
import sys
import time
import urllib.request
from pathlib import Path

TIMEOUT_S, PAUSES_S = 2, (0, 1)


def ask(messages: list[dict[str, str]]) -> str:
    """One call of the model, and a second one after a pause if it fails."""
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        data=json.dumps({"model": "gpt-4.1-mini", "messages": messages}).encode(),
        headers={"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"},
    )
    for pause_s in PAUSES_S:
        time.sleep(pause_s)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:
                return str(json.load(reply)["choices"][0]["message"]["content"])
        except OSError as wrong:
            failure = wrong
    sys.exit(f"Error: the model did not answer: {failure}")


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
