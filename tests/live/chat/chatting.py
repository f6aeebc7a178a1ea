"""A bot that polls its chat: `chatting.py CHAT_URL LLM_URL [BUG …]`. Standard library only.

It keeps the offset of its messages in its head, sends an answer in parts of at most 4,000 characters, tries each
request to the chat again, and gives up a poll that says nothing. With `draft` it first sends a draft, and changes it
while the answer grows; with `types` it shows that it types for as long as it works. Its bugs:

- `in-one`: sends a long answer as one message, and only logs that the chat did not take it
- `the-first`: sends one part and no mark
- `sends-once`: a message that the chat does not take is lost
- `marks-up`: sends the answer as Markdown, and only logs that the chat could not read it
- `tags`: makes its marks HTML tags, also where that tears them, and only logs that the chat could not read it
- `tells`: says to its user what a bug above only logs
- `edits-once`: goes on after an edit that the chat did not take, also after the last one
- `misreads`: with `draft`, takes a last edit that changes nothing for an answer that was not sent
- `must-type`: gives up the turn if it can not show that it writes
- `types-on`: with `types`, never ends that
- `polls-once`: polls no more after an error
- `polls-for-ever`: waits for a silent chat for ever
"""

import contextlib
import html
import http.client
import json
import re
import sys
import threading
import time
import urllib.error
import urllib.request

CHAT, LLM = sys.argv[1:3]
BUGS = frozenset(sys.argv[3:])
HEADERS = {"content-type": "application/json", "x-api-key": "k", "anthropic-version": "2023-06-01"}
CHAT_ID = 7
POLL_S, REQUEST_S, TRIES = 3, 4, 8
FAILURES = (OSError, http.client.HTTPException)


def post(url, timeout_s, **body):
    request = urllib.request.Request(url, json.dumps(body).encode(), HEADERS)
    with urllib.request.urlopen(request, timeout=timeout_s) as reply:
        return json.load(reply)


def chat(method, timeout_s=REQUEST_S, tries=TRIES, **words):
    """The result of one request, which is tried again; a text that the chat can not take raises ValueError."""
    for _ in range(tries - 1):
        try:
            return post(f"{CHAT}/botK/{method}", timeout_s, **words)["result"]
        except urllib.error.HTTPError as refused:
            told = json.load(refused)
            print(f"{method}: {told['description']}", file=sys.stderr)
            if refused.code == 400:
                raise ValueError(told["description"]) from None
            time.sleep(told.get("parameters", {}).get("retry_after", 1))
        except FAILURES as wrong:
            print(f"{method}: {wrong}", file=sys.stderr)
            time.sleep(1)
    return post(f"{CHAT}/botK/{method}", timeout_s, **words)["result"]


def answer_to(said, grows):
    """Read the reply line by line; `grows` gets all of it that has come so far."""
    body = {"model": "claude-sonnet-4-6", "max_tokens": 4000, "messages": said, "stream": True}
    request = urllib.request.Request(f"{LLM}/v1/messages", json.dumps(body).encode(), HEADERS)
    answer = ""
    with urllib.request.urlopen(request, timeout=60) as reply:
        for line in reply:
            if line.startswith(b"data:"):
                answer += json.loads(line[5:]).get("delta", {}).get("text", "")
                grows(answer)
    return answer


class Draft:
    """A message that is changed at most twice in a second."""

    def __init__(self):
        self.id, self.shown, self.at = (
            chat("sendMessage", chat_id=CHAT_ID, text="…")["message_id"],
            "…",
            time.monotonic(),
        )

    def grows(self, answer):
        if time.monotonic() > self.at + 0.5 and answer.strip():
            self.becomes(answer)

    def becomes(self, answer):
        self.at = time.monotonic()
        answer = answer[:4000]
        if answer == self.shown and "misreads" not in BUGS:
            return
        tries = 1 if "edits-once" in BUGS else TRIES
        chat("editMessageText", tries=tries, chat_id=CHAT_ID, message_id=self.id, text=answer)
        self.shown = answer


class Typing:
    """Shows that it types, again and again."""

    def __enter__(self):
        self.over = threading.Event()
        threading.Thread(target=self.repeat, daemon=True).start()

    def repeat(self):
        while not self.over.wait(2):
            chat("sendChatAction", chat_id=CHAT_ID, action="typing")

    def __exit__(self, *_):
        if "types-on" not in BUGS:
            self.over.set()


def tagged(part):
    """Marks as tags: with `***both***` they overlap."""
    part = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", html.escape(part))
    return re.sub(r"\*(.+?)\*", r"<i>\1</i>", part)


def handle(text, said):
    tries = 1 if "sends-once" in BUGS else TRIES
    try:
        chat("sendChatAction", tries=1, chat_id=CHAT_ID, action="typing")
    except FAILURES:
        if "must-type" in BUGS:
            raise
    said.append({"role": "user", "content": text})
    draft = Draft() if "draft" in BUGS else None
    answer = answer_to(said, draft.grows if draft else lambda so_far: None)
    said.append({"role": "assistant", "content": answer})
    if draft is not None:
        draft.becomes(answer)
        if "misreads" in BUGS:
            try:
                draft.becomes(answer)
            except ValueError:
                chat("sendMessage", chat_id=CHAT_ID, text="(No response)")
        answer = answer[4000:]
    size = len(answer) if "in-one" in BUGS else 4000
    parts = [answer[at : at + size] for at in range(0, len(answer), size)]
    more = {"parse_mode": "Markdown"} if "marks-up" in BUGS else {}
    if "tags" in BUGS:
        parts, more = [tagged(part) for part in parts], {"parse_mode": "HTML"}
    for part in parts[:1] if "the-first" in BUGS else parts:
        chat("sendMessage", tries=tries, chat_id=CHAT_ID, text=part, **more)


def main():
    said, offset = [], 0
    tries, wait_s = (1 if "polls-once" in BUGS else 100), (None if "polls-for-ever" in BUGS else POLL_S + 2)
    while True:
        for update in chat("getUpdates", timeout_s=wait_s, tries=tries, offset=offset, timeout=POLL_S):
            offset = update["update_id"] + 1
            try:
                with Typing() if "types" in BUGS else contextlib.nullcontext():
                    handle(update["message"]["text"], said)
            except (*FAILURES, ValueError) as wrong:
                print("not answered:", wrong, file=sys.stderr)
                if "tells" in BUGS:
                    chat("sendMessage", chat_id=CHAT_ID, text=f"Error: {wrong}")


try:
    main()
except FAILURES as wrong:
    print("no more polls:", wrong, file=sys.stderr)
    while True:
        time.sleep(60)
