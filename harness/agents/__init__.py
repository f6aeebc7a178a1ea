"""Agents under test: a command line per message, a service, a chat client, or a Python callable."""
