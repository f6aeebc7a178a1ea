"""When messages of a chat were written: bots leave out old ones, and libraries look for commands."""

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest

from wedgehog.harness.services.chat.discord import Discord
from wedgehog.harness.services.chat.slack import Slack
from wedgehog.harness.services.chat.telegram import Telegram
from wedgehog.harness.services.chat.whatsapp import WhatsApp


def _of_telegram(event: Mapping[str, Any]) -> float:
    return float(event["message"]["date"])


def _of_slack(event: Mapping[str, Any]) -> float:
    return float(event["event"]["ts"])


def _of_whatsapp(event: Mapping[str, Any]) -> float:
    return float(event["entry"][0]["changes"][0]["value"]["messages"][0]["timestamp"])


def _of_discord(event: Mapping[str, Any]) -> float:
    written_s = datetime.fromisoformat(event["timestamp"]).timestamp()
    assert abs(((int(event["id"]) >> 22) + 1_420_070_400_000) / 1000 - written_s) < 0.01
    return written_s


@pytest.mark.parametrize(
    ("api", "moment"),
    [(Telegram(), _of_telegram), (Slack("x"), _of_slack), (WhatsApp("x"), _of_whatsapp), (Discord(), _of_discord)],
)
def test_a_message_is_of_now_and_the_same_when_it_comes_again(api: Any, moment: Any):
    """A bot that leaves out messages from before its start takes this one, and knows it again."""
    first = api.event(1, "Hello")
    assert abs(moment(first) - time.time()) < 60
    assert api.event(1, "Hello") == first
    assert moment(api.event(2, "And?")) >= moment(first)


def test_messages_in_slack_have_growing_times():
    """A bot that reads a channel from the last time on misses none."""
    slack = Slack("x")
    times = [
        slack.event(1, "Hello")["event"]["ts"],
        slack.took("Hi", 100).body["ts"],
        slack.event(2, "And?")["event"]["ts"],
    ]
    assert times == sorted(set(times)) and all(len(it.partition(".")[2]) == 6 for it in times)
    assert slack.sent_id({"ts": times[1]}) == 100


@pytest.mark.parametrize(
    ("text", "length"),
    [("/stop", 5), ("/new now", 4), ("/stop@wedgehog_bot", 18), ("stop", 0), ("/a/b", 0), ("a /b", 0)],
)
def test_a_command_at_the_beginning_is_marked_as_telegram_does(text: str, length: int):
    """python-telegram-bot, grammY and Telegraf know a command by its mark alone."""
    marks = Telegram().event(1, text)["message"].get("entities", [])
    assert marks == ([{"type": "bot_command", "offset": 0, "length": length}] if length else [])
