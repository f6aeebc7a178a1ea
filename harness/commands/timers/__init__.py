"""Measures the timers of an agent: it is stalled in eleven ways and observed until it gives up."""
