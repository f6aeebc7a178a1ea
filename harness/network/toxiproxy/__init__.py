"""Links through Toxiproxy: the server, its API, exact faults and their proof."""
