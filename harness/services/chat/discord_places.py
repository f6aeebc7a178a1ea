"""Who writes in Discord, and where: in direct messages, or in the channel of a server (a "guild")."""

from dataclasses import dataclass
from typing import Any, Final

JOINED = "2023-11-14T22:13:20.000000+00:00"
USER: Final = {
    "id": "1007",
    "username": "someone",
    "discriminator": "0",
    "global_name": "Someone",
    "avatar": None,
    "bot": False,
    "public_flags": 0,
}
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

    channel: dict[str, Any]
    guilds: tuple[dict[str, Any], ...] = ()
    in_messages: dict[str, Any] | None = None
    """In a message over the gateway."""

    @property
    def event_keys(self) -> dict[str, Any]:
        """Of a message over the gateway; discord.js knows a direct message by its channel's type."""
        return {"channel_type": self.channel["type"], **(self.in_messages or {})}


DIRECT: Final = DiscordPlace({"id": "1000007", "type": 1, "recipients": [USER], "last_message_id": None, "flags": 0})
_CHANNEL: Final[dict[str, Any]] = {
    "id": "1000008",
    "type": 0,
    "guild_id": GUILD_ID,
    "name": "general",
    "position": 0,
    "topic": None,
    "nsfw": False,
    "permission_overwrites": [],
    "parent_id": None,
    "last_message_id": None,
    "rate_limit_per_user": 0,
    "flags": 0,
}
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
_GUILD: Final[dict[str, Any]] = {
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
    "channels": [_CHANNEL],
    "members": [{**MEMBER, "user": AGENT}, {**MEMBER, "user": USER}],
    "member_count": 2,
    "joined_at": JOINED,
    "large": False,
    "unavailable": False,
    **{key: [] for key in ("emojis", "features", "threads", "presences", "voice_states", "stickers")},
    **{key: [] for key in ("stage_instances", "guild_scheduled_events", "soundboard_sounds")},
}
IN_GUILD: Final = DiscordPlace(_CHANNEL, (_GUILD,), {"guild_id": GUILD_ID, "member": MEMBER})
