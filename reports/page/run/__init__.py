"""The part of the page about one run."""
