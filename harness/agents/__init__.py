"""How Wedgehog talks to the agent under test: a command line per message, a service, or a Python callable."""
