"""What a run shows, as events: of the requests, the replies and the tool results that the provider sees."""
