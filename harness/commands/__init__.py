"""The command line and what only a command needs."""
