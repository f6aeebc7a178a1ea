"""One fault per file: what happens to processes and people."""
