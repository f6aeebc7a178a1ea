"""What the agent sends: how often, to whom, and at what cost."""
