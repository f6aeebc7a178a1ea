"""Who writes in Discord, and where: in direct messages, or in the channel of a server (a "guild").

Each chat has a user and a channel of its own; the server is one.
"""

from dataclasses import dataclass
from typing import Any, Final

from wedgehog.harness.services.chat.api import name_of

JOINED = "2023-11-14T22:13:20.000000+00:00"
USER_ID, DIRECT_ID, CHANNEL_ID = 1007, 1_000_007, 1_000_008
"""Of the first chat."""
STEP = 10
"""Between the ids of a channel and the next one of its kind."""


def user_of(chat: int) -> dict[str, Any]:
    """Who writes in a chat."""
    name = name_of(chat)
    return {
        "id": str(USER_ID + chat),
        "username": name.lower().replace(" ", ""),
        "discriminator": "0",
        "global_name": name,
        "avatar": None,
        "bot": False,
        "public_flags": 0,
    }


USER: Final = user_of(0)
AGENT: Final = {**USER, "id": "1042", "username": "wedgehog", "global_name": None, "bot": True}
SELF: Final = {**AGENT, "verified": True, "mfa_enabled": False, "email": None, "locale": "en-US", "flags": 0}
APPLICATION: Final = {
    "id": AGENT["id"],
    "name": "Wedgehog",
    "icon": None,
    "description": "",
    "bot_public": False,
    "bot_require_code_grant": False,
    "verify_key": "",
    "flags": 0,
    "owner": USER,
    "team": None,
    "bot": SELF,
}
MEMBER: Final[dict[str, Any]] = {
    "roles": [],
    "joined_at": JOINED,
    "nick": None,
    "deaf": False,
    "mute": False,
    "flags": 0,
    "pending": False,
}
GUILD_ID = "1000100"


@dataclass(frozen=True, slots=True)
class DiscordPlace:
    """A channel, the server that it belongs to, and what each message in it has beside its words."""

    user: dict[str, Any]
    channel: dict[str, Any]
    guilds: tuple[dict[str, Any], ...] = ()
    in_messages: dict[str, Any] | None = None
    """In a message over the gateway."""

    @property
    def event_keys(self) -> dict[str, Any]:
        """Of a message over the gateway; discord.js knows a direct message by its channel's type."""
        return {"channel_type": self.channel["type"], **(self.in_messages or {})}


_EVERYONE: Final[dict[str, Any]] = {
    "id": GUILD_ID,
    "name": "@everyone",
    "color": 0,
    "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
    "hoist": False,
    "position": 0,
    "permissions": str((1 << 50) - 1),
    "managed": False,
    "mentionable": False,
    "flags": 0,
}


def direct(chat: int) -> DiscordPlace:
    """The direct messages of a chat's user."""
    user = user_of(chat)
    about = {"recipients": [user], "last_message_id": None, "flags": 0}
    return DiscordPlace(user, {"id": str(DIRECT_ID + STEP * chat), "type": 1, **about})


def in_guild(chat: int, chats: int = 1) -> DiscordPlace:
    """A chat's channel in the server, which has so many of them."""
    channel = _channel(chat)
    return DiscordPlace(user_of(chat), channel, (_guild(chats),), {"guild_id": GUILD_ID, "member": MEMBER})


def _channel(chat: int) -> dict[str, Any]:
    return {
        "id": str(CHANNEL_ID + STEP * chat),
        "type": 0,
        "guild_id": GUILD_ID,
        "name": f"general-{chat + 1}" if chat else "general",
        "position": chat,
        "topic": None,
        "nsfw": False,
        "permission_overwrites": [],
        "parent_id": None,
        "last_message_id": None,
        "rate_limit_per_user": 0,
        "flags": 0,
    }


def _guild(chats: int) -> dict[str, Any]:
    people = [AGENT, *(user_of(it) for it in range(chats))]
    return {
        "id": GUILD_ID,
        "name": "Garden",
        "icon": None,
        "owner_id": USER["id"],
        "verification_level": 0,
        "default_message_notifications": 0,
        "explicit_content_filter": 0,
        "mfa_level": 0,
        "nsfw_level": 0,
        "premium_tier": 0,
        "preferred_locale": "en-US",
        "afk_timeout": 60,
        "system_channel_flags": 0,
        "roles": [_EVERYONE],
        "channels": [_channel(it) for it in range(chats)],
        "members": [{**MEMBER, "user": it} for it in people],
        "member_count": len(people),
        "joined_at": JOINED,
        "large": False,
        "unavailable": False,
        **{key: [] for key in ("emojis", "features", "threads", "presences", "voice_states", "stickers")},
        **{key: [] for key in ("stage_instances", "guild_scheduled_events", "soundboard_sounds")},
    }
