"""Services that an agent uses beside its model: pages, database, chat, MCP tools, and the beacon of shell commands."""
