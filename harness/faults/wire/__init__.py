"""What happens to bytes."""
