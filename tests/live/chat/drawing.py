"""An agent on a terminal: `drawing.py LLM_URL [redraws]`. Standard library only.

With `redraws` it draws an answer anew from its beginning for each further part, as some libraries do. What is higher
than the screen has left it by then, and stays above.
"""

import json
import sys
import urllib.request

URL, BUG = sys.argv[1], sys.argv[-1]
HEADERS = {"content-type": "application/json", "x-api-key": "k", "anthropic-version": "2023-06-01"}
COLUMNS, ROWS, PART = 120, 40, 500


def answered(said):
    body = {"model": "claude-sonnet-4-6", "max_tokens": 4000, "messages": said}
    request = urllib.request.Request(f"{URL}/v1/messages", json.dumps(body).encode(), HEADERS)
    with urllib.request.urlopen(request, timeout=60) as reply:
        return "".join(part.get("text", "") for part in json.load(reply)["content"])


def redraw(answer):
    drawn = 0
    for end in range(PART, len(answer) + PART, PART):
        if drawn:
            print(f"\x1b[{min(drawn, ROWS - 1)}A\x1b[J", end="")
        print(answer[:end])
        drawn = sum(1 + max(0, len(line) - 1) // COLUMNS for line in answer[:end].split("\n"))


def main():
    said = []
    while True:
        try:
            said.append({"role": "user", "content": input("> ")})
        except EOFError:
            return
        answer = answered(said)
        said.append({"role": "assistant", "content": answer})
        (redraw if BUG == "redraws" else print)(answer)


main()
