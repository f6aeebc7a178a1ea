"""A sound agent that stays: `staying.py lines|acp|tui URL SESSION [--asks] [--bug NAME[,NAME]]`. Standard library only.

It takes messages as JSON lines, over the Agent Client Protocol, or at a prompt in a terminal. With `--asks` it asks
its user before each command; over the Agent Client Protocol it always does. A turn is stopped by SIGINT, or by
`session/cancel`; the process stays. A bug: `stale-lock`, `ends-without-a-word`, `shares-its-terminal`,
`waits-for-a-result-of-a-denied-call`, `runs-what-is-denied`, `waits-for-a-yes`, `question-stays-open`,
`dies-of-always`, `says-it-whole-again`, `waits-for-a-lost-answer`, `tools-inherit-its-lock`, `one-session-for-all`,
`one-yes-for-all`.
"""

# ruff: noqa: PTH103, PTH108, PTH110, PTH118, PTH123  (as in `sound.py`)

import json
import os
import queue
import signal
import sys
import threading
import time

from plain_http import StatusError, post
from sound import SHELL, Session, calls_of, result, whole

IDLE_S, TOTAL_S, TOOL_S, WAITS_S = 3, 12, 15, (0.2, 0.6)
ROUNDS, RESULT_CHARS = 12, 3000
ASKS = "--asks" in sys.argv
BUGS = set(sys.argv[sys.argv.index("--bug") + 1].split(",") if "--bug" in sys.argv else ())


class ModelError(Exception):
    """The model gave no whole reply."""


# ---- one turn


def ask(url, messages):
    """One reply, with two more tries; an error that another try does not mend is told at once."""
    for wait_s in (*WAITS_S, None):
        try:
            return streamed(url, messages)
        except StatusError as wrong:
            told = f"Error: HTTP {wrong.code}: {wrong.body[:300].decode(errors='replace')}"
            later_s = float(wrong.headers.get("retry-after") or 0)
            if wait_s is None or later_s > 2 or (wrong.code < 500 and wrong.code not in (408, 409, 429)):
                raise ModelError(told) from None
            time.sleep(max(wait_s, later_s))
        except (OSError, ValueError, KeyError, IndexError) as wrong:
            if wait_s is None:
                raise ModelError(f"Error: connection lost: {type(wrong).__name__}: {wrong}") from None
            time.sleep(wait_s)
    raise AssertionError


def streamed(url, messages):
    body = {"model": "m", "max_tokens": 999, "stream": True, "tools": [SHELL], "messages": messages}
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
    blocks, stop, until_s = [], None, time.monotonic() + TOTAL_S
    with post(url + "/v1/messages", body, headers, timeout_s=IDLE_S) as reply:
        for line in reply:
            if time.monotonic() > until_s:
                raise OSError("timed out")
            if not line.startswith(b"data:"):
                continue
            event = json.loads(line[5:])
            if event["type"] == "content_block_start":
                blocks.append({**event["content_block"], "raw": ""})
            elif event["type"] == "content_block_delta":
                blocks[-1]["raw"] += event["delta"].get("text", "") + event["delta"].get("partial_json", "")
            elif event["type"] == "message_delta":
                stop = event["delta"].get("stop_reason")
            elif event["type"] == "error":
                raise OSError(event["error"]["message"])
            elif event["type"] == "message_stop":
                return checked([read(block) for block in blocks], stop)
    raise OSError("the stream ended early")


def read(block):
    """A block; a call whose arguments are no JSON object keeps them as text."""
    try:
        found = whole(dict(block))
        if isinstance(found.get("input", {}), dict):
            return found
    except ValueError:
        pass
    return {**{key: value for key, value in block.items() if key != "raw"}, "input": {"unreadable": block["raw"]}}


def checked(blocks, stop):
    if stop == "max_tokens":
        raise ModelError("Error: the reply was truncated at max_tokens")
    if stop == "refusal":
        raise ModelError("Error: the model refused")
    if not any(block["type"] == "tool_use" or block.get("text", "").strip() for block in blocks):
        raise OSError("the reply was empty")
    return [block for block in blocks if block["type"] == "tool_use" or block.get("text", "").strip()]


def run(call, allowed):
    """Run a command in its own process group, with its output in a file: whatever it leaves behind holds nothing."""
    import subprocess
    import tempfile

    command = call["input"].get("command")
    if call["name"] != "bash" or not isinstance(command, str):
        return result(call, f"Error: no tool {call['name']} with these arguments", error=True)
    if not allowed(call):
        if "waits-for-a-result-of-a-denied-call" in BUGS:
            threading.Event().wait()
        if "runs-what-is-denied" in BUGS:
            subprocess.run(["sh", "-c", command], check=False, capture_output=True)
        return result(call, "Error: not permitted", error=True)
    stdin = None if "shares-its-terminal" in BUGS else subprocess.DEVNULL
    inherits = "tools-inherit-its-lock" in BUGS
    with tempfile.TemporaryFile() as out:
        own_group = "shares-its-terminal" not in BUGS
        tool = subprocess.Popen(
            ["sh", "-c", command],
            stdin=stdin,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=own_group,
            close_fds=not inherits,
        )
        try:
            code = tool.wait(None if BUGS else TOOL_S)
            told = f" (exit code {code})" if code else ""
        except subprocess.TimeoutExpired:
            code, told = -1, f" (stopped after {TOOL_S} s)"
        finally:
            if tool.poll() is None:
                (os.killpg if own_group else os.kill)(tool.pid, signal.SIGKILL)
                tool.wait()
        out.seek(0)
        text = out.read().decode(errors="replace")
    if len(text) > RESULT_CHARS:
        text = f"{text[: RESULT_CHARS // 2]}\n[…]\n{text[-RESULT_CHARS // 2 :]}"
    return result(call, text + told, error=code != 0)


def played(url, session, message, allowed=lambda call: True):
    """The answer to one message."""
    session.add("user", message)
    ids = {call["id"] for said in session.messages if said["role"] == "assistant" for call in calls_of(said)}
    for _ in range(ROUNDS):
        content = ask(url, session.messages)
        for call in calls_of({"content": content}):
            while call["id"] in ids:
                call["id"] += "x"
            ids.add(call["id"])
        session.add("assistant", content)
        calls = calls_of({"content": content})
        if not calls:
            return "".join(part["text"] for part in content)
        session.add("user", [run(call, allowed) for call in calls])
    raise ModelError(f"Error: stopped after {ROUNDS} rounds of tools")


class Turns:
    """One turn at a time, which SIGINT stops; between turns SIGINT does nothing."""

    def __init__(self, url, folder):
        self.url, self.folder, self.at_work = url, folder, False
        signal.signal(signal.SIGINT, self._stop)
        if "stale-lock" in BUGS:
            self._lock_for_life()

    def _stop(self, *_):
        if self.at_work:
            self.at_work = False
            raise KeyboardInterrupt

    def _lock_for_life(self):
        """The bug: the file outlives a process that is killed, and the next one waits for it."""
        lock = os.path.join(self.folder, "in-use")
        while os.path.exists(lock):
            time.sleep(0.1)
        open(lock, "w").close()

    def play(self, message, allowed=lambda call: True):
        """Answer, error, whether it was stopped."""
        try:
            self.at_work = True
            with one_at_a_time(self.folder):
                answer = played(self.url, Session(self.folder), message, allowed)
            self.at_work = False
        except ModelError as wrong:
            self.at_work = False
            return "", str(wrong), False
        except OSError as wrong:
            self.at_work = False
            return "", f"Error: {wrong}", False
        except KeyboardInterrupt:
            return "", "", True
        return answer, "", False


def one_at_a_time(folder):
    import contextlib
    import fcntl

    @contextlib.contextmanager
    def locked():
        with open(os.path.join(folder, "lock"), "w") as lock:
            os.set_inheritable(lock.fileno(), "tools-inherit-its-lock" in BUGS)
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    return locked()


# ---- the three ways to talk to it


def lines(turns):
    say(type="ready")
    for line in iter(sys.stdin.readline, ""):
        answer, error, stopped = turns.play(json.loads(line)["text"], asked_in_lines)
        for part in answer.splitlines(keepends=True):
            say(type="delta", text=part)
        if error:
            say(type="error", message=error)
        say(type="done", stopped=stopped)


def asked_in_lines(call):
    """The user's answer to a line that asks; the end of stdin is a no."""
    if not ASKS:
        return True
    say(type="ask", question={"id": call["id"], "command": call["input"]["command"]})
    reply = json.loads(sys.stdin.readline() or "{}")
    return reply.get("id") == call["id"] and reply.get("allow")


def asked_on_the_screen(call):
    """The user's answer to a prompt."""
    return not ASKS or input(f"May I run {call['input']['command'][:20]!r}? [y/n] ") == "y"


def say(**words):
    print(json.dumps(words), flush=True)


def tui(turns):
    while True:
        try:
            message = input("\r\x1b[K> ")
        except EOFError:
            return
        print("\x1b[2mworking …\x1b[0m", end="", flush=True)
        answer, error, stopped = turns.play(message, asked_on_the_screen)
        print("\r\x1b[K" + ("(stopped)" if stopped else answer or f"\x1b[31m{error}\x1b[0m"), flush=True)


class Protocol:
    """The Agent Client Protocol: a thread reads, the main thread plays the turns.

    Each further session is a process of its own below this one (`--session s2`), which gets its lines: a turn that
    waits for its model holds up no other session.
    """

    def __init__(self, turns):
        self.turns, self.asked, self.answers = turns, queue.SimpleQueue(), {}
        self.name = sys.argv[sys.argv.index("--session") + 1] if "--session" in sys.argv else "s1"
        self.others, self.sessions = {}, 0
        self.count = int(self.name[1:]) * 1000
        self.agreed = False
        self.open, self.question = False, os.path.join(turns.folder, "question")
        if self.name != "s1":
            import ctypes

            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it ends with the agent

    def serve(self):
        threading.Thread(target=self._read, daemon=True).start()
        while (request := self.asked.get()) is not None:
            self._send(id=request["id"], **self._reply(request["method"], request.get("params") or {}))

    def _read(self):
        for line in sys.stdin:
            words = json.loads(line)
            if (other := self._other(words)) is not None:
                other.stdin.write(line.encode())
                other.stdin.flush()
            elif words.get("method") == "session/cancel":
                if self.turns.at_work:
                    os.kill(os.getpid(), signal.SIGINT)
            elif "method" in words:
                self.asked.put(words)
            else:
                self.answers[words["id"]].put(words.get("result") or {})
        self.asked.put(None)

    def _other(self, words):
        """The process of the session that a line is for; None if it is this one."""
        method, name = words.get("method"), (words.get("params") or {}).get("sessionId")
        if self.name != "s1" or "one-session-for-all" in BUGS:
            return None
        if method == "session/new":
            name = f"s{self.sessions + 1}"
        elif method is None:
            name = f"s{words['id'] // 1000}"
        if name in (None, "s1"):
            self.sessions = max(self.sessions, name is not None)
            return None
        self.sessions = max(self.sessions, int(name[1:]))
        if name not in self.others:
            self.others[name] = self._started(name)
        return self.others[name]

    def _started(self, name):
        import subprocess

        folder = os.path.join(self.turns.folder, name)
        os.makedirs(folder, exist_ok=True)
        line = [sys.executable, "-S", "-E", __file__, "acp", self.turns.url, folder, *sys.argv[4:], "--session", name]
        return subprocess.Popen(line, stdin=subprocess.PIPE)

    def _reply(self, method, params):
        if method == "initialize":
            return {"result": {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}}
        if method in ("session/new", "session/load"):
            return {"result": {"sessionId": self.name} if method == "session/new" else {}}
        if method != "session/prompt":
            return {"error": {"code": -32601, "message": f"no method {method}"}}
        if self.open or ("waits-for-a-lost-answer" in BUGS and os.path.exists(self.question)):
            threading.Event().wait()
        text = "".join(part["text"] for part in params["prompt"])
        answer, error, stopped = self.turns.play(text, self._allowed)
        if error and "ends-without-a-word" not in BUGS:
            return {"error": {"code": -32000, "message": error}}
        parts = answer.splitlines(keepends=True)
        for part in [*parts, *([answer] if "says-it-whole-again" in BUGS else [])]:
            chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": part}}
            self._send(method="session/update", params={"sessionId": self.name, "update": chunk})
        return {"result": {"stopReason": "cancelled" if stopped else "end_turn"}}

    def _allowed(self, call):
        """Ask the user."""
        if "one-yes-for-all" in BUGS and self.agreed:
            return True
        chosen = self._asked(call)
        self.agreed = chosen == "yes"
        while "waits-for-a-yes" in BUGS and chosen not in ("yes", "always"):
            time.sleep(0.2)
            chosen = self._asked(call)
        if "dies-of-always" in BUGS and chosen == "always":
            os._exit(1)
        return chosen in ("yes", "always")

    def _asked(self, call):
        """The option that the user chose, None if the request was cancelled."""
        self.count += 1
        answer = self.answers[self.count] = queue.SimpleQueue()
        kinds = {"yes": "allow_once", "always": "allow_always", "no": "reject_once"}
        options = [{"optionId": option, "name": option, "kind": kind} for option, kind in kinds.items()]
        tool = {"toolCallId": call["id"], "title": "bash"}
        params = {"sessionId": self.name, "toolCall": tool, "options": options}
        self._send(id=self.count, method="session/request_permission", params=params)
        open(self.question, "w").close()
        self.open = "question-stays-open" in BUGS
        chosen = answer.get().get("outcome", {}).get("optionId")
        self.open = False
        os.unlink(self.question)
        return chosen

    def _send(self, **words):
        print(json.dumps({"jsonrpc": "2.0", **words}), flush=True)


if __name__ == "__main__":
    way, turns = sys.argv[1], Turns(*sys.argv[2:4])
    {"lines": lines, "tui": tui, "acp": lambda turns: Protocol(turns).serve()}[way](turns)
