"""What stands behind an agent's tools: the page server, and the beacon that scripted commands leave."""
