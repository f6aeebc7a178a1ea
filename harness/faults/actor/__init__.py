"""What processes and people do."""
