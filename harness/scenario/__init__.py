"""What a scenario file says: turns, faults, triggers, tools, and how files are read."""
