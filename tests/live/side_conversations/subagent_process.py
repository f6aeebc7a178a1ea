"""An agent with a process for each subagent, for which it waits: `subagent_process.py HOW URL FOLDER TEXT`.

HOW is `sound`, `again` (correct: a subagent whose process has died is begun once more), `in-one` (correct: a subagent
has no process), or a bug: `polls` (it waits for the last words in a file), `believes` (what a dead subagent has printed
is its result), `reads-on` (it waits for the end of the output, which a helper of the subagent holds open; `looks` does
not, and is correct). Standard library only.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

from process_model import asked, tools

TOOLS = tools()
HOW, URL, FOLDER, WORDS = sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4]


def ran(call):
    if call["name"] == "bash":
        command = ["sh", "-c", call["input"]["command"]]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    if HOW == "in-one":
        return talked([{"role": "user", "content": call["input"]["prompt"]}])
    words = FOLDER / "words.txt"
    words.unlink(missing_ok=True)
    kind = "subagent with a helper" if HOW in ("reads-on", "looks") else "subagent"
    line = [sys.executable, "-S", "-E", __file__, kind, URL, str(FOLDER), call["input"]["prompt"]]
    if HOW == "polls":
        subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not words.exists():
            time.sleep(0.1)
        return words.read_text()
    if HOW == "looks":
        subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).wait()
        return words.read_text() if words.exists() else "Error: the process of the subagent has ended"
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode and HOW == "again":
        done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode and HOW != "believes":
        return f"Error: the process of the subagent ended with {done.returncode}"
    return done.stdout


def talked(said):
    while True:
        parts = asked(URL, said, TOOLS)
        said.append({"role": "assistant", "content": parts})
        calls = [part for part in parts if part["type"] == "tool_use"]
        if not calls:
            return "".join(part["text"] for part in parts if part["type"] == "text")
        results = [{"type": "tool_result", "tool_use_id": call["id"], "content": ran(call)} for call in calls]
        said.append({"role": "user", "content": results})


if HOW.startswith("subagent"):
    if HOW.endswith("helper"):
        subprocess.Popen(["sleep", "60"])
    said = talked([{"role": "user", "content": WORDS}])
    part = FOLDER / "words.part"
    part.write_text(said)
    part.rename(FOLDER / "words.txt")
    print(said)
else:
    session = FOLDER / "session.json"
    messages = json.loads(session.read_text()) if session.exists() else []
    messages.append({"role": "user", "content": WORDS})
    answer = talked(messages)
    session.write_text(json.dumps(messages))
    print(answer)
