"""Runs in virtual time: a worker process that is forked for each run, and what it imports once."""
