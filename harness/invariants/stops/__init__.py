"""Deadlines, and what a stop ends."""
