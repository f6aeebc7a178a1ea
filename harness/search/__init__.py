"""Searches for scenarios that break an agent: drawn, tried, shrunk and saved as ordinary scenario files."""
