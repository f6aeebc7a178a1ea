"""A bot with a webhook: `hooked.py PORT CHAT_URL LLM_URL telegram|slack|whatsapp [BUG]`. Standard library only.

It takes a message, answers the webhook at once, and works on the message behind that. A message whose id it knows is
taken and left alone. Its bugs:

- `works-again`: takes each message for a new one
- `both-events`: knows the events of Slack by their ids, and not by their messages
- `mentions-only`: no bug; it leaves events alone that are no mentions, and knows no message
- `queues-twice`: handles a message twice that comes while it works
- `drops`: forgets a message that comes while it works
- `works-first`: answers the webhook when it has answered its user, and takes each message for a new one
"""

import hashlib
import hmac
import json
import os
import queue
import subprocess
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT, CHAT, LLM, API = sys.argv[1:5]
BUG = sys.argv[-1] if len(sys.argv) > 5 else ""
HEADERS = {"content-type": "application/json", "x-api-key": "k", "anthropic-version": "2023-06-01"}
TOOL = {
    "name": "shell",
    "description": "Runs a shell command.",
    "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
}


def post(url, **body):
    request = urllib.request.Request(url, json.dumps(body).encode(), HEADERS)
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)


def work_on(text, said):
    said.append({"role": "user", "content": text})
    while True:
        reply = post(f"{LLM}/v1/messages", model="claude-sonnet-4-6", max_tokens=999, tools=[TOOL], messages=said)
        said.append({"role": "assistant", "content": reply["content"]})
        calls = [part for part in reply["content"] if part["type"] == "tool_use"]
        if not calls:
            break
        ran = [
            (it["id"], subprocess.run(it["input"]["command"], shell=True, check=False, capture_output=True))
            for it in calls
        ]
        results = [{"type": "tool_result", "tool_use_id": id_, "content": it.stdout.decode()} for id_, it in ran]
        said.append({"role": "user", "content": results})
    send("".join(part.get("text", "") for part in reply["content"]))


def send(text):
    if API == "telegram":
        post(f"{CHAT}/botK/sendMessage", chat_id=7, text=text)
    elif API == "whatsapp":
        post(f"{CHAT}/v22.0/7/messages", messaging_product="whatsapp", to="15550007", type="text", text={"body": text})
    elif not (told := post(f"{CHAT}/api/chat.postMessage", channel="D7", text=text))["ok"]:
        print("not sent:", told["error"], file=sys.stderr)


def is_signed(headers, body):
    """Whether the vendor sent it; a bot of Telegram does not ask."""
    if API == "slack":
        body = f"v0:{headers['X-Slack-Request-Timestamp']}:".encode() + body
    signed = hmac.new(os.environ["KEY"].encode(), body, hashlib.sha256).hexdigest()
    wanted = {"slack": ("X-Slack-Signature", "v0="), "whatsapp": ("X-Hub-Signature-256", "sha256=")}.get(API)
    return wanted is None or headers[wanted[0]] == wanted[1] + signed


def message_in(update):
    """Its id and its text."""
    if API == "telegram":
        return update["update_id"], update["message"]["text"]
    if API == "slack":
        event = update["event"]
        return update["event_id"] if BUG == "both-events" else event["ts"], event["text"]
    (message,) = update["entry"][0]["changes"][0]["value"]["messages"]
    return message["id"], message["text"]["body"]


def is_left_alone(update):
    """Whether it does not read events of this kind."""
    return BUG == "mentions-only" and update["event"]["type"] != "app_mention"


class Hook(BaseHTTPRequestHandler):
    known, waiting, said, busy = set(), queue.Queue(), [], threading.Event()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        update = json.loads(body)
        id_, text = message_in(update)
        is_new = id_ not in self.known or BUG == "works-again"
        is_new = is_new and not (BUG == "drops" and self.busy.is_set())
        is_new = is_new and not is_left_alone(update)
        if not is_left_alone(update):
            self.known.add(id_)
        if not is_signed(self.headers, body):
            print("an event is not signed", file=sys.stderr)
        elif BUG == "works-first":
            work_on(text, self.said)
        elif is_new:
            self.waiting.put(text)
            if BUG == "queues-twice" and self.busy.is_set():
                self.waiting.put(text)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *words):
        pass


def work():
    while True:
        text = Hook.waiting.get()
        Hook.busy.set()
        try:
            work_on(text, Hook.said)
        except OSError as wrong:
            send(f"Error: {wrong}")
        Hook.busy.clear()


threading.Thread(target=work, daemon=True).start()
ThreadingHTTPServer(("127.0.0.1", int(PORT)), Hook).serve_forever()
