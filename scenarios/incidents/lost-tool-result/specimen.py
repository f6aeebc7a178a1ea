"""Specimen of the incident *lost-tool-result*: a gateway whose sessions wait for the results of their tool calls.

    python specimen.py --fixes none --time-scale 60 --session DIR --url http://127.0.0.1:8000 --key K --port 9000

``POST /message`` takes ``{"session": …, "text": …}`` and replies ``{"answer": …}``, with status 500 ``{"error": …}``.
``GET /status?session=…`` says whether the session is *running* or *idle*. A lane answers the messages of a session one
after the other. All state is in ``DIR/<session>.jsonl``. Durations are divided by ``--time-scale``.
"""

import argparse
import json
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from exec_tool import Exec
from loop import Loop
from model import Model
from session import Session

FIXES = ("guard-at-load", "exec-deadline", "background-returns")
TYPING_TTL_S = 120.0

Json = dict[str, Any]


class Lane:
    """One session: its own thread answers its messages one after the other."""

    def __init__(self, loop: Loop, typing_ttl_s: float) -> None:
        self._loop = loop
        self._typing_ttl_s = typing_ttl_s
        self._thread = ThreadPoolExecutor(1)
        self._unanswered = 0

    @property
    def status(self) -> str:
        return "running" if self._unanswered else "idle"

    def say(self, text: str, reader_left: Callable[[], bool]) -> str:
        """The answer, without a time limit; the user sees a typing indicator until its TTL. Errors: the loop's."""
        typing = threading.Timer(self._typing_ttl_s, _log, ["typing TTL reached (2m); stopping typing indicator"])
        typing.daemon = True
        typing.start()
        self._unanswered += 1
        try:
            return self._thread.submit(self._answered, text, reader_left).result()
        finally:
            typing.cancel()

    def _answered(self, text: str, reader_left: Callable[[], bool]) -> str:
        """The answer, in the lane's thread: when a message has its answer, all before it count as answered."""
        try:
            return self._loop.answer(text, reader_left)
        finally:
            self._unanswered -= 1


class Gateway(ThreadingHTTPServer):
    """The lanes of all sessions, over HTTP."""

    daemon_threads = True

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._lanes: dict[str, Lane] = {}
        self._opening = threading.Lock()
        super().__init__(("127.0.0.1", options.port), Handler)

    def lane(self, name: str) -> Lane:
        with self._opening:
            if name not in self._lanes:
                self._lanes[name] = self._open(name)
            return self._lanes[name]

    def _open(self, name: str) -> Lane:
        options = self._options
        session = Session(options.session / f"{Path(name).name}.jsonl")
        tool = Exec(session, options.fixes, pipe=options.pipe, time_scale=options.time_scale)
        loop = Loop(session, Model(options.url, options.key), tool, options.fixes, options.time_scale)
        return Lane(loop, TYPING_TTL_S / options.time_scale)


class Handler(BaseHTTPRequestHandler):
    server: Gateway

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        if asked.path == "/status":
            name = parse_qs(asked.query)["session"][0]
            self._reply(200, {"session": name, "status": self.server.lane(name).status})
        else:
            self._reply(200, {"ok": True})

    def do_POST(self) -> None:
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            self._reply(200, {"answer": self.server.lane(said["session"]).say(said["text"], self._reader_left)})
        except ConnectionError:
            _log("the answer came too late: its reader has left")
        except Exception as error:
            self._reply(500, {"error": f"{type(error).__name__}: {error}"})

    def _reader_left(self) -> bool:
        try:
            return not self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def _reply(self, status: int, data: Json) -> None:
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Requests are not logged."""


def _log(words: str) -> None:
    print(f"{datetime.now().astimezone().isoformat(timespec='seconds')}: {words}", file=sys.stderr, flush=True)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="specimen of the incident lost-tool-result")
    parser.add_argument("--fixes", default="none", help=f"joined by commas: {', '.join(FIXES)}")
    parser.add_argument("--time-scale", type=float, default=1.0)
    parser.add_argument("--session", type=Path, required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--pipe", default="", help="an executable that carries the exec host's stdin and stdout")
    options = parser.parse_args(argv)
    options.fixes = frozenset(options.fixes.split(",")) - {"none"}
    if unknown := options.fixes.difference(FIXES):
        parser.error(f"no such fix: {', '.join(sorted(unknown))}")
    return options


if __name__ == "__main__":
    Gateway(parse(sys.argv[1:])).serve_forever()
