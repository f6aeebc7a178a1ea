"""The vendor of a chat service by its name in a spec."""

from wedgehog.harness.services.chat.api import ChatApi, ChatEvent
from wedgehog.harness.services.chat.discord import Discord
from wedgehog.harness.services.chat.slack import Slack
from wedgehog.harness.services.chat.telegram import Telegram
from wedgehog.harness.services.chat.whatsapp import WhatsApp


def api_of(vendor: str, key: str, event: ChatEvent = "message", chats: int = 1) -> ChatApi:
    """What the service calls things; `key` signs what comes to a webhook. `event` is that of Slack and Discord.

    `chats`: with so many users.
    """
    if vendor == "slack":
        return Slack(key, event)
    if vendor == "discord":
        return Discord(mention=event != "message", chats=chats)
    return WhatsApp(key) if vendor == "whatsapp" else Telegram()
