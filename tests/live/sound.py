"""A sound agent: its session is a file of lines, read back and repaired at the start of every message.

`sound.py URL SESSION MESSAGE` plays one message; `sound.py URL SESSION --serve PORT` is the same agent as a service,
which takes one message at a time. Standard library only.
"""

# Many tests start this program for each message, and `pathlib` takes as long to import as all the rest.
# ruff: noqa: PTH105, PTH110, PTH118, PTH123

import fcntl
import json
import os
import sys

from plain_http import post

SHELL = {
    "name": "bash",
    "description": "Runs a shell command.",
    "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
}
LOST = "The process ended before this tool call did; its result is lost."
SAID = "The process ended before an answer was there."


class Session:
    """Messages, one a line."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "messages.jsonl")
        self.messages = list(self._read())
        self._repair()

    def _read(self):
        if not os.path.exists(self.path):
            return
        whole = b""
        with open(self.path, "rb") as file:
            for line in file:
                try:
                    yield json.loads(line)
                except ValueError:
                    break
                whole += line if line.endswith(b"\n") else line + b"\n"
        with open(self.path + ".new", "wb") as fresh:
            fresh.write(whole)
        os.replace(self.path + ".new", self.path)

    def _repair(self):
        """A tool call without a result, a question without an answer: neither is left as it was."""
        last = self.messages[-1] if self.messages else None
        if last is None or (last["role"] == "assistant" and not calls_of(last)):
            return
        if last["role"] == "assistant":
            self.add("user", [result(call, LOST, error=True) for call in calls_of(last)])
        self.add("assistant", [{"type": "text", "text": SAID}])

    def add(self, role, content):
        self.messages.append({"role": role, "content": content})
        with open(self.path, "a") as file:
            file.write(json.dumps(self.messages[-1]) + "\n")
            file.flush()
            os.fsync(file.fileno())


def calls_of(message):
    return [part for part in message["content"] if isinstance(part, dict) and part["type"] == "tool_use"]


def result(call, text, *, error=False):
    return {"type": "tool_result", "tool_use_id": call["id"], "content": text, "is_error": error}


def ask(url, messages):
    """One streamed reply, put together."""
    body = {"model": "m", "max_tokens": 999, "stream": True, "tools": [SHELL], "messages": messages}
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
    blocks, ended = [], False
    with post(url + "/v1/messages", body, headers, timeout_s=30) as reply:
        for line in reply:
            if not line.startswith(b"data:"):
                continue
            event = json.loads(line[5:])
            if event["type"] == "content_block_start":
                blocks.append({**event["content_block"], "raw": ""})
            elif event["type"] == "content_block_delta":
                delta = event["delta"]
                blocks[-1]["raw"] += delta.get("text", "") + delta.get("partial_json", "")
            ended = ended or event["type"] == "message_stop"
    if not ended:
        raise OSError("the stream ended before the message did")
    return [whole(block) for block in blocks]


def whole(block):
    raw = block.pop("raw")
    return {**block, "text": raw} if block["type"] == "text" else {**block, "input": json.loads(raw or "{}")}


def run(call):
    import subprocess

    ran = subprocess.run(["sh", "-c", call["input"]["command"]], capture_output=True, text=True, check=False)
    return result(call, ran.stdout + ran.stderr, error=ran.returncode != 0)


def answered(url, folder, message):
    """One message at a time, though other processes have theirs."""
    with open(os.path.join(folder, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return played(url, Session(folder), message)


def played(url, session, message):
    session.add("user", message)
    while True:
        content = ask(url, session.messages)
        session.add("assistant", content)
        calls = calls_of({"content": content})
        if not calls:
            return "".join(part["text"] for part in content)
        session.add("user", [run(call) for call in calls])


def serve(url, folder, port):
    import http.server
    import threading

    alone = threading.Lock()

    class Service(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.reply(200, "ready")

        def do_POST(self):
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))["message"]
            try:
                with alone:
                    self.reply(200, answered(url, folder, message))
            except OSError as wrong:
                self.reply(502, f"Error: {wrong}")

        def reply(self, status, text):
            data = text.encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    http.server.ThreadingHTTPServer(("127.0.0.1", port), Service).serve_forever()


def call(message, *, session_dir, llm_url, key):
    """The same agent as a Python function."""
    return answered(llm_url, session_dir, message)


if __name__ == "__main__":
    if sys.argv[3] == "--serve":
        serve(sys.argv[1], sys.argv[2], int(sys.argv[4]))
    try:
        print(answered(*sys.argv[1:]))
    except OSError as wrong:
        sys.exit(f"Error: {wrong}")
