"""The same agent, which passes the starters: it waits as it is asked to, and says what no second try can mend."""

import json
import os
import sys
import time
import urllib.request
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError

TIMEOUT_S, PAUSE_S, TRIES = 2, 1, 2


def ask(messages: list[dict[str, str]]) -> str:
    """One call of the model, and a second one after a pause where it may help."""
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        data=json.dumps({"model": "gpt-4.1-mini", "messages": messages}).encode(),
        headers={"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"},
    )
    for attempt in range(1, TRIES + 1):
        pause_s = PAUSE_S
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:
                words = json.load(reply)["choices"][0]["message"]["content"]
            if words:
                return str(words)
            failure = "its reply is empty"
        except HTTPError as refused:
            failure = f"{refused}"
            if refused.code < 500 and refused.code != 429:
                break  # the same request would be refused again
            asked = refused.headers.get("Retry-After", "")
            pause_s = int(asked) if asked.isdigit() else PAUSE_S
        except (OSError, HTTPException, ValueError) as wrong:
            failure = f"{type(wrong).__name__}: {wrong}"
        if attempt < TRIES:
            time.sleep(pause_s)
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
