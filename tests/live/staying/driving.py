"""A sound program that drives another agent: `driving.py URL SESSION MESSAGE|--stays [--bug NAME]`. Standard library.

It starts `staying.py`, an agent that takes JSON lines, reads its events, and shows the answer to its own user: for one
message, for one message after the other as JSON lines (`--stays`), or over HTTP (a port in the place of MESSAGE, with
`--serves`), where a message waits for the one before. A bug: `waits-for-the-end`,
`an-end-is-a-success`, `starts-it-for-ever`, `never-starts-another`, `has-no-timer`, `leaves-it-behind`,
`forgets-what-it-can-not-resume`, `stays-busy`, `begins-a-new-session`, `drops-what-waits`.
"""

# ruff: noqa: PTH100, PTH107, PTH110, PTH118, PTH120, PTH123, PTH208  (as in `sound.py`)

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SILENT_S = 11
"""Longer than the agent below takes for all its tries."""
ENDS_S = 2
BUG = sys.argv[sys.argv.index("--bug") + 1] if "--bug" in sys.argv else ""


class DrivenError(Exception):
    """The agent below gave no answer."""


class Driven:
    """The agent below, started when a message needs it."""

    def __init__(self, url, folder):
        below = os.path.join(os.path.dirname(os.path.abspath(__file__)), "staying.py")
        self.line = [sys.executable, "-S", "-E", below, "lines", url, folder]
        self.process = self.events = None

    def start(self):
        """A new process, whose session is in the same folder."""
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(self.line, stdin=pipe, stdout=pipe, text=True, start_new_session=True)
        self.events = queue.SimpleQueue()
        threading.Thread(target=self._read, args=(self.process.stdout, self.events), daemon=True).start()

    def _read(self, lines, events):
        for line in lines:
            events.put(json.loads(line))
        if BUG != "waits-for-the-end":
            events.put(None)

    def stop(self):
        """Let it stop its tools, then end it."""
        if self.process is None or BUG == "leaves-it-behind":
            return
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.communicate(timeout=ENDS_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def answer(self, message):
        """What it answers to one message. DrivenError."""
        if self.process is None or (self.process.poll() is not None and BUG != "never-starts-another"):
            if self.process is not None and BUG == "begins-a-new-session":
                forget(self.line[-1])
            self.start()
        try:
            self.process.stdin.write(json.dumps({"text": message}) + "\n")
            self.process.stdin.flush()
            return self._until_done()
        except BrokenPipeError:
            raise DrivenError("Error: the agent is not running") from None

    def _until_done(self):
        words = ""
        while True:
            try:
                event = self.events.get(timeout=None if BUG == "has-no-timer" else SILENT_S)
            except queue.Empty:
                self.stop()
                raise DrivenError(f"Error: timeout: the agent said nothing for {SILENT_S} s") from None
            if event is None and BUG == "an-end-is-a-success":
                return words or "Done."
            if event is None:
                self.process.wait()
                raise DrivenError(f"Error: the agent ended with {self.process.returncode} before it had answered")
            if event["type"] == "error":
                raise DrivenError(event["message"])
            if event["type"] == "done":
                return words
            words += event.get("text", "")


def forget(folder):
    """Remove the stored session."""
    for name in os.listdir(folder):
        os.remove(os.path.join(folder, name))


def played(driven, message, folder):
    """Answer, error."""
    busy = os.path.join(folder, "busy")
    if os.path.exists(busy):
        return "", "Error: the agent is busy with another message"
    while True:
        try:
            return driven.answer(message), ""
        except DrivenError as wrong:
            if BUG == "forgets-what-it-can-not-resume":
                forget(folder)
            if BUG == "stays-busy":
                open(busy, "w").close()
            if BUG != "starts-it-for-ever":
                return "", str(wrong)


def served(driven, folder, port):
    """A service: a message waits while another one is worked on."""
    alone, waiting, dropped = threading.Lock(), [], []

    class Front(BaseHTTPRequestHandler):
        def do_GET(self):
            self._say({})

        def do_POST(self):
            text = json.loads(self.rfile.read(int(self.headers["content-length"])))["text"]
            waiting.append(text)
            with alone:
                waiting.remove(text)
                answer, error = ("", "") if text in dropped else played(driven, text, folder)
                if error and BUG == "drops-what-waits":
                    dropped.extend(waiting)
            self._say({"answer": answer, "error": error})

        def _say(self, said):
            body = json.dumps(said).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    ThreadingHTTPServer(("127.0.0.1", port), Front).serve_forever()


def main():
    url, folder, message = sys.argv[1:4]
    driven = Driven(url, folder)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if "--serves" in sys.argv:
            served(driven, folder, int(message))
        if message != "--stays":
            answer, error = played(driven, message, folder)
            print(answer)
            sys.exit(error or None)
        for line in iter(sys.stdin.readline, ""):
            answer, error = played(driven, json.loads(line)["text"], folder)
            if error:
                print(json.dumps({"type": "error", "message": error}), flush=True)
            print(json.dumps({"type": "done", "text": answer}), flush=True)
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        driven.stop()


if __name__ == "__main__":
    main()
