"""A program that is a bot in a chat, by the library that it imports or by how it asks for messages."""

import re
from typing import Final

_TELEGRAM: Final = re.compile(
    r"^\s*(?:from|import)\s+(?:telegram\.ext|aiogram|telebot)\b"
    r"|(?:require\(|from\s+)['\"](?:grammy|telegraf|node-telegram-bot-api)['\"]"
    r"|\bapi\.telegram\.org\b|['\"/]getUpdates\b",
    re.MULTILINE,
)
_SLACK: Final = re.compile(
    r"^\s*(?:from|import)\s+slack_bolt\b|(?:require\(|from\s+)['\"]@slack/bolt['\"]", re.MULTILINE
)
_SOCKET: Final = re.compile(r"SocketMode|socketMode|appToken|app_token|SLACK_APP_TOKEN")
"""It gets its events over a WebSocket, and needs no webhook."""


_DISCORD: Final = re.compile(
    r"^\s*(?:from|import)\s+(?:discord|nextcord|disnake)\b"
    r"|(?:require\(|from\s+)['\"]discord\.js['\"]",
    re.MULTILINE,
)


def bot_of(text: str) -> dict[str, object]:
    """The keys of `chat` beside `start`; empty if the source is no such bot."""
    if _SLACK.search(text):
        webhook = {} if _SOCKET.search(text) else {"webhook": "/slack/events"}
        return {"api": "slack", **webhook, "quiet_s": 1}
    if _DISCORD.search(text):
        return {"api": "discord", "quiet_s": 1}
    return {"quiet_s": 1} if _TELEGRAM.search(text) else {}
