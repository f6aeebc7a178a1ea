"""The MCP tool host: its server process, the channel to it and the faults on its responses."""
