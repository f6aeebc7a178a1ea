"""An agent with a process for each message, and one for each subagent: `background_process.py HOW URL FOLDER TEXT`.

HOW is `waits` (correct: it ends after its subagents, and keeps what they said), `ends them` (correct: they end with
it), `detaches` (correct: they go on, and the next message brings what they said), or a bug: `leaves orphans`, whose
words nothing reads.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from process_model import asked, tools

TOOLS = tools(background={"type": "boolean"})
HOW, URL, FOLDER, WORDS = sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4]
CHILDREN = []


def ran(call):
    if call["name"] == "bash":
        return subprocess.run(
            ["sh", "-c", call["input"]["command"]], capture_output=True, text=True, check=False
        ).stdout
    line = [sys.executable, "-S", "-E", __file__, f"worker of {HOW}", URL, str(FOLDER), call["input"]["prompt"]]
    apart = HOW in ("detaches", "leaves orphans")
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    CHILDREN.append(subprocess.Popen(line, start_new_session=apart, **quiet))
    return "It was launched. You will hear of it."


def talked(said):
    while True:
        parts = asked(URL, said, TOOLS)
        said.append({"role": "assistant", "content": parts})
        calls = [part for part in parts if part["type"] == "tool_use"]
        if not calls:
            return "".join(part["text"] for part in parts if part["type"] == "text")
        results = [{"type": "tool_result", "tool_use_id": call["id"], "content": ran(call)} for call in calls]
        said.append({"role": "user", "content": results})


def works():
    try:
        words = talked([{"role": "user", "content": WORDS}])
    except OSError as wrong:
        words = f"It failed: {wrong}"
    if HOW != "worker of leaves orphans":
        (FOLDER / f"news-{os.getpid()}").write_text(f"Your subagent has ended: {words}")


def answers():
    file = FOLDER / "said.json"
    said = json.loads(file.read_text()) if file.exists() else []
    news = [it.read_text() for it in FOLDER.glob("news-*")]
    for it in FOLDER.glob("news-*"):
        it.unlink()
    said.append({"role": "user", "content": "\n".join([*news, WORDS])})
    file.write_text(json.dumps(said[:-1]))
    print(talked(said), flush=True)
    file.write_text(json.dumps(said))
    for child in CHILDREN:
        if HOW == "waits":
            child.wait()
        elif HOW == "ends them":
            time.sleep(0.7)
            child.kill()


def stopped(number, frame):
    for child in CHILDREN:
        if HOW in ("waits", "ends them", "detaches"):
            child.kill()
    sys.exit(130)


if HOW.startswith("worker"):
    works()
else:
    signal.signal(signal.SIGINT, stopped)
    answers()
