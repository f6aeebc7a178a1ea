"""A server."""
