"""A program that knows its provider's host by heart: `believers.py urllib|httpx anthropic|openai MESSAGE`.

It also asks for one more host, as many do for their statistics, and goes on without it.
"""

import contextlib
import json
import os
import sys
import urllib.request
from typing import Any

ASKED = {
    "anthropic": ("https://api.anthropic.com/v1/messages", "x-api-key", ""),
    "openai": ("https://api.openai.com/v1/chat/completions", "authorization", "Bearer "),
}


def posted(way: str, url: str, headers: dict[str, str], body: dict[str, Any]) -> dict[str, Any]:
    """The reply's JSON."""
    if way == "httpx":
        import httpx

        return dict(httpx.post(url, headers=headers, json=body, timeout=30).raise_for_status().json())
    request = urllib.request.Request(url, json.dumps(body).encode(), {**headers, "content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=5) as reply:
        got, how = b"", "the end"
        try:
            while part := reply.read1(9999):
                got += part
        except OSError as wrong:
            how = type(wrong).__name__
    if len(got) < int(reply.headers["content-length"]):
        raise OSError(f"{how} after {len(got)} bytes")
    return dict(json.loads(got))


def main(way: str, wire: str, message: str) -> None:
    """One question, and its answer."""
    with contextlib.suppress(OSError):
        urllib.request.urlopen("https://statistics.example.com/v1/started", timeout=5)
    url, name, before = ASKED[wire]
    headers = {name: before + os.environ["KEY"], "anthropic-version": "2023-06-01"}
    body = {"model": "m", "max_tokens": 999, "messages": [{"role": "user", "content": message}]}
    try:
        said = posted(way, url, headers, body)
    except Exception as wrong:
        sys.exit(f"Error: {type(wrong).__name__}: {wrong}")
    print(said["content"][0]["text"] if wire == "anthropic" else said["choices"][0]["message"]["content"])


if __name__ == "__main__":
    main(*sys.argv[1:])
