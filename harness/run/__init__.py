"""One run from start to verdict."""
