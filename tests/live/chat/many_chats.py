"""A bot with many chats: `many_chats.py PORT CHAT_URL LLM_URL telegram|slack|whatsapp [BUG]`. Standard library only.

On Telegram it polls, else it has a webhook. Each chat has a conversation and a thread of its own. Its bugs:

- `one-queue`: works on one message after the other, of all chats
- `one-conversation`: keeps what was said in all chats in one list
- `answers-last`: sends its answers to the chat that wrote last
"""

import json
import queue
import subprocess
import sys
import threading
import urllib.request
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT, CHAT, LLM, API = sys.argv[1:5]
BUG = sys.argv[5] if len(sys.argv) > 5 else ""
HEADERS = {"content-type": "application/json", "x-api-key": "k", "anthropic-version": "2023-06-01"}
MODEL_S = 4
SORRY = "Error: the model does not answer."
TOOL = {
    "name": "shell",
    "description": "Runs a shell command.",
    "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
}
SAID, WAITING, KNOWN, LAST = defaultdict(list), {}, set(), [None]


def post(url, timeout_s=60, **body):
    request = urllib.request.Request(url, json.dumps(body).encode(), HEADERS)
    with urllib.request.urlopen(request, timeout=timeout_s) as reply:
        return json.load(reply)


def answer_to(text, said):
    """What the model says at last; a message whose turn fails stays in the conversation, with an excuse behind it."""
    said.append({"role": "user", "content": text})
    while True:
        body = {"model": "claude-sonnet-4-6", "max_tokens": 999, "tools": [TOOL], "messages": said}
        try:
            reply = post(f"{LLM}/v1/messages", MODEL_S, **body)
        except OSError:
            said.append({"role": "assistant", "content": SORRY})
            return SORRY
        said.append({"role": "assistant", "content": reply["content"]})
        calls = [part for part in reply["content"] if part["type"] == "tool_use"]
        if not calls:
            return "".join(part.get("text", "") for part in reply["content"])
        results = []
        for call in calls:
            ran = subprocess.run(call["input"]["command"], shell=True, check=False, capture_output=True)
            results.append({"type": "tool_result", "tool_use_id": call["id"], "content": ran.stdout.decode()})
        said.append({"role": "user", "content": results})


def send(chat, text):
    if API == "telegram":
        post(f"{CHAT}/botK/sendMessage", chat_id=chat, text=text)
    elif API == "whatsapp":
        post(f"{CHAT}/v22.0/7/messages", messaging_product="whatsapp", to=chat, type="text", text={"body": text})
    else:
        post(f"{CHAT}/api/chat.postMessage", channel=chat, text=text)


def message_in(update):
    """Its id, its chat and its text."""
    if API == "telegram":
        message = update["message"]
        return message["message_id"], message["chat"]["id"], message["text"]
    if API == "slack":
        event = update["event"]
        return event["ts"], event["channel"], event["text"]
    (message,) = update["entry"][0]["changes"][0]["value"]["messages"]
    return message["id"], message["from"], message["text"]["body"]


def take(update):
    id_, chat, text = message_in(update)
    if id_ in KNOWN:
        return
    KNOWN.add(id_)
    LAST[0] = chat
    worker = "all" if BUG == "one-queue" else chat
    if worker not in WAITING:
        WAITING[worker] = queue.Queue()
        threading.Thread(target=work, args=[WAITING[worker]], daemon=True).start()
    WAITING[worker].put((chat, text))


def work(waiting):
    while True:
        chat, text = waiting.get()
        answer = answer_to(text, SAID["all" if BUG == "one-conversation" else chat])
        send(LAST[0] if BUG == "answers-last" else chat, answer)


class Hook(BaseHTTPRequestHandler):
    def do_POST(self):
        take(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *words):
        pass


def poll():
    offset = 0
    while True:
        for update in post(f"{CHAT}/botK/getUpdates", offset=offset, timeout=30)["result"]:
            offset = update["update_id"] + 1
            take(update)


if API == "telegram":
    poll()
else:
    ThreadingHTTPServer(("127.0.0.1", int(PORT)), Hook).serve_forever()
