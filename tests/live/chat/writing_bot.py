"""A bot whose model writes to its user by a tool too: `writing_bot.py CHAT_URL LLM_URL [sends-both]`.

What the tool has sent is not sent again as the reply, unless it `sends-both`. Standard library only.
"""

import json
import sys
import urllib.request

CHAT, LLM = sys.argv[1:3]
HEADERS = {"content-type": "application/json", "authorization": "Bearer k"}
TEXT = {"type": "string", "description": "What your user reads."}
SCHEMA = {"type": "object", "properties": {"action": {"enum": ["read", "send"]}, "text": TEXT}, "required": ["text"]}
TOOL = {"type": "function", "function": {"name": "message", "description": "Your chat.", "parameters": SCHEMA}}


def post(url, **body):
    request = urllib.request.Request(url, json.dumps(body).encode(), HEADERS)
    with urllib.request.urlopen(request, timeout=20) as reply:
        return json.load(reply)


def send(text):
    post(f"{CHAT}/botK/sendMessage", chat_id=7, text=text)
    return text.strip()


def answer(said):
    """Ask the model until it calls no tool; send its last words, if they were not sent."""
    sent = []
    while True:
        reply = post(f"{LLM}/v1/chat/completions", model="gpt-5", messages=said, tools=[TOOL])["choices"][0]["message"]
        said.append(reply)
        for call in reply.get("tool_calls") or []:
            sent.append(send(json.loads(call["function"]["arguments"])["text"]))
            said.append({"role": "tool", "tool_call_id": call["id"], "content": "sent"})
        if reply.get("tool_calls"):
            continue
        if reply["content"].strip() not in sent or "sends-both" in sys.argv:
            send(reply["content"])
        return


said, offset = [], 0
while True:
    for update in post(f"{CHAT}/botK/getUpdates", offset=offset, timeout=3)["result"]:
        offset = update["update_id"] + 1
        said.append({"role": "user", "content": update["message"]["text"]})
        answer(said)
