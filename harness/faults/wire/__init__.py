"""One fault per file: what happens to bytes."""
