"""Which tool calls run, and which tools a request offers."""
