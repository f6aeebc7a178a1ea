"""A chat service in the form of Telegram's bot API."""
