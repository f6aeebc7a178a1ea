"""Bots in a chat are known by the library that they import, or by how they ask for messages."""

import pytest
import yaml

from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.commands.first_spec.source_bots import bot_of
from wedgehog.harness.commands.first_spec.spec_text import spec_text

SLACK = {"api": "slack", "webhook": "/slack/events", "quiet_s": 1}
DISCORD = {"api": "discord", "quiet_s": 1}


@pytest.mark.parametrize(
    ("source", "talks"),
    [
        ("from telegram.ext import Application", {"quiet_s": 1}),
        ("import telebot", {"quiet_s": 1}),
        ("const TelegramBot = require('node-telegram-bot-api')", {"quiet_s": 1}),
        ("URL = 'https://api.telegram.org/bot'", {"quiet_s": 1}),
        ('await call("getUpdates", offset=offset)', {"quiet_s": 1}),
        ("fetch(`${API}/getUpdates?offset=${offset}`)", {"quiet_s": 1}),
        ("from slack_bolt.async_app import AsyncApp", SLACK),
        ("import { App } from '@slack/bolt'", SLACK),
        ("import { App } from '@slack/bolt'; new App({ socketMode: true })", {"api": "slack", "quiet_s": 1}),
        ("import discord\nfrom discord.ext import commands", DISCORD),
        ("const { Client } = require('discord.js')", DISCORD),
        ("import discord_webhook", {}),
        ("import telegram_notify", {}),
        ("# like aiogram", {}),
        ("# getUpdates is not used here", {}),
        ("", {}),
    ],
)
def test_a_bot_is_known_by_its_library(source: str, talks: dict[str, object]):
    """One of Slack that gets its events over a WebSocket has no webhook."""
    assert bot_of(source) == talks


@pytest.mark.parametrize(
    ("start", "talks", "host"),
    [
        ("python bot.py", {"quiet_s": 1}, "api.telegram.org"),
        ("python bot.py", DISCORD, "gateway.discord.gg"),
        ("python bot.py", {"api": "slack", "quiet_s": 1}, "wss-primary.slack.com"),
        ("PORT={port} python bot.py", SLACK, ""),
    ],
)
def test_the_spec_of_a_bot_is_valid_and_says_how_it_finds_the_chat(start: str, talks: dict[str, object], host: str):
    """A fixed host works for a bot that polls; where a webhook listens, there is no private network."""
    text = spec_text("agent.yaml", "a", "anthropic", start, kind="chat", talks=talks)
    spec = AgentSpec.model_validate(yaml.safe_load(text))
    assert spec.chat is not None and (spec.chat.webhook is not None) is ("webhook" in talks)
    assert host in spec.hosts if host else not spec.hosts
    assert "{chat_url}" in text and ("by its fixed host" in text) is ("webhook" not in talks)
