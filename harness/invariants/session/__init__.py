"""What a conversation keeps, and how it goes on."""
