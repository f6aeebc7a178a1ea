"""Campaigns: agents x scenarios x repeats, chosen, played here or on a cluster, resumed, and judged again."""
