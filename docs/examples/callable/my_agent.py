"""An agent that is a Python function; sync or async, in a process of its own."""

import json
import urllib.request


def answer(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """Answer one message. An exception is an error that its user sees."""
    body = {"model": "claude-sonnet-4-6", "max_tokens": 500, "messages": [{"role": "user", "content": message}]}
    headers = {"Content-Type": "application/json", "x-api-key": key, "anthropic-version": "2023-06-01"}
    request = urllib.request.Request(f"{llm_url}/v1/messages", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=2) as reply:
        return str(json.load(reply)["content"][0]["text"])
