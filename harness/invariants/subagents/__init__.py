"""What becomes of subagents, and what their parent hears."""
