"""One fault per file: what the model says."""
