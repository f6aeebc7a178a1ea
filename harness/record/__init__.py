"""What happened: events, one history, what follows from it, and where it is stored."""
