"""An agent that is a service: POST /message with {"text": …} gives {"answer": …} or {"error": …}."""

import json
import os
import sys
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

URL, KEY = os.environ["OPENAI_BASE_URL"] + "/chat/completions", os.environ["OPENAI_API_KEY"]


def ask(text: str) -> str:
    """One call of the model, with a time-out."""
    body = {"model": "gpt-4.1-mini", "messages": [{"role": "user", "content": text}]}
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
    with urllib.request.urlopen(urllib.request.Request(URL, json.dumps(body).encode(), headers), timeout=2) as reply:
        return str(json.load(reply)["choices"][0]["message"]["content"])


class Handler(BaseHTTPRequestHandler):
    """One request is one turn."""

    def do_GET(self) -> None:
        """The health page."""
        self.say({"ok": True})

    def do_POST(self) -> None:
        """A message."""
        text = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"]
        try:
            self.say({"answer": ask(text)})
        except OSError as wrong:
            self.say({"error": f"the model did not answer: {wrong}"}, 502)

    def say(self, reply: dict[str, object], status: int = 200) -> None:
        """Send JSON."""
        body = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
