"""The specimen's chat: a loop of long polls, and the messages it sends back. (`main.js`, `telegram.js`.)"""

import contextlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from web import NETWORK_ERRORS, Http

POLL_S = 30
POLL_SLACK_S = 10.0
SEND_S = 30.0
BACK_OFF_S = (1.0, 2.0)
"""Pauses between tries to send, and after a failed poll."""

Json = dict[str, Any]


class ChatError(Exception):
    """The chat service refused."""


class Chat:
    """One bot's messages. Every request uses the HTTP function with the one timer."""

    def __init__(self, web: Http, fixes: frozenset[str], *, url: str, key: str) -> None:
        """The fix here is retry-network-errors: a lost message is sent again."""
        self._web, self._url, self._key = web, url, key
        self._retried_errors = NETWORK_ERRORS if "retry-network-errors" in fixes else ()

    def serve(self, answer: Callable[[str], str]) -> None:
        """Poll without end, and answer one message after another."""
        offset = 0
        while True:
            try:
                updates = self._call("getUpdates", {"offset": offset, "timeout": POLL_S}, POLL_S + POLL_SLACK_S)
            except (*NETWORK_ERRORS, ChatError) as error:
                print(f"[Poll] {error}", file=sys.stderr)
                time.sleep(self._web.pace.real_s(BACK_OFF_S[0]))
                continue
            for update in updates:
                offset = update["update_id"] + 1
                self._handle(update["message"], answer)

    def _handle(self, message: Json, answer: Callable[[str], str]) -> None:
        chat = message["chat"]["id"]
        try:
            self._send(chat, answer(message["text"]))
        except Exception as error:
            # The only handler of the original: every exception becomes a chat message.
            print(f"Error: {error}", file=sys.stderr)
            with contextlib.suppress(*NETWORK_ERRORS, ChatError):
                self._send(chat, f"Error: {error}")

    def _send(self, chat: int, text: str) -> None:
        for pause_s in BACK_OFF_S:
            try:
                self._call("sendMessage", {"chat_id": chat, "text": text}, SEND_S)
                return
            except self._retried_errors:
                time.sleep(self._web.pace.real_s(pause_s))
        self._call("sendMessage", {"chat_id": chat, "text": text}, SEND_S)

    def _call(self, method: str, body: Json, timeout_s: float) -> Any:
        headers = {"Content-Type": "application/json"}
        url = f"{self._url}/bot{self._key}/{method}"
        response = self._web.request("POST", url, body=json.dumps(body).encode(), headers=headers, timeout_s=timeout_s)
        if response.status != 200:
            raise ChatError(f"chat error: {response.status}")
        return json.loads(response.body)["result"]
