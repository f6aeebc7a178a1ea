"""What is seen of an agent from outside: its processes, connections, waits for processors, and where it hangs."""
