"""What the fake model says: script files, turns, positions and the items of a reply."""
