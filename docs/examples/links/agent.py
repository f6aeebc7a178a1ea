"""A small agent, a service, that keeps its conversation in Redis: with a pool of two connections.

python agent.py PORT                  waits for Redis for at most one second, and tries once more
python agent.py PORT --patient        waits for Redis for ever
python agent.py PORT --leak           does not give a connection back after an error
"""

import json
import os
import socket
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

PATIENT, LEAKS = "--patient" in sys.argv, "--leak" in sys.argv
POOL = 2
REDIS_S = None if PATIENT else 1.0
KEY = "conversation"


class Connection:
    """One connection to Redis."""

    def __init__(self) -> None:
        """Connect. Errors: OSError."""
        url = urlsplit(os.environ["REDIS_URL"])
        self.socket = socket.create_connection((url.hostname, url.port), REDIS_S)
        self.lines = self.socket.makefile("rb")

    def ask(self, *words: str) -> Any:
        """One command in Redis's protocol, and its reply."""
        parts = [b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode()) for word in words]
        self.socket.sendall(b"*%d\r\n%s" % (len(parts), b"".join(parts)))
        return self.reply()

    def reply(self) -> Any:
        """The next reply. Errors: OSError."""
        kind, rest = (line := self.lines.readline())[:1], line[1:].strip()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("Redis closed the connection")
        if kind == b"-":
            raise OSError(rest.decode())
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        if kind != b"$":
            return rest.decode()
        text = self.lines.read(int(rest) + 2)
        if len(text) < int(rest) + 2:
            raise ConnectionError("Redis closed the connection")
        return text[:-2].decode()


class Pool:
    """At most `POOL` connections."""

    def __init__(self) -> None:
        """Open none yet."""
        self.room, self.idle = threading.Semaphore(POOL), list[Connection]()

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection, opened if there is none that is idle."""
        if not self.room.acquire(timeout=REDIS_S):
            raise OSError("no connection to Redis is free")
        try:
            connection = self.idle.pop() if self.idle else Connection()
            yield connection
            self.idle.append(connection)
        except BaseException:
            if not LEAKS:
                self.room.release()
            raise
        self.room.release()


POOLED = Pool()


def redis(*words: str) -> Any:
    """One command. A careful agent asks once more on another connection."""
    for last in (True,) if PATIENT or LEAKS else (False, True):
        try:
            with POOLED.connection() as connection:
                return connection.ask(*words)
        except OSError:
            if last:
                raise


def model(messages: list[Any]) -> str:
    """One call of the model."""
    body = json.dumps({"model": "gpt-4.1-mini", "messages": messages}).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)
    with urllib.request.urlopen(request, timeout=20) as reply:
        return str(json.load(reply)["choices"][0]["message"]["content"])


def answer(text: str) -> str:
    """One message of the user."""
    key = f"{KEY}:{os.environ['SESSION']}"
    messages = [json.loads(message) for message in redis("LRANGE", key, "0", "-1")]
    asked = {"role": "user", "content": text}
    said = {"role": "assistant", "content": model([*messages, asked])}
    redis("RPUSH", key, json.dumps(asked), json.dumps(said))
    return said["content"]


class Service(BaseHTTPRequestHandler):
    """`POST /message` with `{"text": …}`."""

    def do_GET(self) -> None:
        """The health page."""
        self._reply(200, {"status": "up"})

    def do_POST(self) -> None:
        """A message."""
        text = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"]
        try:
            self._reply(200, {"answer": answer(text)})
        except OSError as wrong:
            self._reply(500, {"error": f"I cannot answer now: {wrong}"})

    def log_message(self, *_: Any) -> None:
        """Write no log."""

    def _reply(self, status: int, body: dict[str, str]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Service).serve_forever()
