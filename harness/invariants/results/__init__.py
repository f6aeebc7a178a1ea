"""What the model reads of its tools."""
