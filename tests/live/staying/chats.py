"""A sound agent with several chats in one process: `chats.py URL FOLDER [--bug mixes|one-at-a-time]`.

It speaks the Agent Client Protocol: a thread and a folder for each session. Standard library only.
"""

# ruff: noqa: PTH118  (as in `sound.py`)

import json
import os
import sys
import threading

from sound import Session
from staying import ModelError, played

URL, FOLDER = sys.argv[1:3]
BUG = sys.argv[-1] if "--bug" in sys.argv else ""
WRITES, WORKS, STOPPED = threading.Lock(), threading.Lock(), set()


def send(**words):
    with WRITES:
        print(json.dumps({"jsonrpc": "2.0", **words}), flush=True)


def folder_of(name):
    """The bug `mixes`: the conversation of the last session that was opened is that of all."""
    path = os.path.join(FOLDER, "all" if BUG == "mixes" else name)
    os.makedirs(path, exist_ok=True)  # noqa: PTH103
    return path


def turn(number, name, text):
    """One message. The bug `one-at-a-time`: a session waits for the turn of another one."""
    STOPPED.discard(name)
    with WORKS if BUG == "one-at-a-time" else threading.Lock():
        try:
            answer = played(URL, Session(folder_of(name)), text)
        except (ModelError, OSError) as wrong:
            send(id=number, error={"code": -32000, "message": f"Error: {wrong}"})
            return
    if name not in STOPPED:
        chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": answer}}
        send(method="session/update", params={"sessionId": name, "update": chunk})
    send(id=number, result={"stopReason": "cancelled" if name in STOPPED else "end_turn"})


def main():
    count = 0
    for line in sys.stdin:
        asked = json.loads(line)
        method, number, params = asked.get("method"), asked.get("id"), asked.get("params") or {}
        name = params.get("sessionId")
        if method == "initialize":
            send(id=number, result={"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
        elif method == "session/new":
            count += 1
            send(id=number, result={"sessionId": f"{os.getpid()}-{count}"})
        elif method == "session/load":
            send(id=number, result={})
        elif method == "session/prompt":
            text = "".join(part["text"] for part in params["prompt"])
            threading.Thread(target=turn, args=(number, name, text), daemon=True).start()
        elif method == "session/cancel":
            STOPPED.add(name)


main()
