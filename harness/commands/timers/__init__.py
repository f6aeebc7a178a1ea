"""Which timers an agent really has: it is held up in eleven ways, and watched until it gives up."""
