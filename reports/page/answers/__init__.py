"""The answers to what a reader asks of any run."""
