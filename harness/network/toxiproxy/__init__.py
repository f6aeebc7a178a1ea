"""Links through Toxiproxy: the server, its API, byte-exact faults and their proof."""
