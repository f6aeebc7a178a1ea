"""A bot whose model writes to its user by a tool too: `writing_bot.py CHAT_URL LLM_URL [BUG]`. Standard library only.

What the tool has sent is not sent again as the reply, unless it `sends-both`. A last reply without words ends the turn,
if a tool had sent some. With `fills` a canned sentence takes its place, and with `asks-on` the model is asked again;
with `asks-on once` too, but what was sent is not sent again.
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
    sent, tries = [], 0
    while True:
        reply = post(f"{LLM}/v1/chat/completions", model="gpt-5", messages=said, tools=[TOOL])["choices"][0]["message"]
        said.append(reply)
        for call in reply.get("tool_calls") or []:
            text = json.loads(call["function"]["arguments"])["text"]
            if text.strip() not in sent or "once" not in sys.argv:
                sent.append(send(text))
            said.append({"role": "tool", "tool_call_id": call["id"], "content": "sent"})
        if reply.get("tool_calls"):
            continue
        words = (reply["content"] or "").strip()
        if not words and sent and "asks-on" in sys.argv and tries < 2:
            tries += 1
            said[-1:] = [{"role": "user", "content": "You have said nothing. Please answer."}]
            continue
        if not words and (not sent or "fills" in sys.argv):
            send("I have completed the work, but have no response to give.")
        elif words and (words not in sent or "sends-both" in sys.argv):
            send(words)
        return


said, offset = [], 0
while True:
    for update in post(f"{CHAT}/botK/getUpdates", offset=offset, timeout=3)["result"]:
        offset = update["update_id"] + 1
        said.append({"role": "user", "content": update["message"]["text"]})
        answer(said)
