"""What the model says."""
