"""A bot that polls its chat: `chatting.py CHAT_URL LLM_URL [BUG]`. Standard library only.

It sends an answer in parts of at most 4,000 characters. The bug `in-one` sends it as one message, and only logs that
the chat did not take it; `the-first` sends one part and no mark.
"""

import json
import sys
import urllib.error
import urllib.request

CHAT, LLM = sys.argv[1:3]
BUG = sys.argv[-1] if len(sys.argv) > 3 else ""
HEADERS = {"content-type": "application/json", "x-api-key": "k", "anthropic-version": "2023-06-01"}


def post(url, **body):
    request = urllib.request.Request(url, json.dumps(body).encode(), HEADERS)
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)


def answered(said):
    reply = post(f"{LLM}/v1/messages", model="claude-sonnet-4-6", max_tokens=4000, messages=said)
    return "".join(part.get("text", "") for part in reply["content"])


def main():
    said, offset = [], 0
    while True:
        for update in post(f"{CHAT}/botK/getUpdates", offset=offset, timeout=20)["result"]:
            offset, message = update["update_id"] + 1, update["message"]
            said.append({"role": "user", "content": message["text"]})
            answer = answered(said)
            said.append({"role": "assistant", "content": answer})
            size = len(answer) if BUG == "in-one" else 4000
            parts = [answer[at : at + size] for at in range(0, len(answer), size)]
            for part in parts[:1] if BUG == "the-first" else parts:
                try:
                    post(f"{CHAT}/botK/sendMessage", chat_id=message["chat"]["id"], text=part)
                except urllib.error.HTTPError as wrong:
                    print("not sent:", wrong, file=sys.stderr)


main()
